import type { Change } from "../../core/link/change.js";
import { foldRun } from "../../core/run/run-fold.js";
import type { RunState } from "../../core/run/run-state.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import { newDelivery } from "../../core/webhook/emit-run-event.js";
import type { NamedDelivery } from "../../core/webhook/webhook-response.js";
import type { DataDirectory } from "../disk/data-directory.js";
import { nodeFileSystem } from "../disk/file-system.js";
import type { FileSystem } from "../disk/file-system-interface.js";
import { tolerantDisk } from "../disk/tolerant-reads.js";
import { type UnreadablePlace, UnreadablePlaces } from "../disk/unreadable-places.js";
import { forEachRecord, type LogRecord, type RecordLocation } from "../log/committed-batch.js";
import { segmentBaseOf } from "../log/segment.js";
import { decodeChanges } from "../records/change-record.js";
import { decodeIndex, isChangeRecordType, RECORD_TYPE, type RecordType, runOfIndex } from "../records/record-index.js";
import { findLogEvidence } from "../recovery/log-evidence.js";
import { walkLog } from "../recovery/log-walk.js";
import { describeLost, MAXIMUM_LISTED_FINDINGS } from "../recovery/recovery-report.js";
import { StorageError } from "../storage-error.js";
import { LossBuilder, type RunLoss } from "./run-loss.js";

export interface ReadRunOptions {
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  runId: string;
}

export interface StoredRun {
  run: RunState;
  /** Deliveries of the run's events, in the order they began. */
  deliveries: NamedDelivery[];
  /** Null when the run was read completely. */
  loss: RunLoss | null;
}

/**
 * Reads one run from the log of a store, as far as the log goes when the read begins. Undefined when the log is complete and has no record of
 * the run. It reads the whole log, in bounded memory, and decodes only the bodies of this run's records.
 *
 * Records that the log lost before the run's first record do not matter, nor does a tail that was never acknowledged.
 * Records that were lost later may have belonged to any run. Unreadable bytes count as lost, and the rest is read.
 *
 * @throws StorageError when the log has a format that this release does not read; `record_missing` when damage left too
 * little of the run, or when nobody can know whether the run existed
 */
export async function readRun({
  dataDirectory,
  fileSystem = nodeFileSystem,
  runId,
}: ReadRunOptions): Promise<StoredRun | undefined> {
  const builder = new LossBuilder();
  const folded = new FoldedRun();
  const deliveries = new Map<string, { delivery: Delivery; place: RecordPlace }>();
  const webhookNames = new Map<string, string>();
  const unreadable = new UnreadablePlaces();
  const disk = tolerantDisk(fileSystem, unreadable.note);
  await walkLog({
    fileSystem: disk,
    isUnreadable: (path) => unreadable.has(path),
    directory: dataDirectory.metaPath,
    builder,
    evidence: await findLogEvidence(disk, dataDirectory),
    quarantine: async () => null,
    deliversTail: true,
    onRecords: (batch) => {
      forEachRecord(batch, (record, location) => {
        const index = isReadRecordType(record.type) ? decodeIndex(record.type, record.index) : undefined;
        if (index?.type === RECORD_TYPE.webhook) {
          const { id, name } = index.shown.webhook ?? index.shown.deleted;
          webhookNames.set(id, name);
        } else if (index?.type === RECORD_TYPE.delivery) {
          const { delivery } = index;
          if (delivery.runId === runId) deliveries.set(delivery.id, { delivery, place: placeOf(record, location) });
        } else if (index !== undefined && runOfIndex(index) === runId) {
          folded.take(record, location);
        }
      });
    },
  });
  const { run, created } = folded;
  const hasLost = builder.behind(0).length > 0 || unreadable.all.length > 0;
  if (run === undefined) {
    if (!hasLost && folded.unusable.length === 0) return undefined;
    throw nothingLeft(runId, folded.unusable.length, builder, unreadable.all);
  }
  let { whole } = folded;
  const unusable = [...folded.unusable];
  const begun = (run.emitted ?? []).flatMap((event) =>
    event.deliveries.map((emitted): NamedDelivery => {
      const stored = deliveries.get(emitted.id);
      // A delivery without a record of its own may have lost one at any time since the run was created.
      const since = stored?.place ?? created;
      if (since.sequence < whole.sequence) whole = since;
      const webhookName = webhookNames.get(emitted.webhookId);
      if (webhookName === undefined && hasLost) unusable.push(`the name of webhook ${emitted.webhookId} is lost`);
      return { delivery: stored?.delivery ?? newDelivery(emitted, event, runId), webhookName: webhookName ?? "" };
    }),
  );
  const emitted = new Set(begun.map(({ delivery }) => delivery.id));
  for (const { delivery } of deliveries.values()) {
    if (!emitted.has(delivery.id)) begun.push({ delivery, webhookName: webhookNames.get(delivery.webhookId) ?? "" });
  }
  const findings = builder.behind(whole.sequence);
  const places = unreadable.all.filter((place) => isBehind(place, whole, dataDirectory));
  const isWhole = findings.length + unusable.length + places.length === 0;
  return { run, deliveries: begun, loss: isWhole ? null : { findings, unusable, unreadable: places } };
}

