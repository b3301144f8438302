import { counted } from "../../../core/counted.js";
import { backupStore } from "../../../storage/backup/backup-store.js";
import type { CheckProgress } from "../../../storage/repair/check-store.js";
import type { BackupCommandOptions } from "../command-options.js";
import { printLine } from "../command-output.js";
import { UsageError } from "../resolve-options.js";
import { CheckProgressLine } from "./check-progress.js";

/**
 * `backup`: copies a store, which may be served meanwhile, and verifies the copy.
 *
 * @returns false if the copy has the damage of the store, which only `--with-damage` allows
 * @throws UsageError, BackupError, StorageError, FileSystemError; the folder is as it was then
 */
export async function backup({ data, to, "with-damage": withDamage }: BackupCommandOptions): Promise<boolean> {
  if (to === null) throw new UsageError("--to is required: the folder that the backup becomes");
  const progress = new CheckProgressLine();
  const options = { data, to, withDamage, onProgress: (state: CheckProgress) => progress.update(state) };
  const made = await backupStore(options).finally(() => progress.end());
  const { path, lastSequence, linkedFiles, copiedFiles, copiedBytes, check } = made;
  const files = `${counted(linkedFiles, "file")} linked, ${copiedFiles} copied (${copiedBytes} bytes)`;
  const { damages } = check.summary;
  const state = check.ok
    ? "ok"
    : `DAMAGED as the store is: ${counted(damages, "piece")} of damage, see check --data ${path}`;
  printLine(`backup in ${path}: records up to ${lastSequence}, ${files}`);
  printLine(state);
  return check.ok;
}
