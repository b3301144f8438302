import { dirname } from "node:path";
import { artefactExtentsOf } from "../../../core/capture/artefact.js";
import { counted } from "../../../core/counted.js";
import { fileNameFault } from "../../../core/run/manifest.js";
import { manifestOf } from "../../../core/run/run-files.js";
import {
  defectsResponse,
  manifestResponse,
  qualityReportResponse,
  runResponse,
} from "../../../core/run/run-response.js";
import type { RunState } from "../../../core/run/run-state.js";
import { type CaptureKind, capturePath } from "../../../storage/captures/capture-path.js";
import { CaptureReader, verifyExtents } from "../../../storage/captures/capture-reader.js";
import { type DataDirectory, nameIn } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { writeFully } from "../../../storage/disk/whole-files.js";
import { readStore } from "../../../storage/repair/store-reading.js";
import { StorageError } from "../../../storage/storage-error.js";
import { readRun, type StoredRun } from "../../../storage/view/read-run.js";
import { artefactTasks } from "../../../workers/artefacts/pool/artefact-tasks.js";
import { entryContent } from "../../downloads/entry-body.js";
import { GeneratedFiles, type MakeArtefact } from "../../downloads/generated-files.js";
import type { OpenStoredExtents } from "../../downloads/stored-stream.js";
import { sayOnStandardError } from "../../log/standard-error.js";
import type { StreamBody } from "../../replies/reply.js";
import type { ExportCommandOptions } from "../command-options.js";
import { printLine } from "../command-output.js";
import { UsageError } from "../resolve-options.js";
import { LOSS_FILE, lossAnswer, lossMessage } from "./export-loss.js";
import { type ExportTarget, exportTarget } from "./export-target.js";

const CHUNK_BYTES = 1024 * 1024;
/** Cache of generated PLY and CSV pieces: a read may end in the middle of a piece. */
const GENERATED_BYTES = 32 * 1024 * 1024;
/** Longest file name that all common file systems allow. */
const MAXIMUM_NAME_BYTES = 255;

/** The run cannot be exported as it was stored. The message says what is wrong, and where the files written so far are. */
export class ExportError extends Error {
  override name = "ExportError";
}

/**
 * `export`: writes a run of a store as plain files: the interface's answers with relative links, and every
 * file of its manifest that retention has not removed. The folder appears as a whole, once everything in it is written and synced.
 *
 * @returns false if the log has lost records that may belong to the run, or the disk cannot read them. Everything that is left is then
 *   written, and `incomplete.json` says what may be missing.
 * @throws UsageError, ExportError, StorageError, FileSystemError
 */
export async function exportRun({ data, run: runId, to }: ExportCommandOptions): Promise<boolean> {
  if (runId === null) throw new UsageError("--run is required: the id of the run to export");
  if (to === null) throw new UsageError("--to is required: the folder to write to");
  const { dataDirectory, fileSystem } = await readStore(data);
  const stored = await readRun({ dataDirectory, fileSystem, runId });
  if (stored === undefined) throw new UsageError(`--run: the store in ${data} has no run ${runId}`);
  const target = await exportTarget(nodeFileSystem, to);
  const counts = await writeRun(nodeFileSystem, dataDirectory, stored, target);
  printLine(
    `run ${runId} (${stored.run.status}): ${counted(counts.files, "file")}, ${counted(counts.bytes, "byte")} in ${target.path}` +
      (counts.removed === 0
        ? ""
        : `; files.json alone lists ${counted(counts.removed, "file")} that retention removed`),
  );
  const { run, loss } = stored;
  if (loss === null) return true;
  const left = counts.leftOut === 0 ? "" : `; ${counts.leftOut} of its files can no longer be made`;
  sayOnStandardError(
    `inspection-service: ${lossMessage(run, loss, (path) => nameIn(dataDirectory, path))}${left}; see ${target.path}/${LOSS_FILE}\n`,
  );
  return false;
}

