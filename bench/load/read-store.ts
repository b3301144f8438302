import { nodeFileSystem } from "../../storage/disk/file-system.js";
import type { CommittedBatch } from "../../storage/log/log-batch.js";
import { isChangeRecordType } from "../../storage/records/record-index.js";
import { walkLog } from "../../storage/recovery/log-walk.js";
import { RecoveryReportBuilder } from "../../storage/recovery/recovery-report.js";

/** Reads all records of a store that is not being served, in order, as the recorder does at open; nothing is changed. */
export async function readStore(path: string, onRecords: (batch: CommittedBatch) => void): Promise<void> {
  await walkLog({
    fileSystem: nodeFileSystem,
    directory: `${path}/meta`,
    firstSequence: 1,
    understandsType: isChangeRecordType,
    builder: new RecoveryReportBuilder(),
    quarantine: async () => null,
    deliversTail: true,
    onRecords,
  });
}
