import { availableParallelism } from "node:os";
import t from "tap";
import { createRandom } from "../../core/random.js";
import { type MutantRun, occurrences, runMutant } from "../helpers/mutant-run.js";
import { type Mutant, STORE_MUTANTS } from "../helpers/store-mutants.js";
import { isFullSize } from "../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
/** Of the whole table, which `npm run test:long` runs. */
const SAMPLE = 8;
/** Only those whose name contains it. */
const ONLY = process.env.TEST_MUTANT;

function chosen(): Mutant[] {
  if (ONLY !== undefined) return STORE_MUTANTS.filter(({ name }) => name.includes(ONLY));
  if (isFullSize) return [...STORE_MUTANTS];
  const random = createRandom(SEED);
  const rest = [...STORE_MUTANTS];
  return Array.from({ length: SAMPLE }, () => rest.splice(random.integer(0, rest.length - 1), 1)[0] as Mutant);
}

t.test("each mutant changes one place: where the code has changed, its text has to follow", async (t) => {
  for (const mutant of STORE_MUTANTS) t.equal(occurrences(mutant), 1, `${mutant.file}: ${mutant.name}`);
  t.equal(new Set(STORE_MUTANTS.map(({ name }) => name)).size, STORE_MUTANTS.length);
});

t.test("every fault that is seeded into the store is found", async (t) => {
  const mutants = chosen();
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
  t.comment(`${runs.length} mutants: ${runs.length - survivors} killed, ${survivors} survived`);
});
