import t from "tap";
import { createRandom } from "../../../core/random.js";
import { withoutCaptures } from "../../../core/run/run-files.js";
import { isTerminal } from "../../../core/run/run-state.js";
import { segmentName } from "../../../storage/log/segment.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { isKnownRecordType } from "../../../storage/records/record-index.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { findLogEvidence } from "../../../storage/recovery/log-evidence.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { snapshotName } from "../../../storage/snapshot/snapshot-format.js";
import { SnapshotCheck } from "../../../workers/snapshot/check-snapshot.js";
import { foldTables } from "../../../workers/snapshot/fold-rows.js";
import { makeSnapshot } from "../../../workers/snapshot/make-snapshot.js";
import { CompactingStore } from "../../helpers/compaction/compacting-store.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory, type HistoryRecord } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import { createHistoryDisk, DIRECTORY, HistoryStore, SNAPSHOTS } from "../../helpers/store/history-store.js";
import { META, QUARANTINE } from "../../helpers/store/log-harness.js";
import { differences } from "../../helpers/store/view-comparison.js";
import { sized } from "../../helpers/test-size.js";
import { ATTEMPT, failedDelivery } from "../../helpers/webhooks/webhook-fixtures.js";

const SEED = Number(process.env.TEST_SEED ?? 20_265);
const SEGMENT_BYTES = 6_000;

function withoutSnapshots(disk: SimulatedDisk): SimulatedDisk {
  const copy = disk.copy();
  for (const path of copy.paths()) if (path.startsWith(SNAPSHOTS)) copy.removeFile(path);
  return copy;
}

async function tablesOf(store: HistoryStore): Promise<Record<string, string[]>> {
  const tables: Record<string, string[]> = {};
  for await (const { name, rows } of foldTables(await store.columns())) tables[name] = rows;
  return tables;
}

/** A store under way: records come, segments are compacted, snapshots are made. */
class CompactedStore {
  readonly disk: SimulatedDisk;
  readonly history: CellHistory;
  readonly store: CompactingStore;
  readonly #random: ReturnType<typeof createRandom>;

  private constructor(disk: SimulatedDisk, store: CompactingStore, seed: number) {
    this.disk = disk;
    this.store = store;
    this.history = new CellHistory(createRandom(seed));
    this.#random = createRandom(seed + 1);
  }

  static async create(seed: number): Promise<CompactedStore> {
    const disk = await createHistoryDisk();
    return new CompactedStore(disk, await CompactingStore.open(disk, SEGMENT_BYTES), seed);
  }

