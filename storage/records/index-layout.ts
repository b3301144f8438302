/**
 * The index section of a record. It holds what view and recorder need, so that opening a store decodes no MessagePack. All integers are
 * little-endian; a 53-bit integer is two u32, low first; a time of 0 is null; a length of 0xffffffff is null.
 *
 * Every record begins with its origin, the producer's message that it commits. It is empty, with sequence number 0, if the service acts by itself.
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 1 | n, bytes of the producer's name (ASCII); bit 7: an instance follows the name |
 * | 1 | 8 | sequence number |
 * | 9 | n | the name |
 * | 9 + n | 16 | the instance, a UUID, if bit 7 is set |
 *
 * A run delta then has:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | run id |
 * | 16 | 1 | run status after the record, its place in RUN_STATUSES |
 * | 17 | 1 | code of the first change, its place in DELTA_KINDS |
 * | 18 | 16 | id of the frame that it begins, else zeros |
 *
 * Run created and run ended then have the run's summary:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 16 | run id |
 * | 16 | 16 | program id |
 * | 32 | 1 | low four bits: status, its place in RUN_STATUSES; high four: status of the quality report, its place in QUALITY_CODES |
 * | 33 | 4 | revision |
 * | 37 | 4 x 8 | created, updated, started, completed at |
 * | 69 | 3 x 4 | steps in all, steps completed, current step (0: null) |
 * | 81 | 4 x 4 | bytes of program name, serial number, error message, metadata as JSON text |
 * | 97 | 4 | f, count of frames |
 * | 101 | … | the four texts, then f frame ids of 16 bytes |
 *
 * Run ended then has what retention needs:
 *
 * | offset | size | field |
 * |---|---|---|
 * | 0 | 8 | bytes of the run's capture file that the record names; bit 63: artefacts are still to be made |
 * | 8 | 8 | when retention removed them |
 *
 * A run delta and run ended have the emitted events at their end, if there are any (event-index.ts). Webhooks and deliveries have index sections of
 * their own (webhook-record.ts).
 */

import type { RunChange } from "../../core/link/change.js";
import { REPORT_STATUSES } from "../../core/run/quality.js";

/** The producer's message that a record commits; null for what the service does by itself. */
export interface Origin {
  producer: string;
  sequence: number;
  /** The producer's instance (workers/cell-link/README.md), a canonical UUID; absent when the producer named none. */
  instance?: string;
}

/** The captured bytes of an ended run. */
export interface CapturesIndex {
  /** Bytes of the run's capture file that the record names. */
  bytes: number;
  /** When retention removed them; null while they exist. A record with this time is the tombstone of the file. */
  removedAtUs: number | null;
  /** True while artefacts are still to be made; the run gets another record then. */
  isOpen: boolean;
}

/** Bytes of an origin before the producer's name. */
export const ORIGIN_HEAD_BYTES = 9;
/** Bit of the byte that holds the length of the producer's name. */
export const INSTANCE_BIT = 0x80;
export const UUID_BYTES = 16;
export const DELTA_BYTES = 34;
/** Bytes of a summary before its texts. */
export const SUMMARY_HEAD_BYTES = 101;
export const CAPTURES_BYTES = 16;
/** Bit of the high half of the capture file's bytes, which are below 2^53. */
export const OPEN_BIT = 0x8000_0000;

/** Null: there is no report. */
export const QUALITY_CODES = [null, ...REPORT_STATUSES] as const;

/** Kinds of the changes of a run delta, by their code. */
export const DELTA_KINDS = [
  "run_started",
  "step_started",
  "step_finished",
  "frame_begun",
  "frame_lines_stored",
  "frame_ended",
  "series_appended",
  "check_added",
  "defect_added",
  "job_started",
  "job_finished",
  "file_stored",
  "event_added",
  "run_finalizing",
  "artefact_stored",
  "artefact_failed",
] as const satisfies readonly Exclude<RunChange["kind"], "run_created">[];

/** Length of the whole origin in bytes, given its first byte. */
export function originBytes(first: number): number {
  return ORIGIN_HEAD_BYTES + (first & ~INSTANCE_BIT) + (first & INSTANCE_BIT ? UUID_BYTES : 0);
}
