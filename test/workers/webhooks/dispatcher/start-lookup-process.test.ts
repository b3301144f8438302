import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import t, { type Test } from "tap";
import { NameLookups } from "../../../../workers/webhooks/dispatcher/name-lookups.js";
import { startLookupProcess } from "../../../../workers/webhooks/dispatcher/start-lookup-process.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";

const PROGRAM = new URL("../../../../workers/webhooks/dispatcher/start-lookup-process.js", import.meta.url).href;

/** Starts one while no further file can be opened, and one afterwards. */
const SCRIPT = `
import { closeSync, openSync } from "node:fs";
import { startLookupProcess } from ${JSON.stringify(PROGRAM)};
const files = [];
try {
  for (;;) files.push(openSync("/dev/null"));
} catch (error) {
  console.log(error.code);
}
const first = startLookupProcess(
  () => console.log("answered"),
  (error) => {
    console.log("ended", error?.code);
    for (const file of files) closeSync(file);
    const second = startLookupProcess(
      ({ hostname, code }) => {
        console.log(hostname, code);
        process.exit(0);
      },
      () => process.exit(1),
    );
    second.ask("localhost");
    // The process does not hold its starter.
    setInterval(() => {}, 1000);
  },
);
first.ask("localhost");
`;

t.test("one that cannot be started, for too many open files, is one that has ended", async (t) => {
  const limited = ["-c", 'ulimit -n 64; exec "$0" --input-type=module -e "$1"', process.execPath, SCRIPT];
  const { status, stdout, stderr } = spawnSync("sh", limited, { encoding: "utf8" });
  t.same([stdout, stderr, status], ["EMFILE\nended EMFILE\nlocalhost null\n", "", 0]);
});

/** Look-up processes of this one that live. */
function lookupPids(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      try {
        const parent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return Number(parent) === process.pid && command.includes("name-lookup-process");
      } catch {
        return false;
      }
    });
}

/** Names looked up by a real process, in the time of the test. */
function realLookups(t: Test) {
  const timers = new ManualTimers();
  const lookups = new NameLookups({ timers, nowMs: () => timers.nowMs(), start: startLookupProcess });
  // The process does not hold its starter.
  const held = setInterval(() => {}, 1000);
  t.teardown(() => {
    lookups.close();
    clearInterval(held);
  });
  const lookUp = (hostname: string) =>
    new Promise<string>((resolve) => {
      lookups.lookUp(hostname, (error, addresses) => {
        resolve(error === null ? String(addresses[0]?.address) : ((error as { code?: string }).code ?? ""));
      });
    });
  return { timers, lookUp };
}

const LOOPBACK = /^(127\.0\.0\.1|::1)$/;

t.test("one that is killed is told by its end, and the next name is looked up by another", async (t) => {
  const { timers, lookUp } = realLookups(t);
  t.match(await lookUp("localhost"), LOOPBACK);
  const [pid] = lookupPids() as [number];
  // It must not answer before it ends.
  process.kill(pid, "SIGSTOP");
  const waiting = lookUp("ip6-localhost");
  process.kill(pid, "SIGKILL");
  t.equal(await waiting, "EAI_AGAIN");
  timers.advance(1000);
  t.match(await lookUp("localhost"), LOOPBACK);
  t.notOk(lookupPids().includes(pid));
});
