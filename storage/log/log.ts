import type { Timers } from "../../core/timers.js";
import { type FileSystemError, isRepeatable, writeFully } from "../disk/file-system.js";
import { endedWithoutRoom, FAILS_WITHOUT_ROOM, type WriteRoom } from "../disk/write-room.js";
import { randomSalt, recoverLog } from "../recovery/recovery.js";
import type { RecoveryReport } from "../recovery/recovery-report.js";
import { StorageError } from "../storage-error.js";
import { LogGroup } from "./group-buffer.js";
import type { Durability, Durable, LogFailure, LogOptions, RecordInput } from "./log-options.js";
import { LOG_RECORD_TYPE } from "./record-format.js";
import { assertContentFits, createSegment, encodeSegmentStart, type WritableSegment } from "./segment.js";

const DEFAULT_SEGMENT_BYTES = 64 * 1024 * 1024;
const DEFAULT_INTERVAL_MS = 100;
/** Short enough that the last records of a busy cell are proven soon, long enough to cost nothing while records come. */
const DEFAULT_IDLE_MARK_MS = 250;
/** Several of the largest records, and a second of a fast disk. */
const DEFAULT_MAXIMUM_PENDING_BYTES = 256 * 1024 * 1024;
const FIRST_OWNER_TYPE = 16;
const EMPTY = new Uint8Array(0);

interface Waiter {
  sequence: number;
  resolve: () => void;
  reject: (error: StorageError) => void;
}

/**
 * The log: one writer, group commit. Records are encoded as they are appended, straight into the bytes of the next group; while a
 * group is written and synced the next one fills. A failed write or sync ends the log for good: nothing that waited is acknowledged,
 * `append` throws, and what is committed can still be read.
 *
 * The one exception is a write that failed for want of room or of memory: its group stays, and is written again, the same records under the
 * same numbers at the same place, when that is over (`LogOptions.room`). So does the next segment wait for room and for descriptors. The owner has folded these records in already, and what it decided
 * since stands on them, so they cannot be dropped. It is safe because nobody knows of the group yet: it has not been synced, no record
 * claims it, nothing of it was acknowledged or delivered; and because a refused write, unlike a failed sync, says nothing bad of the
 * bytes before it: those were synced, or a later sync of the same file will tell. What the write left behind the last committed record is
 * cut, and would be overwritten in any case; a crash before either finds a torn tail, as after any crash within a write.
 */
export class Log {
  /** Reads the log that is there, or creates it, and delivers all its records: see `LogOptions`. */
  static async open(options: LogOptions): Promise<Log> {
    const recovered = await recoverLog(options);
    return new Log(options, recovered);
  }

  /** What opening found. */
  readonly recovery: RecoveryReport;
  readonly #options: LogOptions;
  readonly #durability: Durability;
  readonly #segmentBytes: number;
  readonly #maximumPendingBytes: number;
  readonly #timers: Timers;
  readonly #room: WriteRoom;
  #segment: WritableSegment;
  /** Fills; belongs to the segment and the offset that it was begun for. */
  #filling: LogGroup;
  /** Being written, or empty. */
  #writing: LogGroup;
  #nextSequence: number;
  #committedSequence: number;
  #durableSequence: number;
  /** Last record written that is not a mark. */
  #lastDataSequence: number;
  /** Largest durable_up_to on disk. */
  #claimedSequence: number;
  #lastTimeUs: number;
  #failure: LogFailure | null = null;
  /** Why nothing more can be written, while all that was appended is committed: the owner stops on a full disk. Null while it can. */
  #noRoom: FileSystemError | null = null;
  #closing: Promise<void> | null = null;
  #isScheduled = false;
  /** Resolves when the commits under way are done. */
  #running: Promise<void> | null = null;
  #waiters: Waiter[] = [];
  /** In the modes that do not wait for a sync: what must be synced with the log, and whether anything must. */
  #unsyncedNeeds = new Set<Durable>();
  #sync: Promise<void> | null = null;
  #intervalTimer: unknown = null;
  #idleTimer: unknown = null;
  #sequenceAtIdleTimer = 0;

  private constructor(options: LogOptions, recovered: Awaited<ReturnType<typeof recoverLog>>) {
    this.#options = options;
    this.#durability = options.durability;
    this.#segmentBytes = options.segmentBytes ?? DEFAULT_SEGMENT_BYTES;
    this.#maximumPendingBytes = options.maximumPendingBytes ?? DEFAULT_MAXIMUM_PENDING_BYTES;
    this.#timers = options.timers ?? nodeTimers;
    this.#room = options.room ?? FAILS_WITHOUT_ROOM;
    this.recovery = recovered.report;
    this.#segment = recovered.segment;
    this.#nextSequence = recovered.nextSequence;
    this.#committedSequence = recovered.nextSequence - 1;
    this.#durableSequence = recovered.nextSequence - 1;
    this.#claimedSequence = recovered.claimedSequence;
    this.#lastDataSequence = recovered.lastDataSequence;
    this.#lastTimeUs = recovered.report.lastTimeUs;
    this.#filling = new LogGroup();
    this.#filling.begin(recovered.segment.salt, recovered.segment.endOffset, this.#nextSequence);
    this.#writing = new LogGroup();
    this.#armIdleTimer();
  }

