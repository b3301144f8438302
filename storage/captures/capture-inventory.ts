import { isUuidV7 } from "../../core/identifiers.js";
import { UuidTable } from "../columns/uuid-table.js";
import { orWhereMissing } from "../disk/file-system-error.js";
import type { FileSystem } from "../disk/file-system-interface.js";

const CAPTURE_PATH = /^\d{6}\/([0-9a-f-]{36})-000\.(cap|rep)$/;
const BITS: Record<string, number> = { cap: 1, rep: 2 };
const MONTH = /^\d{6}$/;

export interface CaptureFileEntry {
  /** Relative to the captures folder. */
  path: string;
  sizeBytes: number;
  /** Null for a file that does not belong to the service. */
  runId: string | null;
}

/**
 * The capture files that records name, to find the files that none names: a crash left those of messages that were never acknowledged, or their
 * records are lost. It takes 24 to 44 bytes a run.
 */
export class CaptureInventory {
  readonly #named = new UuidTable();

  /** @param path relative to the captures folder */
  note(path: string): void {
    const file = captureFileOf(path);
    if (file !== null) this.#named.set(file.runId, (this.#named.get(file.runId) ?? 0) | file.bit);
  }

  isNamed(path: string): boolean {
    const file = captureFileOf(path);
    return file !== null && ((this.#named.get(file.runId) ?? 0) & file.bit) !== 0;
  }
}

function captureFileOf(path: string): { runId: string; bit: number } | null {
  const [, runId = "", ending = ""] = CAPTURE_PATH.exec(path) ?? [];
  return isUuidV7(runId) ? { runId, bit: BITS[ending] as number } : null;
}

/** The files of the captures folder, month by month. */
export async function* captureFiles(fileSystem: FileSystem, capturesPath: string): AsyncGenerator<CaptureFileEntry> {
  for (const month of await entriesOf(fileSystem, capturesPath)) {
    if (!month.isDirectory || !MONTH.test(month.name)) {
      yield await entry(month.name, month.isDirectory);
      continue;
    }
    for (const { name, isDirectory } of await entriesOf(fileSystem, `${capturesPath}/${month.name}`)) {
      yield await entry(`${month.name}/${name}`, isDirectory);
    }
  }

  async function entry(path: string, isDirectory: boolean): Promise<CaptureFileEntry> {
    const runId = isDirectory ? null : (captureFileOf(path)?.runId ?? null);
    return {
      path,
      sizeBytes: isDirectory ? 0 : await orWhereMissing(fileSystem.sizeOf(`${capturesPath}/${path}`), 0),
      runId,
    };
  }
}

async function entriesOf(fileSystem: FileSystem, path: string): Promise<{ name: string; isDirectory: boolean }[]> {
  const entries = await orWhereMissing(fileSystem.readDirectory(path), []);
  return entries.sort((left, right) => (left.name < right.name ? -1 : 1));
}
