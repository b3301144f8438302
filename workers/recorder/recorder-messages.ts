/**
 * What the recorder thread and the front say to each other. Everything is plain data: errors too, since an Error object loses its
 * fields on the way between threads.
 */
import type { ComponentRow } from "../../core/health.js";
import type { JsonObject } from "../../core/json/json.js";
import type { SegmentMoves } from "../../storage/compaction/segment-moves.js";
import type { CommittedBatch } from "../../storage/log/log-batch.js";
import type { Durability } from "../../storage/log/log-options.js";
import type { RecoveryReport } from "../../storage/recovery/recovery-report.js";
import type { StorageErrorData } from "../../storage/storage-error.js";
import type { TaskAnswer, TaskMessage } from "../artefacts/pool/artefact-thread.js";
import type { FoundDelivery } from "../webhooks/deliveries/tracked-delivery.js";
import type { WebhookReply, WebhookRequest } from "../webhooks/deliveries/webhook-requests.js";
import type { RecorderFigures } from "./recorder-figures.js";
import type { DiskRoomOptions } from "./upkeep/disk-room.js";
import type { StoreCounters } from "./upkeep/store-counters.js";

/** Given to the thread when it starts (workerData). */
export interface RecorderOptions {
  dataDirectory: string;
  durability: Durability;
  /** Shown in `welcome`; the same string as GET /system/version gives. */
  serviceVersion: string;
  /** Null: `<data directory>/cell.sock`. */
  cellSocketPath: string | null;
  /** TCP beside the socket; null: off. A port of 0 takes a free one, told in `ready`. */
  cellListen: { host: string; port: number } | null;
  /** What a producer needs over TCP. Required with `cellListen`. */
  cellToken: string | null;
  /** How long a finalizing run waits for its open jobs and frames, and for what is made of its captures. */
  finalizeTimeoutMs: number;
  /** How long a run's producer may stay away before the service fails the run; null: for ever. */
  orphanTimeoutMs: number | null;
  /** When captures, and when all messages, wait for room on the disk; without it the defaults. */
  diskRoom?: DiskRoomOptions;
  /** At which size of its newest segment the log begins another; without it the log's default. */
  segmentBytes?: number;
  retention: RetentionPolicy;
  /** When snapshots are made; without it the defaults. */
  snapshots?: SnapshotPolicy;
  /** How many artefact tasks the front takes at a time; without it captures are not processed. */
  artefactTasks?: number;
  /** Where deliveries may go; without it, wherever the house rules let them. */
  receivers?: ReceiverOptions;
}

/** What narrows or widens where deliveries go (decisions.md, URLs). */
export interface ReceiverOptions {
  /** CIDR ranges; with any, only these. */
  allow: readonly string[];
  deny: readonly string[];
  /** PEM; null: none beside the system's. */
  extraCa: string | null;
}

/** How long captures stay, and how many; null: without end. */
export interface RetentionPolicy {
  /** Captures of runs that ended so many days ago go. */
  days: number | null;
  /** Of the captures of ended runs, the oldest go beyond so many bytes. */
  bytes: number | null;
}

/** When a snapshot is due, each left out as by default (snapshot-schedule.ts). */
export interface SnapshotPolicy {
  /** With so many bytes of log behind the last one, or half its own size where that is more. */
  logBytes?: number;
  /** So long after the first change behind the last one. */
  intervalMs?: number;
  /** At a stop, with so many bytes of log behind the last one. */
  stopLogBytes?: number;
  /** How long a stop waits for it at most. */
  stopMs?: number;
}

export const DEFAULT_FINALIZE_TIMEOUT_MS = 30_000;

/** An error as data. `code` is one of the storage's, or `cell_socket_unusable`, `cell_listen_failed`, `recorder_crashed`. */
export interface RecorderErrorData {
  code: string;
  message: string;
  params: JsonObject;
}

/** A line for the service's log. */
export interface LogLine {
  level: "debug" | "info" | "warn" | "error";
  message: string;
  fields: LogFields;
}

/** Not by the names that the log itself gives to each line: a line with a key twice loses one of them to whoever parses it. */
export type LogFields = JsonObject & { level?: never; time?: never; msg?: never; service_version?: never };

/** The recorder is up: every record that the log held, or a snapshot and every record behind it, has been sent before this message. */
export interface RecorderReady {
  kind: "ready";
  /** What recovery found and did. */
  recovery: RecoveryReport;
  cellSocketPath: string;
  /** Where TCP listens, with the port it got. */
  cellListen: { host: string; port: number } | null;
  /** Wall clock, UTC in microseconds. */
  startedAtUs: number;
}

