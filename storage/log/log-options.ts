import type { Timers } from "../../core/timers.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import type { WriteRoom } from "../disk/retried-writes.js";
import type { StorageErrorData } from "../storage-error.js";
import type { CommittedBatch } from "./committed-batch.js";

/**
 * When a record counts as committed, so that its producer gets the acknowledgement:
 * - `full`: after write and fdatasync. Survives a power cut.
 * - `interval`: after the write; fdatasync every `intervalMs`. Survives the end of the process; a power cut can take the last interval.
 * - `none`: after the write; the system writes back when it likes. Survives the end of the process only.
 */
export type Durability = "full" | "interval" | "none";

/** Stored bytes that a record refers to: a capture file with writes under way. If a promise rejects, the log fails too. */
export interface Durable {
  /** Resolves when everything appended so far has been written and synced, and its file's name too. */
  makeDurable(): Promise<void>;
  /** Resolves when everything appended so far has been written. For the modes in which a record does not wait for a sync. */
  whenWritten(): Promise<void>;
}

export interface RecordInput {
  /** 16 to 65,535; lower types are the log's own. */
  type: number;
  /** Default 0. */
  flags?: number;
  /** A time of the service's clock. */
  timeUs: number;
  /** Copied by `append`. */
  index: Uint8Array;
  /** Copied by `append`. */
  body: Uint8Array;
  /** Made durable before the group that holds the record is written. */
  needs?: Durable;
}

export interface RecordContent {
  index: Uint8Array;
  body: Uint8Array;
}

/** A segment that another one follows: it never changes again. */
export interface SealedSegment {
  base: number;
  nextBase: number;
}

/** What proves, beside the log itself, that the log held records: see log-evidence.ts. */
export interface LogEvidence {
  /** Every record up to this one was durable; 0 when it is not known how many there were. */
  sequence: number;
  /** The file that proves it, relative to the data directory. */
  source: string;
}

export interface LogOptions {
  fileSystem: FileSystem;
  /** Folder of the segments. It exists. */
  directory: string;
  /** Folder for copies of damaged bytes. It exists. */
  quarantineDirectory: string;
  durability: Durability;
  /** Time between syncs in mode `interval`; default 100. */
  intervalMs?: number;
  /** A segment that reaches this size is closed; default 64 MiB. It can be larger by one group. */
  segmentBytes?: number;
  /** After so long without an append, the log writes a mark that proves the last group; default 250. */
  idleMarkMs?: number;
  /** The most bytes that may wait to be committed; an append beyond is refused with `log_overloaded`. Default 256 MiB. */
  maximumPendingBytes?: number;
  /** True: sealed segments are not read if their hint files are right. Their records are then taken from these. */
  usesHints?: boolean;
  /** What proves how far the log went. A log that ends earlier has lost records. */
  evidence?: LogEvidence | null | undefined;
  /**
   * Returns the state that must survive when all earlier segments are gone. It must be the sum of exactly the records appended so far, or delivered
   * so far by recovery. It is called between tasks and never from within `append`. So append a record and fold it in the same task.
   */
  openingState(): RecordContent;
  /** Gets everything that the log holds, in order. The next batch is read when it resolves. */
  onRecords(batch: CommittedBatch): Promise<void> | void;
  /** Called before a group of so many bytes is written, so that `onCommitted` need not allocate. If it throws for lack of memory, the group waits. */
  beforeWrite?(lengthBytes: number): void;
  /** Called for each group when it is committed, in order, before the promises of `whenCommitted` resolve. Must not throw. */
  onCommitted?(batch: CommittedBatch): void;
  /** Called when a write or sync failed. Called again if another fails after a failure that was only for lack of room. */
  onFailure?(failure: LogFailure): void;
  timers?: Timers;
  /** What to do when room or descriptors are lacking (retried-writes.ts). By default the operation fails, and the log with it. */
  room?: WriteRoom;
  /** Gives 32 random bits for a new segment. */
  createSalt?(): number;
}

/**
 * Why the log takes no more records. `params` has:
 * - `cause`: what failed, with the system's code;
 * - `first_sequence`: the first sequence number that was not committed; `since`: wall clock, ISO 8601;
 * - `without_room`: true when nothing is broken, but unacknowledged records found no room before the owner stopped.
 */
export interface LogFailure extends StorageErrorData {
  code: "log_failed";
  params: { cause: string; first_sequence: number; since: string; without_room: boolean };
}
