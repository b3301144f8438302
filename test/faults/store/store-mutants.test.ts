import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import t from "tap";
import ts from "typescript";
import { createRandom } from "../../../core/random.js";
import { listOf } from "../../helpers/list-of.js";
import { occurrences, runMutants } from "../../helpers/mutants/mutant-run.js";
import { type Mutant, STORE_MUTANTS } from "../../helpers/mutants/store-mutants.js";
import { isFullSize } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
/** Faults that must never go unnoticed: every run tries these. */
const ALWAYS = [
  "the sync of a group is dropped",
  "the folder is not synced after a rotation",
  "captures are unlinked before their tombstone is durable",
  "a group is acknowledged while it is synced",
];
/** So many others of the whole table, which `npm run test:long` runs. */
const SAMPLE = 1;
/** Only those whose name contains it. */
const ONLY = process.env.TEST_MUTANT;

function chosen(): Mutant[] {
  if (ONLY !== undefined) return STORE_MUTANTS.filter(({ name }) => name.includes(ONLY));
  if (isFullSize) return [...STORE_MUTANTS];
  const random = createRandom(SEED);
  const isAlways = ({ name }: Mutant): boolean => ALWAYS.includes(name);
  const rest = STORE_MUTANTS.filter((mutant) => !isAlways(mutant));
  const sample = Array.from({ length: SAMPLE }, () => rest.splice(random.integer(0, rest.length - 1), 1)[0] as Mutant);
  return [...STORE_MUTANTS.filter(isAlways), ...sample];
}

function syntaxErrors({ file, find, replace }: Mutant): string[] {
  const text = readFileSync(`dist/${file}`, "utf8").replace(find, () => replace);
  // The parser's findings. No public function gives them without compiling the file too.
  const { parseDiagnostics } = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext) as ts.SourceFile & {
    parseDiagnostics: readonly ts.Diagnostic[];
  };
  return parseDiagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

t.test("each mutant changes one place: where the code has changed, its text has to follow", async (t) => {
  for (const mutant of STORE_MUTANTS) {
    t.equal(occurrences(mutant), 1, `${mutant.file}: ${mutant.name}`);
    // Text that is no code ends any test, whatever the test looks at.
    t.same(syntaxErrors(mutant), [], `${mutant.file} can be run: ${mutant.name}`);
  }
  for (const name of ALWAYS)
    t.ok(
      STORE_MUTANTS.some((mutant) => mutant.name === name),
      name,
    );
  t.equal(new Set(STORE_MUTANTS.map(({ name }) => name)).size, STORE_MUTANTS.length);
});

t.test("every fault that is seeded into the store is found", async (t) => {
  const mutants = chosen();
  t.ok(mutants.length > 0, `a mutant's name contains ${ONLY}`);
  t.comment(
    isFullSize
      ? `all ${mutants.length} mutants`
      : `${mutants.length} of ${STORE_MUTANTS.length} mutants, TEST_SEED=${SEED}`,
  );
  const runs = await runMutants(mutants, availableParallelism());
  for (const { mutant, verdict, killedBy, seconds } of runs) {
    const killer = typeof mutant.killer === "string" ? mutant.killer : "the simulation";
    const said = verdict === "killed" ? verdict : verdict.toUpperCase();
    t.comment(
      `${said} | ${mutant.name} | ${mutant.file} | ${killer} | ${killedBy?.slice(0, 100) ?? ""} | ${seconds.toFixed(1)} s`,
    );
    t.equal(verdict, "killed", `${mutant.name}: ${killer} ${killedBy ?? "finds nothing"}`);
  }
  const killers = new Set(mutants.map(({ killer }) => killer)).size;
  const countOf = (verdict: string): number => runs.filter((run) => run.verdict === verdict).length;
  const hangs = runs.filter(({ isHang }) => isHang).length;
  t.comment(
    `${runs.length} mutants, each of ${killers} killers run without any change too: ${countOf("killed")} killed (${hangs} of them by a test ` +
      `that came to no end), ${countOf("survived")} survived, ${countOf("not run")} not run`,
  );
});

/** A test that takes a moment, and what it loads. */
const QUICK = { file: "storage/byte-budget.js", killer: "storage/byte-budget" };

t.test("a mutant that was never in the code is not killed, whatever the test says", async (t) => {
  const first = readFileSync(`dist/${QUICK.file}`, "utf8").split("\n")[0] as string;
  const change = { name: "a", file: QUICK.file, find: first, replace: `throw new Error("a mutant"); ${first}` };
  const mutants: Mutant[] = [
    { ...change, killer: QUICK.killer },
    { ...change, replace: `${first} // no change`, killer: QUICK.killer },
  ];
  const runsOf = (of: Mutant[], ...rest: URL[]) => runMutants(of, availableParallelism(), ...rest);
  t.match(
    await runsOf(mutants),
    listOf({ verdict: "killed", killedBy: /^the process ends/ }, { verdict: "survived", killedBy: null }),
  );
  // A change in a module that the test does not load, and one of a text that is not in the module.
  const elsewhere = { ...change, file: "storage/log/log.js", find: "class Log", killer: QUICK.killer };
  const without = { ...change, find: "what stands nowhere", killer: QUICK.killer };
  t.match(
    await runsOf([without]),
    listOf({ verdict: "not run", killedBy: /^without any change, the module was not loaded with/ }),
  );
  t.match(
    await runsOf([mutants[1] as Mutant, elsewhere]),
    listOf(
      { verdict: "survived", killedBy: null },
      { verdict: "not run", killedBy: "the module was not loaded with the change in it" },
    ),
    "though its killer passes without any change",
  );
  const broken = new URL("file:///no/such/registration.js");
  t.match(
    await runsOf(mutants.slice(0, 1), broken),
    listOf({ verdict: "not run", killedBy: /^it fails without any change/ }),
    "the hook cannot be loaded: every process ends with an error",
  );
  const failing = { ...change, killer: "helpers/no-such-test" };
  t.match(await runsOf([failing]), listOf({ verdict: "not run", killedBy: /^it fails without any change/ }));
});
