import { isProcessingOpen } from "../../../core/capture/artefact.js";
import type { RunState } from "../../../core/run/run-state.js";
import { monotonicMs } from "../../../core/service-clock.js";
import type { Timers } from "../../../core/timers.js";
import { formatTimeUs, TIME_LIMIT_US } from "../../../core/timestamps.js";
import {
  type CaptureIndex,
  type KeptCaptures,
  keptCaptures,
  RETENTION_BATCH_RUNS,
} from "../../../storage/captures/capture-index.js";
import type { RemovedCaptures } from "../../../storage/captures/capture-store.js";
import {
  type CommittedBatch,
  forEachRecord,
  type LogRecord,
  type RecordLocation,
} from "../../../storage/log/committed-batch.js";
import { decodeChanges } from "../../../storage/records/change-record.js";
import { indexedEnd } from "../../../storage/records/record-fold.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { StorageError } from "../../../storage/storage-error.js";
import type { LogLine, RetentionPolicy } from "../recorder-messages.js";
import type { RemovedCounts } from "../status/recorder-figures.js";
import { RetentionClock } from "./retention-clock.js";
import { RetentionFaults } from "./retention-faults.js";

/** How often retention looks for old captures. It looks at the total size whenever a run ends. */
const INTERVAL_MS = 60_000;
/**
 * One batch rewrites at most this many bytes of records. So it delays messages no longer than a large message would.
 */
const BATCH_RECORD_BYTES = 4 * 1024 * 1024;
const PROGRESS_US = 10_000_000;
const DAY_US = 86_400_000_000;