  async append(count: number): Promise<void> {
    for (let nth = 0; nth < count; nth++) {
      await this.store.log.whenCommitted(this.store.append(this.#next()));
    }
  }

  /** The next record of the history; now and then the tombstone of a run that has ended, or what became of a delivery. */
  #next(): HistoryRecord {
    const { history } = this;
    if (this.#random.chance(0.05)) {
      history.timeUs += 1_000;
      const nth = this.#random.integer(0, 19);
      const id = `019bb000-0000-7000-8000-0000000000${nth + 10}`;
      const delivery = { ...failedDelivery(null), id, createdAtUs: nth, updatedAtUs: history.timeUs };
      const encoded = encodeWebhookChange({ kind: "delivery_put", delivery, history: [ATTEMPT], payload: "{}" });
      return { ...encoded, timeUs: history.timeUs };
    }
    const ended = history.newestFirst.filter((run) => isTerminal(run.status) && run.capturesRemovedAtUs === null);
    if (ended.length === 0 || !this.#random.chance(0.03)) return history.next();
    history.timeUs += 1_000;
    const run = withoutCaptures(this.#random.pick(ended), history.timeUs);
    history.runs.set(run.id, run);
    return { ...encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined), timeUs: history.timeUs };
  }

  snapshot() {
    const throughSequence = this.store.log.durableSequence;
    return makeSnapshot(this.disk, {
      metaPath: META,
      snapshotPath: SNAPSHOTS,
      quarantinePath: QUARANTINE,
      throughSequence,
    });
  }
}

t.test(`segments compacted since the snapshot: what has moved is taken over, TEST_SEED=${SEED}`, async (t) => {
  const random = createRandom(SEED);
  let openings = 0;
  let compacted = 0;
  let own = 0;
  for (let round = 0; round < sized(2, 80); round++) {
    const under = await CompactedStore.create(SEED * 1_000 + round);
    const { disk, store, history } = under;
    for (let part = 0; part < 3; part++) {
      await under.append(random.integer(60, 250));
      if (random.chance(0.5)) await store.compact();
      await under.append(random.integer(1, 40));
      const { sequence } = await under.snapshot();
      await under.append(random.integer(0, 250));
      const before = store.compacted.length;
      await store.compact();
      await under.append(random.integer(0, 30));

      const fork = disk.fork(random.pick(["keep", "drop"]), random);
      const opened = await HistoryStore.open(fork.copy(), { segmentBytes: SEGMENT_BYTES });
      const plain = await HistoryStore.open(withoutSnapshots(fork), { segmentBytes: SEGMENT_BYTES });
      const what = `round ${round}, part ${part}, snapshot ${sequence}`;
      t.same(opened.warnings, [], what);
      t.equal(opened.snapshot?.start.sequence, sequence, what);
      t.same(await tablesOf(opened), await tablesOf(plain), what);
      await opened.log.close();
      await plain.log.close();
      opened.view.finishOpening();
      t.same(await differences(opened.view, history, random, 40), [], `${what}: it answers as a plain model does`);
      t.same(opened.state.finishReplay(), []);

      const folds = await SnapshotCheck.open(fork, DIRECTORY);
      const options = { dataDirectory: DIRECTORY, fileSystem: fork, understandsType: isKnownRecordType, folds };
      const { ok, findings } = await checkStore(options);
      t.same(
        // Where a snapshot was made since, the older one lies beside it still: that is told, and no fault.
        findings.filter(({ code }) => code.startsWith("snapshot") && code !== "snapshot_left"),
        [],
        what,
      );
      t.ok(ok, what);
      openings++;
      const since = store.compacted.slice(before).map(({ fields }) => fields.segment);
      compacted += since.length;
      const start = opened.snapshot?.start;
      if (start !== undefined && since.includes(segmentName(start.segmentBase))) own++;
    }
    await store.close();
  }
  t.comment(`${openings} openings, ${compacted} segments compacted since, ${own} times that of the position`);
  t.ok(compacted > 10 && own > 0);
});

/** A closed store with segments that its snapshot knows and that were written anew since: their paths. */
async function rewrittenBehindSnapshot(seed: number) {
  const under = await CompactedStore.create(seed);
  await under.append(300);
  const { sequence } = await under.snapshot();
  await under.append(200);
  await under.store.compact();
  await under.store.close();
  const rewritten = under.store.compacted
    .map(({ fields }) => `${META}/${String(fields.segment)}`)
    .filter((path) => path <= `${META}/${segmentName(sequence)}`);
  return { under, sequence, rewritten };
}

t.test("a snapshot tells of its own log, however little is left of that, and of no other one", async (t) => {
  const { under, sequence, rewritten } = await rewrittenBehindSnapshot(SEED + 1);
  const segments = under.disk.paths().filter((path) => path.startsWith(META));
  const left = async (keeps: (path: string) => boolean) => {
    const disk = under.disk.copy();
    for (const path of segments) if (!keeps(path)) disk.removeFile(path);
    return await findLogEvidence(disk, DIRECTORY);
  };
  const evidence = { sequence, source: `snapshot/${snapshotName(sequence)}` };
  t.same(await left(() => true), evidence);
  t.same(await left(() => false), evidence, "no segment");
  t.ok(rewritten.length > 1);
  // The segment of the position has all that the snapshot knows of: it alone can have lost nothing of that.
  const position = segments.filter((path) => path <= `${META}/${segmentName(sequence)}`).at(-1);
  for (const path of rewritten) {
    if (path !== position) t.same(await left((one) => one === path), evidence, "one that was written anew");
  }
  const kept = segments.find((path) => !rewritten.includes(path)) as string;
  t.same(await left((one) => one === kept), evidence, "one that was not");

  // Whose segments end elsewhere: one with the same bounds, written anew, has nothing left to be told from this one by.
  const other = await CompactedStore.create(SEED + 3);
  await other.append(300);
  await other.store.close();
  const mixed = other.disk.copy();
  const name = `${SNAPSHOTS}/${snapshotName(sequence)}`;
  mixed.setBytes(name, under.disk.bytesOf(name));
  t.equal(await findLogEvidence(mixed, DIRECTORY), null, "of another log");
});

t.test("a segment written anew since that is damaged, or is the newest: the snapshot is discarded", async (t) => {
  const { under, sequence, rewritten } = await rewrittenBehindSnapshot(SEED);
  t.ok(rewritten.length > 1);
  for (const path of rewritten) {
    const damaged = under.disk.copy();
    const bytes = damaged.bytesOf(path);
    bytes[bytes.length - 60]! ^= 1;
    damaged.setBytes(path, bytes);
    const store = await HistoryStore.open(damaged);
    t.match(store.warnings, listOf({ cause: /is damaged at offset|ends before/ }));
    t.equal(store.snapshot, null);
    await store.log.close();
  }

  const cut = under.disk.copy();
  const last = rewritten.at(-1) as string;
  for (const path of cut.paths()) if (path.startsWith(META) && path > last) cut.removeFile(path);
  const store = await HistoryStore.open(cut);
  t.match(store.warnings, listOf({ cause: /is not there|is another one/ }));
  t.match(store.log.recovery.findings, listOf({ code: "log_lost", lastLost: sequence }));
  t.ok(cut.has(`${QUARANTINE}/${snapshotName(sequence)}`), "and is kept, since the log has lost records");
  await store.log.close();
});