  /** The number that the next appended record gets. */
  get nextSequence(): number {
    return this.#nextSequence;
  }

  /** Everything up to it is committed under the durability mode in force: this may be acknowledged. */
  get committedSequence(): number {
    return this.#committedSequence;
  }

  /** Everything up to it has been synced. */
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

  /** Why the log takes no more records; null while it does. */
  get failure(): LogFailure | null {
    return this.#failure;
  }

  /**
   * Adds a record to the next group.
   *
   * @returns its sequence number
   * @throws StorageError `log_failed`, `log_closed`, `log_overloaded`, `record_too_large`; nothing is appended then
   */
  append(input: RecordInput): number {
    if (this.#noRoom !== null) this.#fail(this.#noRoom);
    if (this.#failure !== null) throw failed(this.#failure);
    if (this.#closing !== null) throw new StorageError("log_closed", "the log was closed");
    if (!(input.type >= FIRST_OWNER_TYPE && input.type <= 0xffff)) {
      throw new RangeError(`record type ${input.type}: allowed are ${FIRST_OWNER_TYPE} to 65535`);
    }
    if (!(input.timeUs >= 0 && input.timeUs <= Number.MAX_SAFE_INTEGER)) {
      throw new RangeError(`record time ${input.timeUs}: allowed are 0 to 2^53 - 1 microseconds`);
    }
    assertContentFits("a record", input.index.length, input.body.length);
    const length = input.index.length + input.body.length;
    if (this.pendingBytes + length > this.#maximumPendingBytes) {
      throw new StorageError("log_overloaded", `${this.pendingBytes} bytes wait to be committed`, {
        pending_bytes: this.pendingBytes,
        maximum_pending_bytes: this.#maximumPendingBytes,
      });
    }
    return this.#append(input.type, input.flags ?? 0, input.timeUs, input.index, input.body, input.needs);
  }

  /** Resolves when the record is committed under the durability mode in force; rejects with `log_failed` when it will not be. */
  whenCommitted(sequence: number): Promise<void> {
    if (sequence <= this.#committedSequence) return Promise.resolve();
    if (this.#failure !== null) return Promise.reject(failed(this.#failure));
    if (this.#noRoom !== null) return Promise.reject(withoutRoom(this.#noRoom));
    if (sequence >= this.#nextSequence) throw new RangeError(`sequence ${sequence} was not appended yet`);
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters;
      let at = waiters.length;
      while (at > 0 && (waiters[at - 1]?.sequence ?? 0) > sequence) at--;
      const waiter = { sequence, resolve, reject };
      if (at === waiters.length) waiters.push(waiter);
      else waiters.splice(at, 0, waiter);
    });
  }

  /**
   * Resolves when the record has been synced, under every durability mode: for what must not be done before. Rejects with `log_failed`
   * when it will not be.
   */
  async whenDurable(sequence: number): Promise<void> {
    await this.whenCommitted(sequence);
    while (this.#durableSequence < sequence) {
      await this.#syncAll();
      if (this.#failure !== null) throw failed(this.#failure);
    }
  }

  /**
   * Makes the names in the log's folder durable, for who renames one. Its failure is the log's: the names of new segments lie in the same
   * folder, and once a sync has failed, a later one can succeed without having written what the first one lost.
   *
   * @throws StorageError `log_failed`
   */
  async syncNames(): Promise<void> {
    const { fileSystem, directory } = this.#options;
    await this.#room.attempt(() => fileSystem.syncDirectory(directory)).catch((error: unknown) => this.#fail(error));
    if (this.#failure !== null) throw failed(this.#failure);
  }

  /**
   * Looks whether the newest segment still has its name: a file that was unlinked or replaced takes writes and syncs as ever, and the next
   * start finds nothing of them. Then the log ends, as on a failed disk. Never rejects.
   */
  async verifyName(): Promise<void> {
    const segment = this.#segment;
    let isNamed: boolean;
    try {
      const status = await this.#options.fileSystem.statusOf(segment.path);
      isNamed = status?.identity === (await segment.file.identity());
    } catch {
      // Closed meanwhile, or the disk does not answer: a write or sync will say so.
      return;
    }
    if (isNamed || segment !== this.#segment || this.#closing !== null) return;
    this.#fail(new Error(`${segment.path} was removed or replaced`), "the file that it writes is gone");
  }

  /** Commits and syncs what is pending, proves it with a mark, and closes the files. After a failure it only closes. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#clearTimers();
    await this.#commitPending();
    await this.#syncAll();
    if (this.#failure === null && this.#noRoom === null && this.#lastDataSequence > this.#claimedSequence) {
      this.#append(LOG_RECORD_TYPE.mark, 0, this.#lastTimeUs, EMPTY, EMPTY, undefined);
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

  #append(
    type: number,
    flags: number,
    timeUs: number,
    index: Uint8Array,
    body: Uint8Array,
    needs: Durable | undefined,
  ): number {
    const sequence = this.#nextSequence++;
    if (timeUs > this.#lastTimeUs) this.#lastTimeUs = timeUs;
    this.#filling.add(type, flags, sequence, this.#durableSequence, timeUs, index, body, needs);
    if (this.#running === null && !this.#isScheduled) {
      this.#isScheduled = true;
      // Whatever else arrives in this turn of the event loop goes into the same group.
      setImmediate(() => {
        this.#isScheduled = false;
        if (this.#running === null && this.#filling.length > 0 && this.#failure === null) this.#start();
      });
    }
    return sequence;
  }

  #start(): void {
    // Not at once: until this is set, nothing may see that nobody commits.
    this.#running = Promise.resolve().then(() => this.#commitAll());
  }

  async #commitAll(): Promise<void> {
    try {
      while (this.#filling.length > 0 && this.#failure === null) {
        await this.#commitGroup();
        // Whoever waited for this group answers now, and its answer belongs in the next one.
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      const hasData = this.#writing.lastDataSequence > 0 || this.#filling.lastDataSequence > 0;
      const isWithoutRoom = endedWithoutRoom(error, this.#room);
      if (isWithoutRoom && isRepeatable(error) && !hasData) this.#endWithoutRoom(error);
      else this.#fail(error, isWithoutRoom ? "there was no room for what came last" : undefined, isWithoutRoom);
    } finally {
      this.#running = null;
      this.#writing.clear();
    }
    if (this.#failure === null) this.#armIdleTimer();
  }

  async #commitGroup(): Promise<void> {
    const group = this.#filling;
    const segment = this.#segment;
    const rotation = group.endOffset >= this.#segmentBytes ? this.#planRotation(group) : null;
    this.#filling = this.#writing;
    this.#writing = group;
    if (rotation === null) this.#filling.begin(segment.salt, group.endOffset, this.#nextSequence);
    else this.#filling.begin(rotation.salt, rotation.start.length, this.#nextSequence);

    const isFull = this.#durability === "full";
    if (group.needs.size > 0) {
      const settled = [...group.needs].map((need) => (isFull ? need.makeDurable() : need.whenWritten()));
      await Promise.all(settled);
    }
    const claim = this.#durableSequence;
    const bytes = group.seal(claim);
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
    // A sync beside the write may have failed meanwhile: then nothing more is acknowledged.
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
    this.#resolveWaiters();
    group.clear();
    if (rotation !== null) await this.#rotate(rotation);
  }

  async #write(segment: WritableSegment, bytes: Uint8Array, offset: number): Promise<void> {
    // Of another attempt: a sync may have failed while it waited for room.
    if (this.#failure !== null) throw failed(this.#failure);
    try {
      await writeFully(segment.file, bytes, offset, segment.path);
    } catch (error) {
      if (isRepeatable(error)) await cutBack(segment, offset);
      throw error;
    }
  }

  /** Decided when a group leaves, so that the opening state is that of everything appended so far. */
  #planRotation(group: LogGroup): { base: number; salt: number; start: Uint8Array } {
    const salt = (this.#options.createSalt ?? randomSalt)();
    const base = group.lastSequence + 1;
    const openingState = this.#options.openingState();
    return { base, salt, start: encodeSegmentStart({ base, salt, openingState, timeUs: this.#lastTimeUs }) };
  }

  async #rotate(rotation: { base: number; salt: number; start: Uint8Array }): Promise<void> {
    await this.#syncAll();
    if (this.#failure !== null) return;
    const { fileSystem, directory } = this.#options;
    const closed = this.#segment;
    const { base, salt, start } = rotation;
    // Repeatable: until it succeeds nothing has been written to the segment but its start, which is the same each time.
    this.#segment = await this.#room.attempt(() => createSegment(fileSystem, directory, base, salt, start));
    this.#claimedSequence = rotation.base - 1;
    await closed.file.close();
  }

  /** Makes all that is committed durable. One sync at a time: the segment's file must not be closed under one. Never rejects. */
  async #syncAll(): Promise<void> {
    while (this.#sync !== null) await this.#sync;
    // What is committed is made durable also where what came behind it found no room.
    if (this.#isBroken || this.#durableSequence >= this.#committedSequence) return;
    this.#sync = this.#syncCommitted(this.#committedSequence)
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#sync = null;
      });
    await this.#sync;
  }

  /** First what the records refer to, then the records. */
  async #syncCommitted(sequence: number): Promise<void> {
    const needs = this.#unsyncedNeeds;
    this.#unsyncedNeeds = new Set();
    const { file } = this.#segment;
    await Promise.all([...needs].map((need) => need.makeDurable()));
    await file.datasync();
    this.#durableSequence = sequence;
  }

  #armIntervalTimer(): void {
    if (this.#durability !== "interval" || this.#intervalTimer !== null || this.#closing !== null) return;
    this.#intervalTimer = this.#timers.set(() => {
      this.#intervalTimer = null;
      void this.#syncAll().then(() => {
        if (this.#failure !== null) return;
        if (this.#durableSequence < this.#committedSequence) this.#armIntervalTimer();
        this.#armIdleTimer();
      });
    }, this.#options.intervalMs ?? DEFAULT_INTERVAL_MS);
  }

  /** When nothing is appended for a while, a mark proves the last records: damage to them is corruption then, not a torn tail. */
  #armIdleTimer(): void {
    if (this.#idleTimer !== null || this.#closing !== null || this.#noRoom !== null || !this.#wantsMark()) return;
    this.#sequenceAtIdleTimer = this.#nextSequence;
    this.#idleTimer = this.#timers.set(() => {
      this.#idleTimer = null;
      if (this.#failure !== null || this.#closing !== null || !this.#wantsMark()) return;
      if (this.#nextSequence !== this.#sequenceAtIdleTimer || this.#running !== null) this.#armIdleTimer();
      else this.#append(LOG_RECORD_TYPE.mark, 0, this.#lastTimeUs, EMPTY, EMPTY, undefined);
    }, this.#options.idleMarkMs ?? DEFAULT_IDLE_MARK_MS);
  }

  /** True when the last data is durable and no record on disk says so. */
  #wantsMark(): boolean {
    return this.#lastDataSequence > this.#claimedSequence && this.#durableSequence >= this.#lastDataSequence;
  }

  #resolveWaiters(): void {
    const waiters = this.#waiters;
    let count = 0;
    while (count < waiters.length && (waiters[count]?.sequence ?? 0) <= this.#committedSequence) count++;
    if (count === 0) return;
    this.#waiters = waiters.slice(count);
    for (let at = 0; at < count; at++) waiters[at]?.resolve();
  }

  /**
   * There is no room for a mark, or for the next segment, and none is waited for any more, since the owner stops: nothing that anybody appended is without its
   * place on the disk. Only what is appended from now on makes a failure of it.
   */
  #endWithoutRoom(error: FileSystemError): void {
    this.#noRoom = error;
    this.#clearTimers();
    this.#filling.clear();
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(withoutRoom(error));
  }

  /** Nothing that a write or sync says counts any more. */
  get #isBroken(): boolean {
    return this.#failure !== null && !this.#failure.params.without_room;
  }

  #fail(error: unknown, what = "a write or sync failed", isWithoutRoom = false): void {
    if (this.#isBroken || (isWithoutRoom && this.#failure !== null)) return;
    const cause = error instanceof Error ? error.message : String(error);
    const first = this.#committedSequence + 1;
    this.#failure = {
      code: "log_failed",
      message: `the log takes no more records since ${what}: ${cause}`,
      params: { cause, first_sequence: first, since: new Date().toISOString(), without_room: isWithoutRoom },
    };
    this.#clearTimers();
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(failed(this.#failure));
    this.#filling.clear();
    this.#options.onFailure?.(this.#failure);
  }

  #clearTimers(): void {
    if (this.#intervalTimer !== null) this.#timers.clear(this.#intervalTimer);
    if (this.#idleTimer !== null) this.#timers.clear(this.#idleTimer);
    this.#intervalTimer = null;
    this.#idleTimer = null;
  }
}

const nodeTimers: Timers = {
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
};

/** Gives back the room that a write took before it found no more, and leaves the segment as it was. */
async function cutBack(segment: WritableSegment, endOffset: number): Promise<void> {
  try {
    await segment.file.truncate(endOffset);
  } catch (error) {
    // A file system that needs room to cut leaves what the next attempt overwrites.
    if (!isRepeatable(error)) throw error;
  }
}

function withoutRoom({ message }: FileSystemError): StorageError {
  return new StorageError("log_failed", `there is no room for it: ${message}`, { cause: message });
}

function failed(failure: LogFailure): StorageError {
  return new StorageError(failure.code, failure.message, failure.params);
}
