import type { Delivery } from "../core/delivery.js";
import { newDelivery } from "../core/emit-run-event.js";
import { foldRun } from "../core/run-fold.js";
import type { RunState } from "../core/run-state.js";
import type { NamedDelivery } from "../core/webhook-response.js";
import { decodeChanges } from "./change-record.js";
import type { DataDirectory } from "./data-directory.js";
import { type FileSystem, nodeFileSystem } from "./file-system.js";
import { forEachRecord, type LogRecord } from "./log-batch.js";
import { walkLog } from "./log-walk.js";
import {
  decodeIndex,
  isChangeRecordType,
  isKnownRecordType,
  RECORD_TYPE,
  type RecordIndex,
  type RecordType,
} from "./record-index.js";
import { RecoveryReportBuilder } from "./recovery-report.js";
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
}

/**
 * One run as the log of a store that is not being served has it; undefined when no record is of it. Reads the whole log, in bounded
 * memory, and decodes the bodies of this run's own records only. Damage elsewhere in the log is no concern of the run.
 *
 * @throws StorageError when the log is of a format that this release does not read, or damage took a part of the run
 */
export async function readRun({
  dataDirectory,
  fileSystem = nodeFileSystem,
  runId,
}: ReadRunOptions): Promise<StoredRun | undefined> {
  let run: RunState | undefined;
  const deliveries = new Map<string, Delivery>();
  const webhookNames = new Map<string, string>();
  let missing: StorageError | undefined;
  const fold = (record: LogRecord): void => {
    for (const change of decodeChanges(record.type, record.body)) {
      if (!("runId" in change)) continue;
      try {
        run = foldRun(run, change, record.timeUs);
        // It is the whole run: what compaction dropped before it is no loss.
        if (change.kind === "run_ended") missing = undefined;
      } catch (error) {
        missing ??= new StorageError(
          "record_missing",
          `damage to the log took a part of run ${runId}: ${(error as Error).message}`,
        );
      }
    }
  };
  await walkLog({
    fileSystem,
    directory: dataDirectory.metaPath,
    firstSequence: 1,
    understandsType: isKnownRecordType,
    builder: new RecoveryReportBuilder(),
    quarantine: async () => null,
    deliversTail: true,
    onRecords: (batch) => {
      forEachRecord(batch, (record) => {
        const index = isReadRecordType(record.type) ? decodeIndex(record.type, record.index) : undefined;
        if (index?.type === RECORD_TYPE.webhook) {
          const { id, name } = index.shown.webhook ?? index.shown.deleted;
          webhookNames.set(id, name);
        } else if (index?.type === RECORD_TYPE.delivery) {
          if (index.delivery.runId === runId) deliveries.set(index.delivery.id, index.delivery);
        } else if (index !== undefined && runIdOf(index) === runId) {
          fold(record);
        }
      });
    },
  });
  if (missing !== undefined) throw missing;
  if (run === undefined) return undefined;
  const begun = (run.emitted ?? []).flatMap((event) =>
    event.deliveries.map((delivery) => deliveries.get(delivery.id) ?? newDelivery(delivery, event, runId)),
  );
  return {
    run,
    deliveries: begun.map((delivery) => ({ delivery, webhookName: webhookNames.get(delivery.webhookId) ?? "" })),
  };
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
