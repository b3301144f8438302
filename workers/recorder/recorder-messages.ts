/**
 * The messages between the recorder thread and the front. Everything is plain data, errors too: an Error object loses
 * its fields on the way between threads.
 */
import type { ComponentRow } from "../../core/health.js";
import type { JsonObject } from "../../core/json/json.js";
import type { ErrorData } from "../../core/service-errors.js";
import type { SocketAccess } from "../../storage/disk/file-system.js";
import type { CommittedBatch } from "../../storage/log/committed-batch.js";
import type { Durability } from "../../storage/log/log-options.js";
import type { RecoveryReport } from "../../storage/recovery/recovery-report.js";
import type { StorageErrorData } from "../../storage/storage-error.js";
import type { TaskAnswer, TaskMessage } from "../artefacts/pool/artefact-thread.js";
import type { CacheFigures, CaptureRequest } from "../hub/capture-request.js";
import type { FoundDelivery, FoundRun } from "../webhooks/deliveries/tracked-delivery.js";
import type { WebhookReply, WebhookRequest } from "../webhooks/webhook-requests.js";
import type { RecorderFigures } from "./status/recorder-figures.js";
import type { DiskRoomOptions } from "./upkeep/disk-room.js";

/** Given to the thread when it starts (workerData). */
export interface RecorderOptions {
  dataDirectory: string;
  durability: Durability;
  /** Shown in `welcome`. The same string as in GET /system/version. */
  serviceVersion: string;
  /** Null: `<data directory>/cell.sock`. */
  cellSocketPath: string | null;
  /** Who may connect to the socket; default: the account of the service alone. */
  cellSocketAccess?: SocketAccess;
  /** TCP beside the socket; null: off. With port 0 the system chooses a free port, and `ready` tells which. */
  cellListen: { host: string; port: number } | null;
  /** The token that a producer must show over TCP. Required with `cellListen`. */
  cellToken: string | null;
  /** How long a finalizing run waits for its open jobs and frames, and for the artefacts of its captures. */
  finalizeTimeoutMs: number;
  /** How long a run's producer may stay away before the service fails the run; null: without end. */
  orphanTimeoutMs: number | null;
  /** At how little room on the disk captures wait, and all messages; default: see disk-room.ts. */
  diskRoom?: DiskRoomOptions;
  /** The log begins another segment when one has this size; default: the log's. */
  segmentBytes?: number;
  retention: RetentionPolicy;
  /** How many artefact tasks the front takes at a time. Without it captures are not processed. */
  artefactTasks?: number;
  /** Limits where deliveries may go. Without it only the built-in rules apply. */
  receivers?: ReceiverOptions;
}

/** Which addresses deliveries may go to. */
export interface ReceiverOptions {
  /** CIDR ranges of `--webhook-allow`. If there are any, only these are allowed. */
  allow: readonly string[];
  /** CIDR ranges of `--webhook-deny`, which are never allowed. */
  deny: readonly string[];
  /** PEM of `--webhook-ca` and of NODE_EXTRA_CA_CERTS, trusted beside Node's own; null: without `--webhook-ca`. */
  extraCa: string | null;
}

/** How long captures stay, and how many. Null: no limit. */
export interface RetentionPolicy {
  /** Captures are removed this many days after their run ended. */
  days: number | null;
  /** When the captures of ended runs exceed this many bytes, the oldest are removed. */
  bytes: number | null;
  /** True: captures that the plant has not acknowledged stay; default: false. */
  afterShipping?: boolean;
}

export const DEFAULT_FINALIZE_TIMEOUT_MS = 30_000;

/** An error as data. `code` is a code of storage, or `cell_socket_unusable`, `cell_listen_failed`, `recorder_crashed`. */
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

/** Without the keys that the log adds to each line, because a JSON parser keeps only one of two equal keys. */
export type LogFields = JsonObject & { level?: never; time?: never; msg?: never; service_version?: never };

/** The recorder is up: everything in the log has been sent before this message. */
export interface RecorderReady {
  kind: "ready";
  /** Of the opened store; null if it has none, which only a simulated store has. */
  storeId: string | null;
  /** What recovery found and did. */
  recovery: RecoveryReport;
  cellSocketPath: string;
  /** Where TCP listens, with the port that the system chose. */
  cellListen: { host: string; port: number } | null;
  /** Wall clock, UTC in microseconds. */
  startedAtUs: number;
}

