import t from "tap";
import type { RunState } from "../../../../core/run/run-state.js";
import { TIME_LIMIT_US } from "../../../../core/timestamps.js";
import { CaptureIndex, keptCaptures, RETENTION_BATCH_RUNS } from "../../../../storage/captures/capture-index.js";
import { FileSystemError } from "../../../../storage/disk/file-system-error.js";
import type { CommittedBatch, LogRecord } from "../../../../storage/log/committed-batch.js";
import { SEGMENT_HEADER_BYTES } from "../../../../storage/log/segment.js";
import { decodeChanges, encodeChanges } from "../../../../storage/records/change-record.js";
import { StorageError } from "../../../../storage/storage-error.js";
import type { LogLine } from "../../../../workers/recorder/recorder-messages.js";
import { Retention, type RetentionOptions } from "../../../../workers/recorder/upkeep/retention.js";
import { idOf, RUN_ID, stateWithRun } from "../../../helpers/link/cell-messages.js";
import { listOf } from "../../../helpers/list-of.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";
import { bytesOfSegment } from "../../../helpers/store/segment-bytes.js";

const END_US = 1_000_000;

/** Retention over records in memory; every step of it is written down. */
class Stage {
  readonly captureIndex = new CaptureIndex({ keepsRuns: true });
  readonly timers = new ManualTimers();
  readonly steps: string[] = [];
  readonly lines: LogLine[] = [];
  readonly records = new Map<number, LogRecord>();
  /** Runs whose files cannot be unlinked. */
  readonly stuck = new Set<string>();
  nowUs = 100 * END_US;
  #sequence = 0;
  #changed: (() => void)[] = [];

  /** An ended run that keeps so many bytes. */
  add(n: number, bytes: number, isProcessing = false): void {
    const base = structuredClone(stateWithRun("completed").runs.get(RUN_ID)) as RunState;
    const batches = [{ offset: 0, lengthBytes: bytes, crc32: 1, lineCount: 1, heightCrc32: 1 }];
    const status = isProcessing ? "complete" : "incomplete";
    const frames = base.frames.map((frame) => ({ ...frame, batches, status }) as const);
    const run = { ...base, id: idOf(n), createdAtUs: n, completedAtUs: END_US + n, frames };
    const { type, index, body } = encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined);
    this.records.set(n, { type, flags: 0, sequence: n, timeUs: n, index, body });
    const location = { segmentBase: 1, offset: n, length: body.length };
    this.captureIndex.keep(keptCaptures(run, { bytes, removedAtUs: null, isOpen: false }, location));
  }

  start(options: Partial<RetentionOptions> = {}): Retention {
    const note = (step: string): void => {
      this.steps.push(step);
    };
    const retention = new Retention({
      policy: { days: null, bytes: 1 },
      dataDirectory: "/data",
      captureIndex: this.captureIndex,
      timers: this.timers,
      wallUs: () => this.nowUs,
      lastTimeUs: () => this.nowUs,
      read: async ({ offset }) => {
        const record = this.records.get(offset);
        if (record === undefined) throw new StorageError("record_damaged", "not any more");
        return record;
      },
      appendTombstone: (run) => {
        note(`tombstone ${run.createdAtUs}`);
        return { sequence: ++this.#sequence, timeUs: this.nowUs++ };
      },
      whenDurable: async (sequence) => note(`durable ${sequence}`),
      letGo: async (runIds) => note(`let go ${runIds.length}`),
      removeCaptures: async (runIds) => {
        note(`remove ${runIds.length}`);
        const kept = runIds.filter((runId) => this.stuck.has(runId));
        const error = new FileSystemError("EPERM", "unlink", "/data/captures/x.cap");
        return { files: runIds.length - kept.length, kept: kept.map((runId) => ({ runId, error })) };
      },
      onChange: () => this.#wake(),
      line: (level, message, fields) => {
        this.lines.push({ level, message, fields });
        this.#wake();
      },
      ...options,
    });
    retention.start();
    return retention;
  }

  #wake(): void {
    for (const changed of this.#changed.splice(0)) changed();
  }

  /** The next one is armed when a pass is over, and none while it goes on. */
  passEnded(): Promise<void> {
    return this.until(() => this.timers.armed === 1);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#changed.push(resolve));
  }
}

t.test("captures stay until the plant can have them, and has them", async (t) => {
  const stage = new Stage();
  stage.add(1, 9, true);
  stage.add(2, 9);
  stage.add(3, 9);
  let shippedSequence = 2;
  stage.start({ shippedSequence: () => shippedSequence });
  await stage.passEnded();
  const tombstones = () => stage.steps.filter((step) => step.startsWith("tombstone"));
  t.strictSame(tombstones(), ["tombstone 2"], "one has formats to be made, one is not in the plant");
  stage.add(1, 9);
  shippedSequence = 3;
  stage.timers.advance(3_600_000);
  await stage.until(() => tombstones().length === 3);
  t.strictSame(tombstones(), ["tombstone 2", "tombstone 1", "tombstone 3"]);
});