/** The place of a record in the order of the log. */
interface RecordPlace {
  sequence: number;
  segmentBase: number;
  offset: number;
}

const LOG_BEGIN: RecordPlace = { sequence: 0, segmentBase: 0, offset: 0 };

function placeOf({ sequence }: LogRecord, { segmentBase, offset }: RecordLocation): RecordPlace {
  return { sequence, segmentBase, offset };
}

/** Whether a finding or an unreadable place is after `of` in the log. Files beside the log count: they could prove that it ends too early. */
function isBehind(
  { path, offset, lengthBytes }: UnreadablePlace,
  of: RecordPlace,
  { metaPath }: DataDirectory,
): boolean {
  if (!path.startsWith(`${metaPath}/`)) return true;
  const base = segmentBaseOf(path.slice(metaPath.length + 1));
  // A file that is no segment, such as an interrupted write, is no part of the log.
  if (base === undefined || base < of.segmentBase) return false;
  return base > of.segmentBase || offset + lengthBytes > of.offset;
}

/** The run, folded as far as it has been read. */
class FoldedRun {
  run: RunState | undefined;
  /** Place of the record that created the run; the log's beginning until that is read. */
  created = LOG_BEGIN;
  /** Place of the last record that has the whole run. What is lost before it does not matter. */
  whole = LOG_BEGIN;
  /** Changes after `whole` that could not be folded, because something that they need is lost; the first 1,000. */
  unusable: string[] = [];

  take(record: LogRecord, location: RecordLocation): void {
    for (const change of decodeChanges(record.type, record.body)) {
      if ("runId" in change) this.#fold(change, record, location);
    }
  }

  #fold(change: Extract<Change, { runId: string }>, record: LogRecord, location: RecordLocation): void {
    const { sequence, timeUs } = record;
    try {
      this.run = foldRun(this.run, change, timeUs);
    } catch (error) {
      // The fold throws before it changes anything, so the rest of the run is still intact.
      if (this.unusable.length >= MAXIMUM_LISTED_FINDINGS) return;
      this.unusable.push(`record ${sequence} (${change.kind}): ${(error as Error).message}`);
      return;
    }
    const place = placeOf(record, location);
    if (change.kind === "run_created") this.created = place;
    if (change.kind !== "run_created" && change.kind !== "run_ended") return;
    this.whole = place;
    this.unusable = [];
  }
}

function nothingLeft(
  runId: string,
  unusableCount: number,
  builder: LossBuilder,
  [unread]: readonly UnreadablePlace[],
): StorageError {
  const [first] = builder.behind(0);
  const found =
    first === undefined ? "" : `: meta/${first.segment}, offset ${first.offset}: ${first.detail}${describeLost(first)}`;
  const lost = unread === undefined ? found : `${found}; the disk cannot read all of it: ${unread.message}`;
  const what =
    unusableCount === 0
      ? `no record of run ${runId} can be read, and the log has lost records`
      : `the first record of run ${runId} is lost, and the run cannot be put together without it (inspect --run prints the rest)`;
  return new StorageError("record_missing", `${what}${lost}`);
}

function isReadRecordType(type: number): type is RecordType {
  return isChangeRecordType(type) || type === RECORD_TYPE.webhook || type === RECORD_TYPE.delivery;
}