export type RecorderToFront =
  | RecorderReady
  /** Whole consecutive records, or a hint file. Their buffer moves to the front. */
  | { kind: "batch"; batch: CommittedBatch }
  /** All of the recorder's rows of health (log, disk, recorder, dispatcher). It is sent whenever one of them changes. */
  | { kind: "health"; rows: ComponentRow[] }
  | { kind: "log"; line: LogLine }
  /**
   * Damaged bytes were found while a hint file was made. The front reports it in health, like damage that its own reads
   * find.
   */
  | { kind: "read_damage"; error: StorageErrorData }
  /**
   * The captures of these runs have tombstones, in batches sent before this. Their files are about to be unlinked, or
   * just have been. The front closes these files and answers. Downloads under way go on to their end.
   */
  | { kind: "let_go_of_captures"; runIds: readonly string[] }
  /** The answer to `figures`. `cache` is of a hub, which has no others. */
  | { kind: "figures"; figures: RecorderFigures | undefined; cache?: CacheFigures }
  /** Only of a hub: the answer to `captures_wanted`. Without a fault the bytes stay until `captures_read`. */
  | { kind: "captures_here"; id: number; fault: ErrorData | null }
  /** Only of a hub: this file is about to be removed. Whoever opens it afterwards may find another one. */
  | { kind: "capture_evicted"; path: string }
  /** Only of a hub: it has everything that the plant had when it started. */
  | { kind: "caught_up" }
  /** The answer to a `request`. The batches with what it wrote were sent before. */
  | { kind: "reply"; id: number; reply: WebhookReply }
  /** Asks for the stored content of a delivery, which is needed to send it. The answer is `delivery_content`. */
  | { kind: "delivery_wanted"; deliveryId: string }
  /** Asks for the record of a run, to make an event of it for this delivery. The answer is `run_content`. */
  | { kind: "run_wanted"; deliveryId: string; runId: string }
  /** The dispatcher ended by itself: no delivery is attempted again before the next start. */
  | { kind: "deliveries_ended" }
  /** Asks the front's pool to compute this. The answer is `artefact_made`. */
  | { kind: "artefact_wanted"; id: number; task: TaskMessage }
  /**
   * The disk or the recorder failed. Nothing is recorded until the next start. Reads go on. `cause` says since when and
   * why.
   */
  | { kind: "recording_ended"; cause: string }
  /** The recorder could not start, or ended by itself. Only `stopped` may follow. */
  | { kind: "failed"; error: RecorderErrorData }
  /**
   * Everything is closed; this is the last message. `failure` says why something that was taken is not committed; null
   * if all is.
   */
  | { kind: "stopped"; failure: string | null };

export type FrontToRecorder =
  /** The front's view has taken a batch. Its buffer comes back, so the recorder can send more. */
  | { kind: "batch_taken"; memory: ArrayBuffer }
  /** The answer to `let_go_of_captures`. There is one question at a time. */
  | { kind: "captures_let_go" }
  | { kind: "figures" }
  /** Only to a hub: these bytes are to be on the disk. The answer is `captures_here`. */
  | { kind: "captures_wanted"; id: number; request: CaptureRequest }
  /** Only to a hub: nobody reads them any more. `isDamaged`: they do not match their CRCs. */
  | { kind: "captures_read"; id: number; isDamaged: boolean }
  /** The front serves requests on this port, and its view has everything in the log: deliveries may go out. */
  | { kind: "serving"; port: number }
  /** The plant has the captures of all runs whose records are at this sequence number or before. */
  | { kind: "captures_shipped"; sequence: number }
  | { kind: "request"; id: number; request: WebhookRequest }
  /** Nobody waits for the reply to this request any more: the connection has ended, or its deadline has passed. */
  | { kind: "request_dropped"; id: number }
  /** The answer to `delivery_wanted`. */
  | { kind: "delivery_content"; deliveryId: string; found: FoundDelivery }
  /** The answer to `run_wanted`; the body moves to the recorder. */
  | { kind: "run_content"; deliveryId: string; found: FoundRun }
  /** The answer to `artefact_wanted`; its buffers move to the recorder. */
  | { kind: "artefact_made"; id: number; answer: TaskAnswer }
  /** Begin no more attempts, and let those under way end within this time. Everything else goes on. */
  | { kind: "stop_deliveries"; graceMs: number }
  /** Close the link, let attempts under way end within this time, commit what was taken, close the store and end the thread. */
  | { kind: "stop"; attemptGraceMs: number };
