import { FileSystemError, isNoRoom } from "../../storage/disk/file-system-error.js";
import { StorageError } from "../../storage/storage-error.js";
import { LinkListenError } from "../cell-link/link-server.js";
import type { RecorderErrorData } from "./recorder-messages.js";

/** Why the store's writer could not start, as data for the front. */
export function recorderErrorData(error: unknown): RecorderErrorData {
  if (error instanceof StorageError) return error.data;
  if (error instanceof FileSystemError) {
    const { code, path, message: said } = error;
    const message = isNoRoom(error) ? withoutRoom(said) : said;
    return { code: "file_system_failed", message, params: { code, path } };
  }
  if (error instanceof LinkListenError) return { code: error.code, message: error.message, params: {} };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "recorder_crashed", message, params: {} };
}

function withoutRoom(cause: string): string {
  return (
    `the disk has too little room to start (${cause}): free some and start again. Nothing is lost, but the service answers no requests ` +
    "until then"
  );
}
