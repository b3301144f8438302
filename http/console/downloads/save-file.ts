import { apiFetch, apiUrl } from "../data/api.js";
import { bytes } from "../data/units.js";
import { countedStream } from "./counted-stream.js";

/** Most of a file that the page holds in memory. */
const HELD_BYTES = 512 * 1024 * 1024;

/** Asks the viewer where a file should be. Chromium has it, on pages that came by https or from this computer. */
type AskForFile = (options: { suggestedName: string }) => Promise<FileSystemFileHandle>;

/**
 * Reads a file with the API key, and saves it. A large one goes straight to the disk, where the browser can do that. Otherwise the page
 * holds it until it has all of it.
 *
 * @param isLarge it may have gigabytes
 * @param onProgress is told how many bytes have come
 * @throws ApiError; another Error says, for the viewer, what to do with a file that is too large
 */
export async function saveFile(
  path: string,
  name: string,
  isLarge: boolean,
  onProgress: (readBytes: number) => void,
): Promise<void> {
  const { showSaveFilePicker: ask } = window as Window & { showSaveFilePicker?: AskForFile };
  if (isLarge && ask !== undefined) {
    // It is asked for first: a browser allows that only for some seconds after a click.
    const file = await ask.call(window, { suggestedName: name }).catch(ignoreRefusal);
    if (file === undefined) return;
    // What is there stays as it is until the stream ends. If that breaks off, nothing is written.
    const saved = await file.createWritable();
    const body = await bodyOf(path).catch(async (error: Error) => {
      await saved.abort();
      throw error;
    });
    await countedStream(body, onProgress).pipeTo(saved);
    return;
  }
  const body = countedStream(await bodyOf(path), onProgress, { bytes: HELD_BYTES, error: tooLarge(path) });
  const url = URL.createObjectURL(await new Response(body).blob());
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}

/** The viewer does not want the file. */
function ignoreRefusal(error: Error): undefined {
  if (error.name !== "AbortError") throw error;
}

async function bodyOf(path: string): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  return (await apiFetch(path)).body as ReadableStream<Uint8Array<ArrayBuffer>>;
}

function tooLarge(path: string): Error {
  const command = `curl --compressed -OJ -H "Authorization: Bearer $KEY" "${apiUrl(path)}"`;
  return new Error(
    `The file has more than ${bytes(HELD_BYTES)}: too much for a page. Save it with your key in $KEY: ${command}`,
  );
}