export type RecorderToFront =
  | RecorderReady
  /**
   * Before the first batch: the view is in this snapshot as it was at that sequence number, but for what compaction has moved since; the
   * front answers whether it has taken it.
   * The batches are those behind it then, unless `snapshot_discarded` comes.
   */
  | { kind: "snapshot"; path: string; sequence: number; moves: SegmentMoves[] }
  /** What the front has taken does not count: it begins from nothing, and the batches from the first one on. */
  | { kind: "snapshot_discarded" }
  /** Whole consecutive records, in a buffer of their own that moves to the front. */
  | { kind: "batch"; batch: CommittedBatch }
  /** The recorder's own rows of health (log, disk, recorder), all of them, and the store's counters, whenever one changes. */
  | { kind: "health"; rows: ComponentRow[]; counters: StoreCounters }
  | { kind: "log"; line: LogLine }
  /** Compaction or the making of a snapshot met stored bytes that are damaged: the front tells of it as of what its own reads find. */
  | { kind: "read_damage"; error: StorageErrorData }
  /**
   * The captures of these runs have tombstones, in batches sent before this, and their files are unlinked next, or just have been: the
   * front answers when it keeps none of them open beyond the downloads under way, which read on to their end.
   */
  | { kind: "let_go_of_captures"; runIds: readonly string[] }
  /** The answer to `figures`. */
  | { kind: "figures"; figures: RecorderFigures }
  /** Another file is about to take the segment's name: the front answers once it keeps the file of now open, and reads in both from then on. */
  | { kind: "hold_segment"; segmentBase: number }
  /** The new file has the name, or will not get it: then nothing has moved. With the moves applied the old one is needed no more. */
  | { kind: "segment_moved"; moves: SegmentMoves }
  /** The answer to a `request`: what it wrote is in batches sent before. */
  | { kind: "reply"; id: number; reply: WebhookReply }
  /** What is stored of this delivery is needed to make it: the front answers with `delivery_content`. */
  | { kind: "delivery_wanted"; deliveryId: string }
  /** The dispatcher ended by itself: no delivery has a further attempt before the next start. */
  | { kind: "deliveries_ended" }
  /** The front's pool is to compute this: the answer is `artefact_made`. */
  | { kind: "artefact_wanted"; id: number; task: TaskMessage }
  /** The disk or the recorder failed: nothing is recorded before the next start. Reads go on, and so does the thread. `cause`: since when and why. */
  | { kind: "recording_ended"; cause: string }
  /** The recorder could not start, or ended by itself: it takes nothing any more. The last message but `stopped`. */
  | { kind: "failed"; error: RecorderErrorData }
  /** Everything is closed. The last message. `failure`: why not all that was taken is committed, null where it is. */
  | { kind: "stopped"; failure: string | null };

export type FrontToRecorder =
  /** The front's view has taken in a batch. The buffer that it came in comes back, transferred: what the recorder may send ahead is bounded by these. */
  | { kind: "batch_taken"; memory: ArrayBuffer }
  /** The answers to `snapshot`. */
  | { kind: "snapshot_taken" }
  /** `isUnread`: it could not be read, which says nothing of what it is worth. */
  | { kind: "snapshot_refused"; reason: string; isUnread: boolean }
  /** The answer to `let_go_of_captures`; one is asked at a time. */
  | { kind: "captures_let_go" }
  | { kind: "figures" }
  /** The answer to `hold_segment`; one is asked at a time. False: it could not be opened, and nothing may take its name. */
  | { kind: "segment_held"; isHeld: boolean }
  /** Requests are served on this port, from a view with all that the log held: deliveries may go out. */
  | { kind: "serving"; port: number }
  | { kind: "request"; id: number; request: WebhookRequest }
  /** Nobody waits for the reply to this request any more: the connection has ended, or its deadline is over. */
  | { kind: "request_dropped"; id: number }
  /** The answer to `delivery_wanted`. */
  | { kind: "delivery_content"; deliveryId: string; found: FoundDelivery }
  /** The answer to `artefact_wanted`; its buffers move to the recorder. */
  | { kind: "artefact_made"; id: number; answer: TaskAnswer }
  /** Begin no attempts any more, and let those under way end within this time; all else goes on. */
  | { kind: "stop_deliveries"; graceMs: number }
  /** Close the link, let attempts under way end within this time, commit what was taken, close the store, end the thread. */
  | { kind: "stop"; attemptGraceMs: number };