async function writeRun(
  fileSystem: FileSystem,
  dataDirectory: DataDirectory,
  { run, deliveries, loss }: StoredRun,
  { path: target, incompletePath: folder }: ExportTarget,
): Promise<{ files: number; bytes: number; removed: number; leftOut: number }> {
  const entries = manifestOf(run);
  const kept = entries.filter((entry) => entry.deletedAtUs === null);
  const names = plainNames(kept.map(({ name, source }) => ({ name, isPut: source.kind === "stored" })));
  await refuseDamaged(fileSystem, dataDirectory, run);

  const reader = new CaptureReader({ fileSystem });
  const pathOf = (id: string, kind: CaptureKind): string => `${dataDirectory.capturesPath}/${capturePath(id, kind)}`;
  const open: OpenStoredExtents = (id, kind, extents) => reader.openExtents(pathOf(id, kind), extents);
  const tasks = artefactTasks(fileSystem);
  const make: MakeArtefact = (name, input) => tasks[name](input);
  const generated = new GeneratedFiles({
    make,
    open,
    capturePathOf: (id) => pathOf(id, "capture"),
    keptBytes: GENERATED_BYTES,
  });
  const leftOut: string[] = [];
  let bytes = 0;
  try {
    await fileSystem.makeDirectory(`${folder}/files`);
    const answers = {
      "run.json": runResponse(run, "", deliveries),
      "quality-report.json": qualityReportResponse(run),
      "defects.json": defectsResponse(run),
      "files.json": manifestResponse(run, ""),
    };
    const writeAnswer = (name: string, answer: unknown): Promise<void> =>
      writeFile(fileSystem, `${folder}/${name}`, bodyOf(Buffer.from(`${JSON.stringify(answer, null, 2)}\n`)));
    for (const [name, answer] of Object.entries(answers)) await writeAnswer(name, answer);
    for (const [at, entry] of kept.entries()) {
      const path = `${folder}/files/${names[at]}`;
      try {
        bytes += await writeEntry(fileSystem, path, () => entryContent(run, entry, { open, generated }).open());
      } catch (error) {
        // The log has lost a part of the captures that this file is made from: the stored sizes no longer fit.
        if (loss === null || error instanceof StorageError || error instanceof FileSystemError) throw error;
        if (await fileSystem.exists(path)) await fileSystem.unlink(path);
        leftOut.push(`${entry.name}: ${(error as Error).message}`);
        continue;
      }
      if (names[at] !== entry.name)
        printLine(`files/${names[at]} is ${JSON.stringify(entry.name)}, a name too long for a file`);
    }
    if (loss !== null)
      await writeAnswer(
        LOSS_FILE,
        lossAnswer(run, loss, leftOut, (path) => nameIn(dataDirectory, path)),
      );
    await fileSystem.syncDirectory(`${folder}/files`);
    await fileSystem.syncDirectory(folder);
    // An empty folder of this name is replaced; if it has been filled in the meantime, the rename fails.
    await fileSystem.rename(folder, target);
    await fileSystem.syncDirectory(dirname(target));
  } catch (error) {
    throw new ExportError(`${(error as Error).message}; the files written so far are in ${folder}`);
  } finally {
    reader.close();
  }
  const { length: left } = leftOut;
  return { files: kept.length - left, bytes, removed: entries.length - kept.length, leftOut: left };
}

/** Verifies every stored byte of the run before anything is written: CRCs cover whole batches, not the parts that a format reads. */
async function refuseDamaged(fileSystem: FileSystem, dataDirectory: DataDirectory, run: RunState): Promise<void> {
  if (run.capturesRemovedAtUs !== null) return;
  const { frames, series } = run;
  const captures = [...frames.flatMap((frame) => frame.batches), ...series.flatMap(({ appends }) => appends)];
  const extents = [...captures, ...artefactExtentsOf(run)].filter(({ lengthBytes }) => lengthBytes > 0);
  if (extents.length === 0) return;
  const path = capturePath(run.id, "capture");
  const [damage] = await verifyExtents(fileSystem, `${dataDirectory.capturesPath}/${path}`, extents);
  if (damage === undefined) return;
  const { offset, lengthBytes } = damage.extent;
  throw new ExportError(`captures/${path}, ${lengthBytes} bytes at ${offset}: ${damage.reason}; nothing was written`);
}

/** Names of the files to write: those of the manifest, with `file-<n>` in place of a name that is too long for a file system. */
function plainNames(entries: readonly { name: string; isPut: boolean }[]): string[] {
  const taken = new Set(entries.map(({ name }) => name));
  return entries.map(({ name, isPut }, at) => {
    // The cell link refuses such names; here one could write outside of the folder.
    const fault = isPut ? fileNameFault(name) : undefined;
    if (fault !== undefined)
      throw new ExportError(`the manifest has a file named ${JSON.stringify(name)}; the name must be: ${fault}`);
    if (Buffer.byteLength(name) <= MAXIMUM_NAME_BYTES) return name;
    let plain = `file-${at + 1}`;
    while (taken.has(plain)) plain += "-";
    taken.add(plain);
    return plain;
  });
}

/** @returns the size of the file in bytes */
async function writeEntry(fileSystem: FileSystem, path: string, open: () => Promise<StreamBody>): Promise<number> {
  const body = await open();
  try {
    await writeFile(fileSystem, path, body);
  } finally {
    body.release();
  }
  return body.totalBytes;
}

async function writeFile(fileSystem: FileSystem, path: string, body: StreamBody): Promise<void> {
  const file = await fileSystem.open(path, "create");
  try {
    for (let position = 0; position < body.totalBytes; ) {
      const chunk = await body.read(position, Math.min(CHUNK_BYTES, body.totalBytes - position));
      await writeFully(file, chunk, position, path);
      position += chunk.length;
    }
    await file.datasync();
  } finally {
    await file.close();
  }
}

function bodyOf(bytes: Uint8Array): StreamBody {
  return {
    totalBytes: bytes.length,
    read: async (position, lengthBytes) => bytes.subarray(position, position + lengthBytes),
    release: () => {},
  };
}