export interface RetentionOptions {
  policy: RetentionPolicy;
  dataDirectory: string;
  captureIndex: CaptureIndex;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  /** Milliseconds that never step; default: the process's. */
  monotonicMs?(): number;
  /** The last time of the store's clock. */
  lastTimeUs(): number;
  /** Captures of records behind this sequence number stay, because the plant lacks them; default: no bound. */
  shippedSequence?(): number;
  /** Reads a consolidated record back. */
  read(location: RecordLocation): Promise<LogRecord>;
  /** Records that the run's captures are removed. @returns the record's sequence number and time. Throws if it cannot be recorded now. */
  appendTombstone(run: RunState): { sequence: number; timeUs: number };
  /** Resolves when the record would survive a power cut; rejects when it will not. */
  whenDurable(sequence: number): Promise<void>;
  /** Resolves when the readers know the tombstones of these runs and have closed their capture files. */
  letGo(runIds: readonly string[]): Promise<void>;
  /** Durably unlinks the capture files. */
  removeCaptures(runIds: readonly string[]): Promise<RemovedCaptures>;
  /** Called when `removed` or `fault` may have changed. */
  onChange(): void;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/**
 * Removes the captures of ended runs by age and by bytes, oldest run first. It works in batches of runs, in this order:
 *
 * 1. Write a tombstone for each run: its consolidated record again, with the time of removal.
 * 2. Make the tombstones durable, in every durability mode.
 * 3. Wait until the readers have closed the files.
 * 4. Unlink the files, durably.
 *
 * So no capture is ever gone without a tombstone. After a crash between 2 and 4 the files of at most one batch are
 * left. The next start continues with step 3 for the last tombstones, even if retention is off by then.
 *
 * A file that cannot be unlinked does not hold up others. It is tried again once a minute, and `fault` says so
 * meanwhile. A run whose record cannot be read keeps its captures until it can be read, and `fault` names it too. A
 * clock in doubt makes nothing old (`RetentionClock`).
 */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #captureIndex: CaptureIndex;
  #timer: unknown = null;
  #running: Promise<void> | null = null;
  /** Run ends that are not committed yet, by sequence number. */
  readonly #endsInFlight = new Map<number, RunState>();
  #isStarted = false;
  #isStopped = false;
  #isWoken = false;
  /** Bytes of captures that this process wrote a tombstone for and has not unlinked yet, by run id. */
  readonly #marked = new Map<string, number>();
  readonly #faults: RetentionFaults;
  readonly #clock: RetentionClock;
  /**
   * True: the next pass tries again what failed. This is set at the start and after each interval, not by each run that
   * ends.
   */
  #isRetryDue = true;
  /** What was removed since the last line in the log. */
  #removedRuns = 0;
  #removedBytes = 0;
  #lastLineUs = 0;
  readonly #removed = { runs: 0, files: 0, bytes: 0 };

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#captureIndex = options.captureIndex;
    this.#faults = new RetentionFaults(options);
    this.#clock = new RetentionClock(options.monotonicMs ?? monotonicMs);
  }

  get removed(): RemovedCounts {
    return { ...this.#removed };
  }

  /** What retention cannot do, and since when, for people; null if it can do everything. */
  get fault(): string | null {
    return this.#faults.text;
  }

  /** Finishes what a crash cut off. Then, if there is a policy, follows it from now on. */
  start(): void {
    this.#isStarted = true;
    this.#start();
  }

  /** The plant has more captures than before. */
  capturesShipped(): void {
    if (this.#isOn && this.#isStarted) this.#start();
  }

  /** A run's end was appended to the log. Its location is known once it is committed. */
  endAppended(run: RunState, sequence: number): void {
    if (this.#isOn && run.capturesRemovedAtUs === null) this.#endsInFlight.set(sequence, run);
  }

  /** Takes over the captures of runs whose ends are committed with this batch. */
  committed(batch: CommittedBatch): void {
    const ends = this.#endsInFlight;
    const [first = Number.POSITIVE_INFINITY] = ends.keys();
    if (first > batch.lastSequence) return;
    forEachRecord(batch, (record, location) => {
      if (record.type !== RECORD_TYPE.runEnded || !ends.delete(record.sequence)) return;
      const { run, captures } = indexedEnd(record.index);
      this.#captureIndex.keep(keptCaptures(run, captures, location));
    });
    const { bytes } = this.#options.policy;
    if (bytes === null || this.#captureIndex.bytes <= bytes || !this.#isStarted) return;
    this.#isWoken = true;
    this.#start();
  }

  /** Resolves when nothing is under way any more. The next start continues what was begun. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#options.timers.clear(this.#timer);
    await this.#running;
  }

  get #isOn(): boolean {
    const { days, bytes } = this.#options.policy;
    return days !== null || bytes !== null;
  }

  #start(): void {
    if (this.#running !== null || this.#isStopped) return;
    this.#isWoken = false;
    this.#running = this.#pass()
      .catch((error: unknown) => {
        if (this.#isStopped) return;
        this.#faults.passFailed(error);
      })
      .then(() => {
        this.#running = null;
        this.#report();
        if (this.#isStopped) return;
        this.#options.onChange();
        if (this.#isWoken || this.#isRetryDue) this.#start();
        // Files that could not be unlinked are tried again even if retention is off by now.
        else if (this.#isOn || this.#unfinished.length > 0) this.#later();
      });
  }

  #later(): void {
    this.#timer ??= this.#options.timers.set(() => {
      this.#timer = null;
      this.#isRetryDue = true;
      this.#start();
    }, INTERVAL_MS);
  }

  async #pass(): Promise<void> {
    this.#lastLineUs = this.#options.wallUs();
    const isRetry = this.#isRetryDue;
    this.#isRetryDue = false;
    if (isRetry) {
      this.#faults.beginRetry();
      this.#captureIndex.takeBack();
    }
    await this.#unlink(isRetry ? this.#unfinished : this.#captureIndex.unfinished());
    if (this.#isOn) {
      while (!this.#isStopped && !this.#isBlocked && (await this.#markBatch())) {
        await this.#unlink(this.#captureIndex.unfinished());
        if (this.#options.wallUs() - this.#lastLineUs >= PROGRESS_US) this.#report();
      }
    }
    if (!this.#isStopped) this.#faults.passEnded(!this.#isBlocked);
  }

  /** Runs with a tombstone whose files may still be there: those of the last batch, and those that could not be unlinked before. */
  get #unfinished(): string[] {
    return [...new Set([...this.#faults.keptRunIds, ...this.#captureIndex.unfinished()])];
  }

  /** True if a whole batch of files cannot be unlinked. More tombstones would free nothing either. */
  get #isBlocked(): boolean {
    return this.#faults.keptRunIds.length >= RETENTION_BATCH_RUNS;
  }

  /** Durably writes the tombstones of one batch. @returns false if nothing is due */
  async #markBatch(): Promise<boolean> {
    const { policy, lastTimeUs, appendTombstone, whenDurable } = this.#options;
    const endedByUs = this.#endedByUs();
    let lastSequence = 0;
    let runs = 0;
    let recordBytes = 0;
    while (runs < RETENTION_BATCH_RUNS && recordBytes < BATCH_RECORD_BYTES && !this.#isStopped) {
      const kept = this.#captureIndex.next(endedByUs, policy.bytes, lastTimeUs());
      if (kept === undefined) break;
      const stored = await this.#read(kept);
      if (stored === undefined) continue;
      if (stored === "open") {
        // Tried again with the next pass. Others need not wait for its formats.
        this.#captureIndex.setAside(kept.createdAtUs);
        continue;
      }
      // Runs are shipped in order. So later ones are not in the plant either.
      if (stored === "unshipped") break;
      if (this.#isStopped) break;
      const run = this.#inFlight(kept) ?? stored;
      try {
        const { sequence, timeUs } = appendTombstone(run);
        lastSequence = sequence;
        // The tombstone comes after these ends and replaces them.
        for (const [end, { id }] of this.#endsInFlight) if (id === run.id) this.#endsInFlight.delete(end);
        this.#captureIndex.removed(kept.createdAtUs, run.id, timeUs);
      } catch (error) {
        // The log is full for now. The runs marked so far go on; the rest can wait.
        if (runs === 0) throw error;
        break;
      }
      runs++;
      recordBytes += kept.location.length;
      this.#marked.set(run.id, kept.bytes);
    }
    if (runs === 0) return false;
    try {
      await whenDurable(lastSequence);
    } catch (error) {
      // The log has failed. Nothing may be unlinked any more: only a restart shows whether these tombstones are there.
      this.#isStopped = true;
      throw error;
    }
    return true;
  }

  /** The newest end of a run that counts as old; null if nothing is removed by age, or not by this clock. */
  #endedByUs(): number | null {
    const { policy, wallUs } = this.#options;
    if (policy.days === null) return null;
    const nowUs = wallUs();
    const endedByUs = nowUs - policy.days * DAY_US;
    const leadUs = this.#clock.doubtfulLeadUs(nowUs, (byUs) => this.#captureIndex.lastEndedUs(byUs));
    // Such a clock is certainly wrong, and health says so anyway. Retention never trusts it.
    if (nowUs >= TIME_LIMIT_US) return null;
    const isHeldBack = leadUs !== null && this.#captureIndex.next(endedByUs, null, 0) !== undefined;
    this.#faults.clockInDoubt(isHeldBack ? leadUs : null);
    return leadUs === null ? endedByUs : null;
  }

  /**
   * The run from its record. `unshipped` if the plant must get its captures first; `open` if they cannot be shipped before its formats are made.
   * Undefined if it cannot be read. Its captures stay until it can, and retention goes on with others.
   */
  async #read(kept: KeptCaptures): Promise<RunState | "unshipped" | "open" | undefined> {
    const { location } = kept;
    try {
      const record = await this.#options.read(location);
      const [change] = decodeChanges(record.type, record.body);
      if (change?.kind === "run_ended" && change.run.createdAtUs === kept.createdAtUs) {
        const later = this.#replacementOf(kept);
        if (later !== undefined) return this.#read(later);
        const shipped = this.#options.shippedSequence?.() ?? Number.POSITIVE_INFINITY;
        if (shipped === Number.POSITIVE_INFINITY) return change.run;
        if (isProcessingOpen(change.run)) return "open";
        return record.sequence <= shipped ? change.run : "unshipped";
      }
      throw new StorageError("record_damaged", "another record is stored where the run's record was");
    } catch (error) {
      if (this.#isStopped) return undefined;
      const later = this.#replacementOf(kept);
      if (later !== undefined) return this.#read(later);
      this.#captureIndex.setAside(kept.createdAtUs);
      this.#faults.cannotRead(kept.createdAtUs, error);
      return undefined;
    }
  }

  /** The run's newer record, if it got one while this one was read: processing records a run again. */
  #replacementOf(kept: KeptCaptures): KeptCaptures | undefined {
    const now = this.#captureIndex.locationOf(kept.createdAtUs);
    if (now === undefined) return undefined;
    const { segmentBase, offset } = kept.location;
    return now.offset === offset && now.segmentBase === segmentBase ? undefined : { ...kept, location: now };
  }

  /** The run from a record of its end that is not committed yet. */
  #inFlight({ createdAtUs }: KeptCaptures): RunState | undefined {
    let found: RunState | undefined;
    for (const run of this.#endsInFlight.values()) if (run.createdAtUs === createdAtUs) found = run;
    return found;
  }

  async #unlink(runIds: readonly string[]): Promise<void> {
    if (runIds.length === 0 || this.#isStopped) return;
    const { letGo, removeCaptures } = this.#options;
    await letGo(runIds);
    if (this.#isStopped) return;
    const { files, kept } = await removeCaptures(runIds);
    // A reader that looked at a run before its tombstone may have opened its file after the first call.
    await letGo(runIds);
    this.#captureIndex.finish();
    this.#faults.unlinked(runIds, kept);
    this.#removed.files += files;
    const keptRunIds = new Set(kept.map(({ runId }) => runId));
    for (const runId of runIds) {
      const bytes = this.#marked.get(runId);
      if (bytes === undefined || keptRunIds.has(runId)) continue;
      this.#marked.delete(runId);
      this.#removedRuns++;
      this.#removedBytes += bytes;
      this.#removed.runs++;
      this.#removed.bytes += bytes;
    }
    this.#options.onChange();
  }

  #report(): void {
    this.#lastLineUs = this.#options.wallUs();
    if (this.#removedRuns === 0) return;
    const oldest = this.#captureIndex.oldestCreatedAtUs;
    this.#options.line("info", "retention removed captures", {
      runs: this.#removedRuns,
      bytes: this.#removedBytes,
      kept_runs: this.#captureIndex.runs,
      kept_bytes: this.#captureIndex.bytes,
      oldest_kept: oldest === null ? null : formatTimeUs(oldest),
    });
    this.#removedRuns = 0;
    this.#removedBytes = 0;
  }
}
