import type { Change } from "../../core/link/change.js";
import { foldRun } from "../../core/run/run-fold.js";
import type { RunState } from "../../core/run/run-state.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import { newDelivery } from "../../core/webhook/emit-run-event.js";
import type { NamedDelivery } from "../../core/webhook/webhook-response.js";
import type { DataDirectory } from "../disk/data-directory.js";
import { type FileSystem, nodeFileSystem } from "../disk/file-system.js";
import { tolerantDisk } from "../disk/tolerant-reads.js";
import { type UnreadablePlace, UnreadablePlaces } from "../disk/unreadable-places.js";
import { forEachRecord, type LogRecord, type RecordLocation } from "../log/log-batch.js";
import { segmentBaseOf } from "../log/segment.js";
import { decodeChanges } from "../records/change-record.js";
import {
  decodeIndex,
  isChangeRecordType,
  isKnownRecordType,
  RECORD_TYPE,
  type RecordIndex,
  type RecordType,
} from "../records/record-index.js";
import { findLogEvidence } from "../recovery/log-evidence.js";
import { walkLog } from "../recovery/log-walk.js";
import { describeLost, MAXIMUM_LISTED_FINDINGS } from "../recovery/recovery-report.js";
import { StorageError } from "../storage-error.js";
import { LossBuilder, type RunLoss } from "./run-loss.js";

export interface ReadRunOptions {
  /** Open, so that nobody changes it meanwhile. */
  dataDirectory: DataDirectory;
  fileSystem?: FileSystem;
  runId: string;
}

export interface StoredRun {
  run: RunState;
  /** Of its events, in the order they began. */
  deliveries: NamedDelivery[];
  /** Null when all that the log was given of the run was read. */
  loss: RunLoss | null;
}

/**
 * One run as the log of a store that is not being served has it; undefined when no record is of it and the log is whole. Reads the whole log, in
 * bounded memory, and decodes the bodies of this run's own records only.
 *
 * What the log lost before the records that the run is made of is no concern of it; neither is what compaction dropped, nor a tail that was
 * never acknowledged. What it lost behind them may have been of any run. What the disk does not give is lost in the same way: the rest is read.
 *
 * @throws StorageError when the log is of a format that this release does not read, or `record_missing` when nothing of the run can be put
 * together from what damage left, or it cannot be told whether there was such a run
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
    firstSequence: 1,
    understandsType: isKnownRecordType,
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
        } else if (index !== undefined && runIdOf(index) === runId) {
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
      // Of one without a record any may be lost since the run was created, and where that record was dropped it is not known since when.
      const since = stored?.place ?? created;
      if (since.sequence < whole.sequence) whole = since;
      const webhookName = webhookNames.get(emitted.webhookId);
      if (webhookName === undefined && hasLost) unusable.push(`the name of webhook ${emitted.webhookId} is lost`);
      return { delivery: stored?.delivery ?? newDelivery(emitted, event, runId), webhookName: webhookName ?? "" };
    }),
  );
  const findings = builder.behind(whole.sequence);
  const places = unreadable.all.filter((place) => isBehind(place, whole, dataDirectory));
  const isWhole = findings.length + unusable.length + places.length === 0;
  return { run, deliveries: begun, loss: isWhole ? null : { findings, unusable, unreadable: places } };
}

/** Where a record stands, in the order of the log. */
interface RecordPlace {
  sequence: number;
  segmentBase: number;
  offset: number;
}

const LOG_BEGIN: RecordPlace = { sequence: 0, segmentBase: 0, offset: 0 };

function placeOf({ sequence }: LogRecord, { segmentBase, offset }: RecordLocation): RecordPlace {
  return { sequence, segmentBase, offset };
}

/** Also of what is beside the log, and would tell whether that ends too early. */
function isBehind(
  { path, offset, lengthBytes }: UnreadablePlace,
  of: RecordPlace,
  { metaPath }: DataDirectory,
): boolean {
  if (!path.startsWith(`${metaPath}/`)) return true;
  const base = segmentBaseOf(path.slice(metaPath.length + 1));
  // What is no segment, an interrupted write for one, is no part of the log.
  if (base === undefined || base < of.segmentBase) return false;
  return base > of.segmentBase || offset + lengthBytes > of.offset;
}

/** The run as far as it has been read. */
class FoldedRun {
  run: RunState | undefined;
  /** Of the record that created it; the log's begin while that is not read. */
  created = LOG_BEGIN;
  /** Of the last record that has the run as a whole: what is lost before it is no loss of the run. */
  whole = LOG_BEGIN;
  /** What could not be folded since, as what it needs is lost; the first 1,000. */
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
      // It throws before it changes anything: the rest of the run is still what it was.
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
  const lost = unread === undefined ? found : `${found}; the disk does not give all of it: ${unread.message}`;
  const what =
    unusableCount === 0
      ? `no record of run ${runId} can be read, and the log has lost records`
      : `damage to the log took the record that run ${runId} begins with, and the rest cannot be put together (inspect --run prints it)`;
  return new StorageError("record_missing", `${what}${lost}`);
}

function isReadRecordType(type: number): type is RecordType {
  return isChangeRecordType(type) || type === RECORD_TYPE.webhook || type === RECORD_TYPE.delivery;
}

function runIdOf(index: RecordIndex): string | null {
  switch (index.type) {
    case RECORD_TYPE.runCreated:
    case RECORD_TYPE.runEnded:
      return index.summary.id;
    case RECORD_TYPE.runDelta:
      return index.runId;
    default:
      return null;
  }
}
