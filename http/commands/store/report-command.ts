import { counted } from "../../../core/counted.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { nameIn } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { writeFully } from "../../../storage/disk/whole-files.js";
import { withRelativePaths } from "../../../storage/relative-paths.js";
import { readStore } from "../../../storage/repair/store-reading.js";
import { readRun } from "../../../storage/view/read-run.js";
import { artefactTasks } from "../../../workers/artefacts/pool/artefact-tasks.js";
import { sayOnStandardError } from "../../log/standard-error.js";
import type { ReportCommandOptions } from "../command-options.js";
import { print, printLine } from "../command-output.js";
import { UsageError } from "../resolve-options.js";
import { lossMessage } from "./export-loss.js";

/**
 * `report`: writes the report page of a run of a store, as GET /runs/{run_id}/report.html answers it. A service may
 * serve the store meanwhile.
 *
 * @returns false if parts of the run may be lost, or if some of its captures are damaged: the page says so
 * @throws UsageError, StorageError, FileSystemError
 */
export async function reportRun({ data, run: runId, to }: ReportCommandOptions): Promise<boolean> {
  if (runId === null) throw new UsageError("--run is required: the id of the run to report on");
  if (to !== null && (await nodeFileSystem.exists(to))) {
    throw new UsageError(`--to: ${to} exists already; nothing is overwritten`);
  }
  const { dataDirectory, fileSystem } = await readStore(data);
  const stored = await readRun({ dataDirectory, fileSystem, runId });
  if (stored === undefined) throw new UsageError(`--run: the store in ${data} has no run ${runId}`);
  const { run, loss } = stored;
  const lost = loss === null ? undefined : lossMessage(run, loss, (path) => nameIn(dataDirectory, path));
  const { page, damages } = await artefactTasks().report({
    path: `${dataDirectory.capturesPath}/${capturePath(runId, "capture")}`,
    run: { json: Buffer.from(JSON.stringify(run)) },
    ...(lost !== undefined && { loss: lost }),
  });
  if (to === null) print(page);
  else {
    await writeNew(to, page);
    printLine(`run ${runId} (${run.status}): ${counted(page.length, "byte")} in ${to}`);
  }
  const faults = damages.map((damage) => withRelativePaths(damage, data));
  if (lost !== undefined) faults.unshift(lost);
  for (const fault of faults) sayOnStandardError(`inspection-service: ${fault}\n`);
  return faults.length === 0;
}

async function writeNew(path: string, bytes: Uint8Array): Promise<void> {
  const file = await nodeFileSystem.open(path, "create");
  try {
    await writeFully(file, bytes, 0, path);
    await file.datasync();
  } finally {
    await file.close();
  }
}
