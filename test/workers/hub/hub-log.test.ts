/** The log of a hub, over a simulated disk: whatever happens to it, it has each record of the stream once, with the same mark. */
import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { qualityStatusOf } from "../../../core/run/run-state.js";
import type { View } from "../../../storage/view/view.js";
import { changesAfter, SimulatedHub } from "../../helpers/plant/simulated-hub.js";
import { type ShownRun, SimulatedStream } from "../../helpers/plant/simulated-stream.js";
import { hintPathsOf } from "../../helpers/store/hinted-store.js";
import { createDisk, openLog } from "../../helpers/store/log-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_128);
const ROUNDS = sized(6, 200);
const CELLS = ["a", "b", "c", "a", "d"];

/** What the view answers otherwise than the model. */
async function differences(view: View, shown: readonly ShownRun[], random: Random): Promise<string[]> {
  const found: string[] = [];
  for (const { run, cell, updatedAtUs } of shown) {
    const answer = await view.run(run.id);
    if (!isDeepStrictEqual(answer, { ...run, cell, updatedAtUs })) found.push(`run ${run.id}`);
    for (const { id } of run.frames) if (view.runOfFrame(id) !== run.id) found.push(`frame ${id}`);
  }
  const newestFirst = [...shown].sort((left, right) => (left.run.id < right.run.id ? 1 : -1));
  for (let nth = 0; nth < 100; nth++) {
    const any = random.pick(shown);
    const query = {
      cells: random.chance(0.4) ? [...CELLS, "renamed", "x"].filter(() => random.chance(0.4)) : undefined,
      programId: random.chance(0.3) ? any.run.programId : undefined,
      status: random.chance(0.3) ? any.run.status : undefined,
      qualityStatus: random.chance(0.2) ? (qualityStatusOf(any.run) ?? "none") : undefined,
      updatedSinceUs: random.chance(0.3) ? any.updatedAtUs - random.integer(0, 1) : undefined,
      offset: random.chance(0.3) ? 0 : random.integer(0, shown.length + 2),
      limit: random.pick([0, 1, 10, 50, 1000]),
    };
    const matching = newestFirst.filter(
      ({ run, cell, updatedAtUs }) =>
        (query.cells === undefined || query.cells.includes(cell)) &&
        (query.programId === undefined || run.programId === query.programId) &&
        (query.status === undefined || run.status === query.status) &&
        (query.qualityStatus === undefined || (qualityStatusOf(run) ?? "none") === query.qualityStatus) &&
        (query.updatedSinceUs === undefined || updatedAtUs > query.updatedSinceUs),
    );
    const { total, read } = view.runPage(query, "");
    const { runs } = await read();
    const ids = runs.map((json) => JSON.parse(Buffer.from(json).toString()).id as string);
    const expected = matching.slice(query.offset, query.offset + query.limit).map(({ run }) => run.id);
    if (total !== matching.length || !isDeepStrictEqual(ids, expected)) found.push(`list ${JSON.stringify(query)}`);
  }
  return found;
}

for (let round = 0; round < ROUNDS; round++) {
  const seed = SEED + round;
  t.test(`crashes, hints, parts, faults and a replaced disk: seed ${seed}`, async (t) => {
    const random = createRandom(seed);
    const stream = new SimulatedStream(seed, CELLS);
    stream.grow(sized(400, 900));
    const whole = await SimulatedHub.open();
    await whole.feed(stream.messages, random);
    await whole.close();
    t.same(await differences(whole.view, stream.runs, random), [], "a hub that never stops");

    const other = await SimulatedHub.open();
    while (other.hub.streamSequence < stream.messages.length) {
      await other.feed(stream.messages, random, random.integer(1, 80), 0.01);
      await other.crash(random);
    }
    await other.feed(stream.messages, random);
    await other.close();
    t.equal(other.hub.log.recovery.corruptionCount, 0);
    t.equal(other.hub.resume().fromSequence, stream.messages.length + 1, "nothing is read again");
    await other.reopen();
    t.same(await differences(other.view, stream.runs, random), [], "a hub that crashed, after its last start");
    const [health, wholeHealth] = [other.view.components(), whole.view.components()];
    t.ok(health.some(({ key }) => key === "cell_renamed"));
    t.same(health, wholeHealth, "hints say of cells what segments say");
    const [programs, wholePrograms] = [other, whole].map(({ view }) => view.listPrograms({ offset: 0, limit: 1000 }));
    t.same(programs, wholePrograms);
    const marks = stream.runs.map(({ updatedAtUs }) => updatedAtUs).sort((left, right) => left - right);
    t.same(changesAfter(other.view, 0), marks, "followers are told each run once, in the order of the marks");
    await other.close();
    const { records, parts, faults, repeated, renames } = stream.counts;
    const { crashes, cuts, refusals } = other.counts;
    t.comment(
      `seed ${seed}: ${stream.messages.length} messages, ${records} records, ${parts} parts, ${faults} faults, ${repeated} repeated, ${renames} renamed; ` +
        `${crashes} crashes, ${cuts} of them with a cut log, ${refusals} refused records, ${hintPathsOf(other.disk).length} hints; 0 lost, 0 doubled, 0 different`,
    );
  });
}

t.test("the folder of a cell is refused, and it stays as it is", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk, {
    openingState: () => ({ index: new Uint8Array(0), body: Uint8Array.of(0x81, 0xa7, ...Buffer.from("version"), 1) }),
  });
  await log.close();
  await t.rejects(SimulatedHub.open(disk), {
    message:
      /this is the data directory of a cell, or of a hub of another release\. Delete it if it is a hub's: it is filled again/,
  });
});
