import t from "tap";
import { createRandom } from "../../../core/random.js";
import { isTerminal } from "../../../core/run/run-state.js";
import { rewriteSegment } from "../../../storage/compaction/rewrite-segment.js";
import { MovesCollector } from "../../../storage/compaction/segment-moves.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { segmentName } from "../../../storage/log/segment.js";
import { View } from "../../../storage/view/view.js";
import { CompactingStore } from "../../helpers/compaction/compacting-store.js";
import { GatedReader } from "../../helpers/disk/gated-reader.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { createDisk, META } from "../../helpers/store/log-harness.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_121);
const BASE_URL = "http://cell";

t.test(`a read that began before a move ends with the same answer after it, TEST_SEED=${SEED}`, async (t) => {
  const disk = await createDisk();
  const store = await CompactingStore.open(disk, 24 * 1024);
  const history = new CellHistory(createRandom(SEED));
  for (let n = 0; n < 900; n++) {
    store.append(history.next());
    if (n % 20 === 0) await store.log.whenCommitted(store.log.nextSequence - 1);
  }
  await store.log.whenCommitted(store.log.nextSequence - 1);
  const { places } = store.state;
  const reader = new LogReader({ fileSystem: disk, directory: META });
  const gated = new GatedReader(reader);
  const failures: unknown[] = [];
  const open = (): View => new View({ reader: gated, onReadFailure: (error) => failures.push(error) });
  const ended = history.newestFirst.filter(({ status }) => isTerminal(status));
  t.ok(ended.length > 40);
  const page = async (view: View): Promise<string[]> =>
    (await view.listRuns({ offset: 0, limit: 1_000 }, BASE_URL)).runs.map((json) => Buffer.from(json).toString());
  await store.close();

  // One view for each way to ask, so that no answer comes from a cache.
  const views: View[] = [];
  for (let nth = 0; nth < 3; nth++) {
    const view = open();
    const copy = await CompactingStore.open(disk.copy(), 24 * 1024, "full", view);
    await copy.close();
    views.push(view);
  }
  const [listed, asked, control] = views as [View, View, View];
  const expected = await page(control);
  gated.hold();
  const listing = page(listed);
  const asking = ended.map(({ id }) => asked.run(id));

  // Every segment but the newest is written anew, and nothing is held any more.
  const bases = disk
    .paths()
    .filter((path) => path.startsWith(META))
    .map((path) => Number(path.slice(-20, -4)));
  let moved = 0;
  for (const [nth, base] of bases.slice(0, -1).entries()) {
    const collector = new MovesCollector();
    const { temporaryPath, path } = await rewriteSegment({
      fileSystem: disk,
      directory: META,
      base,
      nextBase: bases[nth + 1] as number,
      salt: 1_000 + nth,
      owner: {
        understandsType: () => true,
        judge: (record) => places.judge(base, record),
        beginStretch: () => ({ add: () => {}, body: () => new Uint8Array(1).fill(0x90) }),
        kept: (record, location) => collector.take(record, location),
      },
      minimumDroppedBytes: 1,
      giveWay: async () => {},
    });
    if (temporaryPath === null) continue;
    t.equal(path, `${META}/${segmentName(base)}`);
    await disk.rename(temporaryPath, path);
    const moves = collector.finish(base);
    moved += moves.runs.offsets.length;
    reader.replaced(base);
    for (const view of [listed, asked]) await view.applyMoves(moves, async () => {});
  }
  t.ok(moved > 40);
  gated.release();
  t.same(await listing, expected, "a page");
  t.same(await Promise.all(asking), ended, "and each run");
  t.same(failures, [], "no move was taken for damage");
  // Whatever was kept in a cache stays what it was, and comes from there.
  const reads = gated.reads;
  t.same(await page(listed), expected);
  t.same(await asked.run(ended[0]!.id), ended[0]);
  t.equal(gated.reads, reads);
  reader.close();
});
