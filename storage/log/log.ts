import { isRepeatable } from "../disk/file-system-error.js";
import { endedWithoutRoom, FAILS_WITHOUT_ROOM, type WriteRoom } from "../disk/retried-writes.js";
import { randomSalt, recoverLog } from "../recovery/recovery.js";
import type { RecoveryReport } from "../recovery/recovery-report.js";
import { StorageError } from "../storage-error.js";
import { assertRecordInput, LogGroup } from "./group-commit.js";
import { endError, failed, logFailure } from "./log-failure.js";
import type { Durability, Durable, LogFailure, LogOptions, RecordInput } from "./log-options.js";
import { LogTimers } from "./log-timers.js";
import { MARK } from "./record-format.js";
import { RecordWaits } from "./record-waits.js";
import { createSegment, encodeSegmentStart, type Rotation, type WritableSegment, writeOrCutBack } from "./segment.js";

const DEFAULT_SEGMENT_BYTES = 64 * 1024 * 1024;
/** Room for several of the largest records, and for a second of a fast disk. */
const DEFAULT_MAXIMUM_PENDING_BYTES = 256 * 1024 * 1024;

/**
 * The log: one writer, group commit. `append` encodes a record straight into the bytes of the next group; while one group is written and synced, the
 * next one fills. A failed write or sync ends the log for good: nothing that waited is acknowledged, `append` throws, and what is committed can
 * still be read.
 *
 * The one exception is a write that failed for lack of room or memory (`LogOptions.room`). Its group waits and is written again: the same records
 * under the same sequence numbers at the same place. A new segment waits for room and descriptors in the same way. The records cannot be dropped,
 * because the owner has folded them in already and based later decisions on them. Writing again is safe for two reasons. Nobody knows of the group
 * yet: it was not synced, claimed, acknowledged or delivered. And a refused write, unlike a failed sync, says nothing about the bytes before it.
 */
export class Log {
  /** Reads the log that is there, or creates it, and delivers all its records: see `LogOptions`. */
  static async open(options: LogOptions): Promise<Log> {
    return new Log(options, await recoverLog(options));
  }

  /** What opening found. */
  readonly recovery: RecoveryReport;
  readonly #options: LogOptions;
  readonly #durability: Durability;
  readonly #segmentBytes: number;
  readonly #maximumPendingBytes: number;
  readonly #timers: LogTimers;
  readonly #room: WriteRoom;
  #segment: WritableSegment;
  /** Takes appended records. It belongs to the segment and the offset that it was begun for. */
  #filling = new LogGroup();
  /** Is being written, or is empty. */
  #writing = new LogGroup();
  #nextSequence: number;
  #committedSequence: number;
  #durableSequence: number;
  /** Sequence number of the last written record that is not a mark. */
  #lastDataSequence: number;
  /** The largest durable_up_to on disk. */
  #claimedSequence: number;
  #lastTimeUs: number;
  #failure: LogFailure | null = null;
  /** Set when the owner stops on a full disk: nothing more can be written, but all that was appended is committed. */
  #noRoom: Error | null = null;
  #closing: Promise<void> | null = null;
  #isScheduled = false;
  /** Resolves when the commits under way are done. */
  #running: Promise<void> | null = null;
  readonly #waits = new RecordWaits();
  /** In the modes that do not wait for a sync: what must be synced together with the log. */
  #unsyncedNeeds = new Set<Durable>();
  #sync: Promise<void> | null = null;

  private constructor(options: LogOptions, recovered: Awaited<ReturnType<typeof recoverLog>>) {
    this.#options = options;
    this.#durability = options.durability;
    this.#segmentBytes = options.segmentBytes ?? DEFAULT_SEGMENT_BYTES;
    this.#maximumPendingBytes = options.maximumPendingBytes ?? DEFAULT_MAXIMUM_PENDING_BYTES;
    this.#timers = new LogTimers(options);
    this.#room = options.room ?? FAILS_WITHOUT_ROOM;
    this.recovery = recovered.report;
    this.#segment = recovered.segment;
    this.#nextSequence = recovered.nextSequence;
    this.#committedSequence = recovered.nextSequence - 1;
    this.#durableSequence = recovered.nextSequence - 1;
    this.#claimedSequence = recovered.claimedSequence;
    this.#lastDataSequence = recovered.lastDataSequence;
    this.#lastTimeUs = recovered.report.lastTimeUs;
    this.#filling.begin(recovered.segment.salt, recovered.segment.endOffset, this.#nextSequence);
    this.#armIdleTimer();
  }

