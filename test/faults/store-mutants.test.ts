import { availableParallelism } from "node:os";
import t from "tap";
import { createRandom } from "../../core/random.js";
import { type MutantRun, occurrences, runMutant } from "../helpers/mutant-run.js";
import { type Mutant, STORE_MUTANTS } from "../helpers/store-mutants.js";
import { isFullSize } from "../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
/** What a store must never get away with: these always. */
const ALWAYS = [
  "the sync of a group is dropped",
  "the folder is not synced after a rotation",
  "a failed sync of a group is tried again",
  "the CRC of the content is not looked at",
  "captures are unlinked before their tombstone is durable",
  "a group is acknowledged while it is synced",
  "a snapshot is trusted over the log: nobody looks for the record at its position",
];
/** So many others of the whole table, which `npm run test:long` runs. */
const SAMPLE = 7;
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

t.test("each mutant changes one place: where the code has changed, its text has to follow", async (t) => {
  for (const mutant of STORE_MUTANTS) t.equal(occurrences(mutant), 1, `${mutant.file}: ${mutant.name}`);
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
  const runs: MutantRun[] = [];
  const waiting = [...mutants];
  const work = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift())
      runs.push(await runMutant(mutant));
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  for (const { mutant, killedBy, seconds } of runs) {
    const killer = typeof mutant.killer === "string" ? mutant.killer : "the simulation";
    const verdict = killedBy === null ? "SURVIVED" : "killed";
    t.comment(
      `${verdict} | ${mutant.name} | ${mutant.file} | ${killer} | ${killedBy?.slice(0, 100) ?? ""} | ${seconds.toFixed(1)} s`,
    );
    t.not(killedBy, null, `${mutant.name}: ${killer} finds nothing`);
  }
  const survivors = runs.filter(({ killedBy }) => killedBy === null).length;
  const hangs = runs.filter(({ isHang }) => isHang).length;
  t.comment(
    `${runs.length} mutants: ${runs.length - survivors} killed (${hangs} of them by a test that came to no end), ${survivors} survived`,
  );
});
