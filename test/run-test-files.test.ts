import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import t, { type Test } from "tap";
import { untilGone } from "./helpers/process/until-gone.js";

type RunTestFiles = (
  files: readonly string[],
  options: { jobs?: number; timeoutSeconds: number; graceMs?: number },
) => Promise<{ ok: boolean; tap: string }>;
const RUNNER = pathToFileURL(".ci/run-test-files.mjs").href;
const { runTestFiles } = (await import(RUNNER)) as { runTestFiles: RunTestFiles };

const IMPORT = `import t from ${JSON.stringify(import.meta.resolve("tap"))};\n`;

/** What the runner makes of one file. */
async function run(
  t: Test,
  source: string,
  limits: { timeoutSeconds: number; graceMs?: number } = { timeoutSeconds: 60 },
): Promise<{ ok: boolean; tap: string }> {
  const directory = t.testdir({ "one.mjs": source });
  return runTestFiles([`${directory}/one.mjs`], limits);
}

t.test("files that pass, each below its name", async (t) => {
  const directory = t.testdir({
    "a.mjs": `${IMPORT}t.ok(true, "first");`,
    "b.mjs": `${IMPORT}t.notMatch(process.execArgv.join(), /node_modules|--enable/, "no hook of tap is preloaded");`,
  });
  const { ok, tap } = await runTestFiles([`${directory}/a.mjs`, `${directory}/b.mjs`], { timeoutSeconds: 60 });
  t.equal(ok, true, tap);
  t.match(
    tap,
    /^# Subtest: .*a\.mjs\n {4}TAP version 14\n {4}ok 1 - first\n[\s\S]*\nok 1 - .*a\.mjs # time=[\d.]+s\n/m,
  );
  t.match(tap, /\nok 2 - .*b\.mjs # time=/);
});

t.test("a failed assertion fails the file", async (t) => {
  const { ok, tap } = await run(t, `${IMPORT}t.ok(false, "wrong");`);
  t.equal(ok, false);
  t.match(tap, /^ {4}not ok 1 - wrong$/m);
  t.match(tap, /^not ok 1 - /m);
});

t.test("so does an error that no test waits for", async (t) => {
  const late = "t.test('waits', () => new Promise(() => setImmediate(() => { throw new Error('late'); })));";
  const { ok, tap } = await run(t, `${IMPORT}${late}`);
  t.equal(ok, false);
  t.match(tap, /^not ok 1 - /m);
});

t.test("a failure tells its place in the source", async (t) => {
  const map = { version: 3, sources: ["../../test/one.ts"], names: [], mappings: "AAEA" };
  const directory = t.testdir({ "one.js": "", "one.js.map": JSON.stringify(map) });
  const file = `${directory}/fails.mjs`;
  writeFileSync(file, `${IMPORT}t.fail("at ${directory}/one.js:1:1 and ${directory}/other.js:1:1");`);
  const { tap } = await runTestFiles([file], { timeoutSeconds: 60 });
  t.match(tap, `at test/one.ts:3:1 and ${directory}/other.js:1:1`);
});

t.test("so does one that ends before it says what it tested", async (t) => {
  const { ok, tap } = await run(t, "process.exit(0);");
  t.equal(ok, false);
  t.match(tap, /^ {4}not ok - it ended with 0, without a plan$/m);
});

t.test("one that is killed", async (t) => {
  const { ok, tap } = await run(t, `${IMPORT}t.ok(true, "first"); process.kill(process.pid, "SIGKILL");`);
  t.equal(ok, false);
  t.match(tap, /^ {4}not ok - it ended with SIGKILL/m);
});

t.test("one whose plan is kept, and that ends with an error", async (t) => {
  const { ok, tap } = await run(t, `${IMPORT}t.ok(true, "first"); t.teardown(() => { process.exitCode = 3; });`);
  t.equal(ok, false);
  t.match(tap, /^not ok 1 - /m);
});

t.test("a number of jobs that would run nothing is refused", async (t) => {
  for (const jobs of [0, -1, 1.5, Number.NaN]) {
    await t.rejects(runTestFiles(["one.mjs"], { timeoutSeconds: 1, jobs }), /allowed are 1 and more/);
  }
});

t.test("and one that comes to no end, with what it has started", async (t) => {
  // Without tap, which may take longer to load than the file has.
  const source = `import { spawn } from "node:child_process";
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" });
    console.log("# child " + child.pid);`;
  const { ok, tap } = await run(t, source, { timeoutSeconds: 2, graceMs: 1_000 });
  t.equal(ok, false);
  const pid = Number(/# child (\d+)/.exec(tap)?.[1]);
  t.ok(pid > 0, tap);
  await untilGone(pid);
});