  /** The sequence number that the next appended record gets. */
  get nextSequence(): number {
    return this.#nextSequence;
  }

  /** Everything up to this sequence number is committed under the durability mode in force, and may be acknowledged. */
  get committedSequence(): number {
    return this.#committedSequence;
  }

  /** Everything up to this sequence number has been synced. */
  get durableSequence(): number {
    return this.#durableSequence;
  }

  /** Bytes of records appended and not yet committed. */
  get pendingBytes(): number {
    return this.#filling.length + this.#writing.length;
  }

  /** The largest time of any record. */
  get lastTimeUs(): number {
    return this.#lastTimeUs;
  }

  /** Why the log takes no more records; null while it takes them. */
  get failure(): LogFailure | null {
    return this.#failure;
  }

  /**
   * Adds a record to the next group.
   *
   * @returns its sequence number
   * @throws StorageError `log_failed`, `log_closed`, `log_overloaded`, `record_too_large`, RangeError without memory; then nothing was appended
   */
  append(input: RecordInput): number {
    if (this.#noRoom !== null) this.#fail(this.#noRoom);
    if (this.#failure !== null) throw failed(this.#failure);
    if (this.#closing !== null) throw new StorageError("log_closed", "the log was closed");
    assertRecordInput(input);
    const length = input.index.length + input.body.length;
    if (this.pendingBytes + length > this.#maximumPendingBytes) {
      throw new StorageError(
        "log_overloaded",
        `${this.pendingBytes} bytes wait to be committed; at most ${this.#maximumPendingBytes} may wait`,
        { pending_bytes: this.pendingBytes, maximum_pending_bytes: this.#maximumPendingBytes },
      );
    }
    return this.#append(input);
  }

  /** Resolves when the record is committed under the durability mode in force. Rejects with `log_failed` when it never will be. */
  whenCommitted(sequence: number): Promise<void> {
    if (sequence <= this.#committedSequence) return Promise.resolve();
    const ended = endError(this.#failure, this.#noRoom);
    if (ended !== null) return Promise.reject(ended);
    if (sequence >= this.#nextSequence) throw new RangeError(`record ${sequence} was not appended yet`);
    return new Promise((resolve, reject) => {
      const onEnd = (): void => reject(endError(this.#failure, this.#noRoom));
      this.#waits.add(sequence, (isCommitted) => (isCommitted ? resolve() : onEnd()));
    });
  }

  /** Resolves when the record has been synced, in every durability mode. Rejects with `log_failed` when it never will be. */
  async whenDurable(sequence: number): Promise<void> {
    await this.whenCommitted(sequence);
    while (this.#durableSequence < sequence) {
      await this.#syncAll();
      if (this.#failure !== null) throw failed(this.#failure);
    }
  }

  /**
   * Makes the names in the log's folder durable, after a hint file got its name there. A failure fails the log too. The reason: the names of new
   * segments are in the same folder. After a failed sync, a later sync can succeed without having written what the first one lost.
   *
   * @throws StorageError `log_failed`
   */
  async syncNames(): Promise<void> {
    const { fileSystem, directory } = this.#options;
    await this.#room.attempt(() => fileSystem.syncDirectory(directory)).catch((error: unknown) => this.#fail(error));
    if (this.#failure !== null) throw failed(this.#failure);
  }

  /**
   * Fails the log if somebody removed or replaced the newest segment's file. Such a file accepts writes and syncs as before, but the next start would
   * find nothing of them. Never rejects.
   */
  async verifyName(): Promise<void> {
    const segment = this.#segment;
    let isNamed: boolean;
    try {
      const status = await this.#options.fileSystem.statusOf(segment.path);
      isNamed = status?.identity === (await segment.file.identity());
    } catch {
      // The file was closed meanwhile, or the disk does not answer: then a write or sync will fail.
      return;
    }
    if (isNamed || segment !== this.#segment || this.#closing !== null) return;
    this.#fail(new Error(`somebody removed or replaced ${segment.path}`), "the file that it was writing is gone");
  }

  /** Commits and syncs what is pending, proves it with a mark, and closes the files. After a failure it only closes the files. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#timers.clear();
    await this.#commitPending();
    await this.#syncAll();
    if (this.#failure === null && this.#noRoom === null && this.#lastDataSequence > this.#claimedSequence) {
      this.#append({ ...MARK, timeUs: this.#lastTimeUs });
      await this.#commitPending();
      await this.#syncAll();
    }
    await this.#segment.file.close();
    if (this.#failure !== null) throw failed(this.#failure);
  }

  async #commitPending(): Promise<void> {
    if (this.#running === null && this.#filling.length > 0 && this.#failure === null) this.#start();
    while (this.#running !== null) await this.#running;
  }

  #append(input: RecordInput): number {
    // First, because it throws when there is no memory. A sequence number that is taken and not used would look like a lost record.
    this.#filling.add(this.#nextSequence, this.#durableSequence, input);
    const sequence = this.#nextSequence++;
    if (input.timeUs > this.#lastTimeUs) this.#lastTimeUs = input.timeUs;
    if (this.#running === null && !this.#isScheduled) {
      this.#isScheduled = true;
      // Everything that arrives in this turn of the event loop goes into the same group.
      setImmediate(() => {
        this.#isScheduled = false;
        if (this.#running === null && this.#filling.length > 0 && this.#failure === null) this.#start();
      });
    }
    return sequence;
  }

  #start(): void {
    // Deferred, so that `#running` is set before the commit begins.
    this.#running = Promise.resolve().then(() => this.#commitAll());
  }

  async #commitAll(): Promise<void> {
    try {
      while (this.#filling.length > 0 && this.#failure === null) {
        await this.#commitGroup();
        // Producers that waited for this group answer now, and their next records belong in the next group.
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      const hasData = this.#writing.lastDataSequence > 0 || this.#filling.lastDataSequence > 0;
      const isWithoutRoom = endedWithoutRoom(error, this.#room);
      if (isWithoutRoom && isRepeatable(error) && !hasData) this.#endWithoutRoom(error);
      else this.#fail(error, isWithoutRoom ? "there was no room for the last records" : undefined, isWithoutRoom);
    } finally {
      this.#running = null;
      this.#writing.clear();
    }
    if (this.#failure === null) this.#armIdleTimer();
  }

  async #commitGroup(): Promise<void> {
    const segment = this.#segment;
    const { group, rotation } = await this.#room.attempt(async () => this.#takeGroup());
    const isFull = this.#durability === "full";
    if (group.needs.size > 0) {
      await Promise.all([...group.needs].map((need) => (isFull ? need.makeDurable() : need.whenWritten())));
    }
    const claim = this.#durableSequence;
    const bytes = group.finish(claim);
    await this.#room.attempt(() => this.#write(segment, bytes, group.offset));
    segment.endOffset = group.endOffset;
    this.#claimedSequence = claim;
    if (isFull) {
      await segment.file.datasync();
      this.#durableSequence = group.lastSequence;
    } else {
      for (const need of group.needs) this.#unsyncedNeeds.add(need);
      this.#armIntervalTimer();
    }
    // A sync in parallel may have failed meanwhile: then nothing more is acknowledged.
    if (this.#failure !== null) return;
    if (group.lastDataSequence > 0) this.#lastDataSequence = group.lastDataSequence;
    this.#committedSequence = group.lastSequence;
    this.#options.onCommitted?.({
      bytes,
      segmentBase: segment.base,
      offset: group.offset,
      firstSequence: group.firstSequence,
      lastSequence: group.lastSequence,
      lastTimeUs: group.lastTimeUs,
    });
    this.#waits.reached(group.lastSequence);
    group.clear();
    if (rotation !== null) await this.#rotate(rotation);
  }

  /** Returns the filled group; the other one is filled from now on. Without memory for the next segment's start it throws and changes nothing. */
  #takeGroup(): { group: LogGroup; rotation: Rotation | null } {
    if (this.#failure !== null) throw failed(this.#failure);
    const group = this.#filling;
    const rotation = group.endOffset >= this.#segmentBytes ? this.#planRotation(group) : null;
    [this.#filling, this.#writing] = [this.#writing, group];
    const { salt } = rotation ?? this.#segment;
    this.#filling.begin(salt, rotation?.start.length ?? group.endOffset, this.#nextSequence);
    return { group, rotation };
  }

  async #write(segment: WritableSegment, bytes: Uint8Array, offset: number): Promise<void> {
    // A sync may have failed while this write waited for room.
    if (this.#failure !== null) throw failed(this.#failure);
    this.#options.beforeWrite?.(bytes.length);
    await writeOrCutBack(segment, bytes, offset);
  }

  /** Plans the next segment. Called when the last group before it begins to be written, so that the opening state covers all that was appended. */
  #planRotation({ lastSequence }: LogGroup): Rotation {
    const { createSalt = randomSalt, openingState } = this.#options;
    const plan = { base: lastSequence + 1, salt: createSalt() };
    return { ...plan, start: encodeSegmentStart({ ...plan, openingState: openingState(), timeUs: this.#lastTimeUs }) };
  }

  async #rotate({ base, salt, start }: Rotation): Promise<void> {
    await this.#syncAll();
    if (this.#failure !== null) return;
    const { fileSystem, directory } = this.#options;
    const closed = this.#segment.file;
    // This can be repeated: until it succeeds, only the segment's start has been written, which is the same each time.
    this.#segment = await this.#room.attempt(() => createSegment(fileSystem, directory, base, salt, start));
    this.#claimedSequence = base - 1;
    await closed.close();
  }

  /** Makes everything committed durable. There is one sync at a time, because the segment's file must not be closed during one. Never rejects. */
  async #syncAll(): Promise<void> {
    while (this.#sync !== null) await this.#sync;
    // Committed records are made durable even if later ones found no room.
    if (this.#isBroken || this.#durableSequence >= this.#committedSequence) return;
    this.#sync = this.#syncCommitted(this.#committedSequence)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#sync = null;
      });
    await this.#sync;
  }

  /** Syncs first what the records refer to, then the records. */
  async #syncCommitted(sequence: number): Promise<void> {
    const needs = this.#unsyncedNeeds;
    this.#unsyncedNeeds = new Set();
    const { file } = this.#segment;
    await Promise.all([...needs].map((need) => need.makeDurable()));
    await file.datasync();
    this.#durableSequence = sequence;
  }

  #armIntervalTimer(): void {
    if (this.#durability !== "interval" || this.#closing !== null) return;
    this.#timers.armInterval(() => {
      void this.#syncAll().then(() => {
        if (this.#failure !== null) return;
        if (this.#durableSequence < this.#committedSequence) this.#armIntervalTimer();
        this.#armIdleTimer();
      });
    });
  }

  /** When nothing is appended for a while, a mark proves the last records. Damage to them then counts as corruption, not as a torn tail. */
  #armIdleTimer(): void {
    if (this.#closing !== null || this.#noRoom !== null || !this.#wantsMark()) return;
    const { nextSequence } = this;
    this.#timers.armIdle(() => {
      if (this.#failure !== null || this.#closing !== null || !this.#wantsMark()) return;
      if (this.#nextSequence !== nextSequence || this.#running !== null) this.#armIdleTimer();
      else this.#append({ ...MARK, timeUs: this.#lastTimeUs });
    });
  }

  /** True when the last data is durable, but no record on disk says so. */
  #wantsMark(): boolean {
    return this.#lastDataSequence > this.#claimedSequence && this.#durableSequence >= this.#lastDataSequence;
  }

  /**
   * Ends writing when the owner stops and there is no room for a mark or the next segment. All appended records are on the disk, so this is no
   * failure, unless somebody appends another record.
   */
  #endWithoutRoom(error: Error): void {
    this.#noRoom = error;
    this.#timers.clear();
    this.#filling.clear();
    this.#waits.abandon();
  }

  /** True when later writes and syncs do not count any more. */
  get #isBroken(): boolean {
    return this.#failure !== null && !this.#failure.params.without_room;
  }

  #fail(error: unknown, what = "a write or sync failed", isWithoutRoom = false): void {
    if (this.#isBroken || (isWithoutRoom && this.#failure !== null)) return;
    const failure = logFailure(error, what, this.#committedSequence + 1, isWithoutRoom);
    this.#failure = failure;
    this.#timers.clear();
    this.#waits.abandon();
    this.#filling.clear();
    this.#options.onFailure?.(failure);
  }
}
