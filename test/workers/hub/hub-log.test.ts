/** The log of a hub, over a simulated disk: whatever happens to it, it has each record of the stream once, with the same mark. */
import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { qualityStatusOf } from "../../../core/run/run-state.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import { HubLog } from "../../../workers/hub/hub-log.js";
import { HintFiles } from "../../../workers/recorder/upkeep/hint-files.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { type ShownRun, SimulatedStream } from "../../helpers/plant/simulated-stream.js";
import { hintPathsOf } from "../../helpers/store/hinted-store.js";
import { createDisk, META, openLog, QUARANTINE } from "../../helpers/store/log-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_128);
const ROUNDS = sized(6, 200);
const CELLS = ["a", "b", "c", "a", "d"];

interface OpenedHub {
  hub: HubLog;
  view: View;
  hints: HintFiles;
}

async function openHub(disk: SimulatedDisk): Promise<OpenedHub> {
  const view = new View({ isHub: true, reader: new LogReader({ fileSystem: disk, directory: META }) });
  const committed: ((base: number) => void)[] = [];
  const hub = await HubLog.open({
    ...{ fileSystem: disk, metaPath: META, quarantinePath: QUARANTINE, segmentBytes: 24 * 1024 },
    onReplayed: async (batch) => view.fold.applyBatch(batch),
    onCommitted: (batch) => {
      view.fold.applyBatch(batch);
      for (const tell of committed) tell(batch.segmentBase);
    },
  });
  view.fold.finishOpening();
  const quiet = { spend: () => {}, onReadDamage: () => {}, line: () => {} };
  const hints = new HintFiles({ fileSystem: disk, directory: META, log: hub.log, ...quiet });
  hints.start();
  committed.push((base) => hints.committed(base));
  return { hub, view, hints };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Gives the hub all messages from where it goes on, or some of them. */
async function feed({ hub }: OpenedHub, stream: SimulatedStream, random: Random, most = Infinity): Promise<void> {
  const from = hub.resume();
  for (const message of stream.messages.slice(from - 1, from - 1 + most)) {
    hub.take(message);
    if (random.chance(0.3)) await hub.log.whenCommitted(hub.log.nextSequence - 1);
  }
}

async function close({ hub, hints }: OpenedHub): Promise<void> {
  if (hub.log.nextSequence > 1) await hub.log.whenCommitted(hub.log.nextSequence - 1);
  await hints.stop();
  await hub.log.close();
}

/** The newest segment loses its end, also within a message: the stream still has it. @returns 1 if there was something to cut */
function cutTail(disk: SimulatedDisk, random: Random): number {
  const path = disk
    .paths()
    .filter((name) => name.endsWith(".seg"))
    .at(-1) as string;
  const bytes = disk.bytesOf(path);
  const kept = bytes.length - random.integer(1, 4_000);
  if (kept < 4_096) return 0;
  disk.setBytes(path, bytes.subarray(0, kept));
  return 1;
}

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
      cells: random.chance(0.4) ? ["a", "b", "c", "d", "x"].filter(() => random.chance(0.4)) : undefined,
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

/** Follows all changes from a mark on, and returns the times in the order in which they came. */
function changesAfter(view: View, markUs: number): number[] {
  const times: number[] = [];
  for (let mark = markUs; ; ) {
    const changes = view.runChanges({ filter: {}, markUs: mark, currentUs: -1 });
    times.push(...changes.timesUs);
    if (changes.isLast) return times;
    mark = changes.markUs;
  }
}

for (let round = 0; round < ROUNDS; round++) {
  const seed = SEED + round;
  t.test(`crashes, hints, parts, faults and a replaced disk: seed ${seed}`, async (t) => {
    const random = createRandom(seed);
    const stream = new SimulatedStream(seed, CELLS);
    stream.grow(sized(400, 900));
    const whole = await openHub(await createDisk());
    await feed(whole, stream, random);
    await close(whole);
    t.same(await differences(whole.view, stream.runs, random), [], "a hub that never stops");

    let disk = await createDisk();
    let opened = await openHub(disk);
    let crashes = 0;
    let cuts = 0;
    while (opened.hub.streamSequence < stream.messages.length) {
      await feed(opened, stream, random, random.integer(1, 80));
      if (random.chance(0.3)) await close(opened);
      for (let turns = random.integer(0, 6); turns > 0; turns--) await turn();
      disk = disk.crash(random.pick(["drop", "keep", "tear"]), random);
      crashes++;
      await opened.hub.log.close().catch(() => {});
      if (random.chance(0.5)) cuts += cutTail(disk, random);
      opened = await openHub(disk);
    }
    await feed(opened, stream, random);
    await close(opened);
    t.equal(opened.hub.log.recovery.corruptionCount, 0);
    const again = await openHub(disk);
    t.same(await differences(again.view, stream.runs, random), [], "a hub that crashed, after its last start");
    t.same(
      again.view.components().map(({ key }) => key),
      ["cell_a", "cell_b", "cell_c", "cell_d"],
    );
    t.same(again.view.components(), whole.view.components(), "hints say of cells what segments say");
    t.same(again.view.listPrograms({ offset: 0, limit: 1000 }), whole.view.listPrograms({ offset: 0, limit: 1000 }));
    const marks = stream.runs.map(({ updatedAtUs }) => updatedAtUs).sort((left, right) => left - right);
    t.same(changesAfter(again.view, 0), marks, "followers are told each run once, in the order of the marks");
    await close(again);
    const { records, parts, faults, repeated } = stream.counts;
    t.comment(
      `seed ${seed}: ${stream.messages.length} messages, ${records} records, ${parts} parts, ${faults} faults, ${repeated} repeated; ` +
        `${crashes} crashes, ${cuts} of them with a cut log, ${hintPathsOf(disk).length} hints; 0 lost, 0 doubled, 0 different`,
    );
  });
}

t.test("the folder of a cell is refused, and it stays as it is", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk, {
    openingState: () => ({ index: new Uint8Array(0), body: Uint8Array.of(0x81, 0xa7, ...Buffer.from("version"), 1) }),
  });
  await log.close();
  await t.rejects(openHub(disk), { message: /this is the data directory of a cell: a hub needs a folder of its own/ });
});
