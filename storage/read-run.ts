import type { Change } from "../core/change.js";
import type { Delivery } from "../core/delivery.js";
import { newDelivery } from "../core/emit-run-event.js";
import { foldRun } from "../core/run-fold.js";
import type { RunState } from "../core/run-state.js";
import type { NamedDelivery } from "../core/webhook-response.js";
import { decodeChanges } from "./change-record.js";
import type { DataDirectory } from "./data-directory.js";
import { type FileSystem, nodeFileSystem } from "./file-system.js";
import { forEachRecord, type LogRecord } from "./log-batch.js";
import { findLogEvidence } from "./log-evidence.js";
import { walkLog } from "./log-walk.js";
import {
  decodeIndex,
  isChangeRecordType,
  isKnownRecordType,
  RECORD_TYPE,
  type RecordIndex,
  type RecordType,
} from "./record-index.js";
import { describeLost, MAXIMUM_LISTED_FINDINGS } from "./recovery-report.js";
import { LossBuilder, type RunLoss } from "./run-loss.js";
import { StorageError } from "./storage-error.js";

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
 * never acknowledged. What it lost behind them may have been of any run.
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
  const deliveries = new Map<string, { delivery: Delivery; sequence: number }>();
  const webhookNames = new Map<string, string>();
  await walkLog({
    fileSystem,
    directory: dataDirectory.metaPath,
    firstSequence: 1,
    understandsType: isKnownRecordType,
    builder,
    evidence: await findLogEvidence(fileSystem, dataDirectory),
    quarantine: async () => null,
    deliversTail: true,
    onRecords: (batch) => {
      forEachRecord(batch, (record) => {
        const index = isReadRecordType(record.type) ? decodeIndex(record.type, record.index) : undefined;
        if (index?.type === RECORD_TYPE.webhook) {
          const { id, name } = index.shown.webhook ?? index.shown.deleted;
          webhookNames.set(id, name);
        } else if (index?.type === RECORD_TYPE.delivery) {
          const { delivery } = index;
          if (delivery.runId === runId) deliveries.set(delivery.id, { delivery, sequence: record.sequence });
        } else if (index !== undefined && runIdOf(index) === runId) {
          folded.take(record);
        }
      });
    },
  });
  const { run, createdSequence } = folded;
  const hasLost = builder.behind(0).length > 0;
  if (run === undefined) {
    if (!hasLost && folded.unusable.length === 0) return undefined;
    throw nothingLeft(runId, folded.unusable.length, builder);
  }
  let { wholeSequence } = folded;
  const unusable = [...folded.unusable];
  const begun = (run.emitted ?? []).flatMap((event) =>
    event.deliveries.map((emitted): NamedDelivery => {
      const stored = deliveries.get(emitted.id);
      // Of one without a record any may be lost since the run was created, and where that record was dropped it is not known since when.
      wholeSequence = Math.min(wholeSequence, stored?.sequence ?? createdSequence);
      const webhookName = webhookNames.get(emitted.webhookId);
      if (webhookName === undefined && hasLost) unusable.push(`the name of webhook ${emitted.webhookId} is lost`);
      return { delivery: stored?.delivery ?? newDelivery(emitted, event, runId), webhookName: webhookName ?? "" };
    }),
  );
  const findings = builder.behind(wholeSequence);
  return { run, deliveries: begun, loss: findings.length + unusable.length === 0 ? null : { findings, unusable } };
}

/** The run as far as it has been read. */
class FoldedRun {
  run: RunState | undefined;
  /** Of the record that created it; 0 while that is not read. */
  createdSequence = 0;
  /** Of the last record that has the run as a whole: what is lost before it is no loss of the run. */
  wholeSequence = 0;
  /** What could not be folded since, as what it needs is lost; the first 1,000. */
  unusable: string[] = [];

  take(record: LogRecord): void {
    for (const change of decodeChanges(record.type, record.body)) {
      if ("runId" in change) this.#fold(change, record);
    }
  }

  #fold(change: Extract<Change, { runId: string }>, { sequence, timeUs }: LogRecord): void {
    try {
      this.run = foldRun(this.run, change, timeUs);
    } catch (error) {
      // It throws before it changes anything: the rest of the run is still what it was.
      if (this.unusable.length >= MAXIMUM_LISTED_FINDINGS) return;
      this.unusable.push(`record ${sequence} (${change.kind}): ${(error as Error).message}`);
      return;
    }
    if (change.kind === "run_created") this.createdSequence = sequence;
    if (change.kind !== "run_created" && change.kind !== "run_ended") return;
    this.wholeSequence = sequence;
    this.unusable = [];
  }
}

function nothingLeft(runId: string, unusableCount: number, builder: LossBuilder): StorageError {
  const [first] = builder.behind(0);
  const lost =
    first === undefined ? "" : `: meta/${first.segment}, offset ${first.offset}: ${first.detail}${describeLost(first)}`;
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