const removed = (stage: Stage) => stage.lines.filter(({ message }) => message === "retention removed captures");

t.test("each batch in its order, and bounded", async (t) => {
  const stage = new Stage();
  for (let n = 1; n <= RETENTION_BATCH_RUNS + 2; n++) stage.add(n, 9);
  stage.start();
  await stage.until(() => removed(stage).length === 1);
  const batch = (from: number, to: number) => [
    ...Array.from({ length: to - from + 1 }, (_, at) => `tombstone ${from + at}`),
    ...[`durable ${to}`, `let go ${to - from + 1}`, `remove ${to - from + 1}`, `let go ${to - from + 1}`],
  ];
  t.same(stage.steps, [
    ...batch(1, RETENTION_BATCH_RUNS),
    ...batch(RETENTION_BATCH_RUNS + 1, RETENTION_BATCH_RUNS + 2),
  ]);
  t.match(removed(stage)[0]?.fields, {
    runs: RETENTION_BATCH_RUNS + 2,
    bytes: 9 * (RETENTION_BATCH_RUNS + 2),
    kept_runs: 0,
  });
});

t.test("a long pass tells how far it is every ten seconds", async (t) => {
  const stage = new Stage();
  for (let n = 1; n <= 3 * RETENTION_BATCH_RUNS; n++) stage.add(n, 9);
  stage.start({
    removeCaptures: async (runIds) => {
      stage.nowUs += 6_000_000;
      return { files: runIds.length, kept: [] };
    },
  });
  await stage.until(() => removed(stage).length === 2);
  t.same(
    removed(stage).map(({ fields }) => fields.runs),
    [2 * RETENTION_BATCH_RUNS, RETENTION_BATCH_RUNS],
  );
});

t.test("a run whose record cannot be read keeps its captures, is named, and holds up no other", async (t) => {
  const stage = new Stage();
  for (const n of [1, 2, 3]) stage.add(n, 9);
  stage.records.delete(1);
  stage.records.set(2, stage.records.get(3) as LogRecord);
  stage.start();
  await stage.until(() => removed(stage).length === 1);
  t.same(stage.steps, ["tombstone 3", "durable 1", "let go 1", "remove 1", "let go 1"]);
  t.match(
    stage.lines.slice(0, 2),
    listOf(
      { level: "error", fields: { created_at: "1970-01-01T00:00:00.000001Z", cause: "not any more" } },
      { level: "error", fields: { created_at: "1970-01-01T00:00:00.000002Z", cause: /another record/ } },
    ),
  );
});

t.test("a run whose record can be read again goes after all, and the fault with it", async (t) => {
  const stage = new Stage();
  for (const n of [1, 2]) stage.add(n, 9);
  const record = stage.records.get(1) as LogRecord;
  stage.records.delete(1);
  const retention = stage.start();
  await stage.until(() => removed(stage).length === 1);
  const fault =
    /^since 1970-01-01T00:01:40.000Z: captures of 1 run stay, because the run's record cannot be read \(not any more\); tried again once a minute$/;
  t.match(retention.fault, fault);
  stage.timers.advance(60_000);
  await stage.passEnded();
  t.match(retention.fault, fault, "since then, not since the last time");
  t.equal(stage.lines.filter(({ level }) => level === "error").length, 1, "and said once in the log");
  stage.records.set(1, record);
  stage.timers.advance(60_000);
  await stage.until(() => removed(stage).length === 2);
  t.equal(retention.fault, null);
  t.same(retention.removed, { runs: 2, files: 2, bytes: 18 });
});

t.test(
  "files that cannot be unlinked hold up no others, are counted when they go, and stop new tombstones when they are many",
  async (t) => {
    const stage = new Stage();
    const runs = 3 * RETENTION_BATCH_RUNS;
    for (let n = 1; n <= runs; n++) stage.add(n, 9);
    stage.stuck.add(idOf(1));
    const retention = stage.start();
    await stage.passEnded();
    t.equal(stage.captureIndex.runs, 0, "all have their tombstones");
    t.same(retention.removed, { runs: runs - 1, files: runs - 1, bytes: 9 * (runs - 1) });
    t.match(
      retention.fault,
      /^since 1970-01-01T00:01:40.\d{3}Z: a removed capture cannot be unlinked \(unlink captures\/x.cap: EPERM\); tried again/,
    );
    stage.stuck.clear();
    stage.timers.advance(60_000);
    await stage.passEnded();
    t.equal(retention.fault, null, "and tried again although many tombstones came after it");
    t.same(retention.removed, { runs, files: runs, bytes: 9 * runs });

    for (let n = runs + 1; n <= 3 * runs; n++) {
      stage.add(n, 9);
      stage.stuck.add(idOf(n));
    }
    stage.timers.advance(60_000);
    await stage.passEnded();
    t.match(
      retention.fault,
      new RegExp(`${RETENTION_BATCH_RUNS} removed captures cannot be unlinked .*, and others\\)`),
    );
    t.equal(
      stage.captureIndex.runs,
      2 * runs - RETENTION_BATCH_RUNS,
      "where nothing can be unlinked, nothing more is marked",
    );
    stage.stuck.clear();
    stage.timers.advance(60_000);
    await stage.passEnded();
    t.equal(retention.fault, null);
    t.equal(stage.captureIndex.runs, 0);
    t.equal(retention.removed.bytes, 9 * 3 * runs);
  },
);

