import type { Timers } from "../../core/timers.js";
import type { FileSystem } from "../disk/file-system.js";
import type { WriteRoom } from "../disk/write-room.js";
import type { StorageErrorData } from "../storage-error.js";
import type { CommittedBatch } from "./log-batch.js";

/**
 * When a record counts as committed, which is when its producer gets the acknowledgement:
 * - `full`: after write and fdatasync. Survives a power cut.
 * - `interval`: after the write; fdatasync every `intervalMs`. Survives the end of the process; a power cut can take the last interval.
 * - `none`: after the write; the system writes back when it likes. Survives the end of the process only.
 */
export type Durability = "full" | "interval" | "none";

/** Stored bytes that a record refers to: a capture file with writes under way. A failure of either fails the log. */
export interface Durable {
  /** Resolves when everything appended so far has been written and synced, and its file's name too. */
  makeDurable(): Promise<void>;
  /** Resolves when everything appended so far has been written, in the modes where a record does not wait for a sync. */
  whenWritten(): Promise<void>;
}

export interface RecordInput {
  /** 16 to 65,535; below are the log's own. */
  type: number;
  /** Default 0. */
  flags?: number;
  /** Of the service's clock. */
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

/** A place behind a record that is known to be durable: a snapshot has everything up to there. */
export interface LogStart {
  /** Of that record. */
  sequence: number;
  segmentBase: number;
  /** Where the next record stands in that segment, and the first number that it covers: one above, or less where stretches were dropped. */
  offset: number;
  nextSequence: number;
  /** The largest time of any record up to there. */
  timeUs: number;
  /** What that record claims to be durable. */
  claimedSequence: number;
  /** The last record up to there that is not a mark, at least. */
  lastDataSequence: number;
}

/** What tells, beside the log, that it held records: see log-evidence.ts. */
export interface LogEvidence {
  /** Every record up to it was durable; 0 where it is not known how many there were. */
  sequence: number;
  /** What says so, relative to the data directory. */
  source: string;
}

export interface LogOptions {
  fileSystem: FileSystem;
  /** Folder of the segments. It exists. */
  directory: string;
  /** Folder that takes damaged bytes. It exists. */
  quarantineDirectory: string;
  durability: Durability;
  /** Of mode `interval`; default 100. */
  intervalMs?: number;
  /** A segment that reaches this size is closed; default 64 MiB. It can exceed it by one group. */
  segmentBytes?: number;
  /** After so long without an append a mark proves the last group; default 250. */
  idleMarkMs?: number;
  /** Most bytes waiting to be committed; an append beyond is refused with `log_overloaded`. Default 256 MiB. */
  maximumPendingBytes?: number;
  /** The first sequence number that the store must have; default 1. Above it only once old segments were removed on purpose. */
  firstSequence?: number;
  /** Where to begin: behind what a snapshot has, which was held against the log before; default: at the log's start. */
  from?: LogStart | undefined;
  /** What tells of the log beside it: a log that ends before what that says has lost records. Not together with `from`. */
  evidence?: LogEvidence | null | undefined;
  /** False for a type that the owner does not know: if such a record must be understood, the log does not open. */
  understandsType(type: number): boolean;
  /**
   * What must survive even when every earlier segment is gone: the state that exactly the records appended so far, or delivered so
   * far by recovery, add up to. Called between tasks, never from within `append`: append a record and fold it in one go.
   */
  openingState(): RecordContent;
  /** Everything that the log holds, in order; the next batch is read when it resolves. */
  onRecords(batch: CommittedBatch): Promise<void> | void;
  /** Called for each group when it is committed, in order, before the promises of `whenCommitted` resolve. Must not throw. */
  onCommitted?(batch: CommittedBatch): void;
  /** Called when a write or sync failed; again when one fails after a failure that was for want of room alone. */
  onFailure?(failure: LogFailure): void;
  timers?: Timers;
  /** What becomes of what finds no room, or no descriptor: see write-room.ts; default: it fails, and the log with it. */
  room?: WriteRoom;
  /** 32 random bits for each new segment. */
  createSalt?(): number;
}

/**
 * Why the log takes no more records. `params` tells the `cause` (what failed, with the system's code), `first_sequence` (the first
 * number that was not committed), `since` (wall clock, ISO 8601) and `without_room`: true where nothing is broken, and what was not
 * acknowledged found no room while the owner stopped.
 */
export interface LogFailure extends StorageErrorData {
  code: "log_failed";
  params: { cause: string; first_sequence: number; since: string; without_room: boolean };
}
