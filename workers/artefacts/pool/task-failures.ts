/** How tasks fail, as data that crosses threads. */
import { FileSystemError, isOutOfMemory, isShortage } from "../../../storage/disk/file-system-error.js";
import { StorageError } from "../../../storage/storage-error.js";

export interface TaskErrorData {
  code: string;
  message: string;
}

// Codes of failures that say nothing about the artefact: it is made once the service has what it lacks.

/** The process, or the machine, had no descriptor or memory left. */
export const RESOURCE_SHORTAGE = "resource_shortage";

/** No thread could be started, or none in time. */
export const NO_THREAD = "no_thread";

/** The machine did not give a buffer. Nobody knows whether it ever would give one of that size. */
export const OUT_OF_MEMORY = "out_of_memory";

export function taskFailure(error: unknown): TaskErrorData {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof StorageError) return { code: error.code, message };
  if (isOutOfMemory(error)) return { code: OUT_OF_MEMORY, message };
  if (isShortage(error)) return { code: RESOURCE_SHORTAGE, message };
  if (error instanceof FileSystemError) return { code: "file_system_failed", message };
  if (error instanceof RangeError) return { code: "too_large", message };
  return { code: "task_failed", message };
}