t.test("when the log can take no more for now, what is marked goes on and the rest comes later", async (t) => {
  const stage = new Stage();
  for (const n of [1, 2, 3]) stage.add(n, 9);
  let room = 2;
  let sequence = 0;
  stage.start({
    appendTombstone: () => {
      if (room-- <= 0) throw new StorageError("log_overloaded", "too much waits");
      return { sequence: ++sequence, timeUs: sequence };
    },
  });
  await stage.until(() => removed(stage).length === 1);
  t.same(stage.steps, ["durable 2", "let go 2", "remove 2", "let go 2"]);
  t.match(stage.lines[0], { level: "error", fields: { cause: "too much waits" } });
  room = 9;
  stage.timers.advance(60_000);
  await stage.until(() => removed(stage).length === 2);
  t.equal(stage.captureIndex.runs, 0);
});

t.test("a tombstone that does not become durable: nothing is unlinked any more", async (t) => {
  const stage = new Stage();
  for (const n of [1, 2]) stage.add(n, 9);
  const retention = stage.start({
    whenDurable: () => Promise.reject(new StorageError("log_failed", "EIO")),
  });
  await retention.stop();
  stage.timers.advance(10 * 60_000);
  await retention.stop();
  t.same(
    stage.steps.filter((step) => !step.startsWith("tombstone")),
    [],
  );
  t.same(removed(stage), [], "and nothing is said to be removed");
});

/** The run as it was recorded, with something made of its captures since. */
function recordedAgain(stage: Stage, n: number): { run: RunState; batch: CommittedBatch } {
  const { type, body } = stage.records.get(n) as LogRecord;
  const [change] = decodeChanges(type, body);
  if (change?.kind !== "run_ended") throw new Error("no end");
  const run = { ...change.run, summary: "again" };
  const encoded = encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined);
  const record = { ...encoded, flags: 0, sequence: 1_000 + n, timeUs: 1_000 + n };
  stage.records.set(1_000 + n, record);
  const segment = bytesOfSegment({ base: 1, salt: 1, records: [{ ...record, durableUpTo: 0 }] });
  const bytes = segment.subarray(SEGMENT_HEADER_BYTES);
  return { run, batch: { bytes, segmentBase: 1, offset: 1_000 + n, lastSequence: 1_000 + n } as CommittedBatch };
}

t.test("a run that is recorded once more while it is read goes as it is then, and once", async (t) => {
  for (const committedAt of ["while it is read", "after its tombstone"] as const) {
    const stage = new Stage();
    stage.add(1, 9);
    const { run, batch } = recordedAgain(stage, 1);
    const tombstones: (string | null)[] = [];
    let isAppended = false;
    const retention: Retention = stage.start({
      read: async ({ offset }) => {
        const record = stage.records.get(offset) as LogRecord;
        await Promise.resolve();
        if (!isAppended) {
          isAppended = true;
          retention.endAppended(run, 1_001);
          if (committedAt === "while it is read") retention.committed(batch);
        }
        return record;
      },
      appendTombstone: ({ summary }) => {
        tombstones.push(summary);
        return { sequence: 2_000, timeUs: 2_000 };
      },
      whenDurable: async () => retention.committed({ ...batch, lastSequence: 2_000 }),
    });
    await stage.until(() => removed(stage).length === 1);
    t.same(tombstones, ["again"], committedAt);
    t.equal(stage.captureIndex.runs, 0, "it is not kept once more");
    await retention.stop();
  }
});

t.test("by age: a clock that is wrong for certain makes nothing old, however long it goes so", async (t) => {
  const stage = new Stage();
  stage.add(1, 9);
  let nowMs = 0;
  stage.nowUs = TIME_LIMIT_US;
  stage.start({ policy: { days: 1, bytes: null }, monotonicMs: () => nowMs });
  await stage.passEnded();
  nowMs = 48 * 3_600_000;
  for (const isWrong of [true, false]) {
    stage.nowUs = isWrong ? TIME_LIMIT_US : TIME_LIMIT_US - 1;
    stage.timers.advance(60_000);
    await stage.passEnded();
    t.equal(removed(stage).length, isWrong ? 0 : 1, "any other clock is trusted after a day");
  }
});
