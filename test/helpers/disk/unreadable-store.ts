import type { Extent } from "../../../core/capture/capture.js";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { CaptureStore } from "../../../storage/captures/capture-store.js";
import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { OpenMode } from "../../../storage/disk/file-system-interface.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { appendEach, createDisk, META, openLog, QUARANTINE, recordOf, type SeenRecord } from "../store/log-harness.js";
import type { SimulatedDisk } from "./simulated-disk.js";

export const CAPTURES = "/data/captures";
export const NAMES = ["a", "bb", "ccc", "d", "ee", "fff", "g", "hh", "iii", "j", "kk", "lll"];
export const dataDirectory: DataDirectory = {
  ...{
    path: "/data",
    metaPath: META,
    capturesPath: CAPTURES,
    quarantinePath: QUARANTINE,
    storeId: null,
  },
  release: async () => {},
};

/** All paths and bytes, to compare. */
export function contentOf(disk: SimulatedDisk): string {
  return disk
    .paths()
    .map((path) => `${path} ${Buffer.from(disk.bytesOf(path)).toString("hex")}`)
    .join();
}

/** Some segments, the newest with a tail that nothing proves. */
export async function someSegments(): Promise<{ disk: SimulatedDisk; seen: SeenRecord[] }> {
  const disk = await createDisk();
  const { log, seen } = await openLog(disk, { segmentBytes: 600 });
  await appendEach(log, NAMES, 60);
  return { disk: disk.kill(), seen };
}

/** Captures of three runs, three extents each, and `check` over them. */
export async function storeWithCaptures() {
  const disk = await createDisk();
  await disk.makeDirectory(CAPTURES);
  const captures = new CaptureStore({ fileSystem: disk, capturesPath: CAPTURES });
  const { log } = await openLog(disk, { segmentBytes: 2_000 });
  const paths: string[] = [];
  const extents: Extent[] = [];
  for (let run = 0; run < 3; run++) {
    const path = capturePath(generateUuidV7(1_800_000_000_000 + run, new Uint8Array(10)), "capture");
    const file = captures.file(path.slice(7, 43), "capture", 0);
    for (let i = 0; i < 3; i++) {
      const extent = file.append(new Uint8Array(5_000).fill(run + i));
      const index = Buffer.from(JSON.stringify({ path, extent }));
      await log.whenCommitted(log.append({ ...recordOf("x", 300), index, needs: file }));
      extents.push(extent);
    }
    paths.push(path);
  }
  await log.close();
  await captures.close();
  /** @param removed the path of which all records are taken for tombstones */
  const check = (checked = disk, removed?: string) =>
    checkStore({
      ...{ dataDirectory, fileSystem: checked },
      inspectRecord: ({ index }) => {
        const { path, extent } = JSON.parse(Buffer.from(index).toString()) as { path: string; extent: Extent };
        return [path === removed ? { path, extents: [], isRemoved: true } : { path, extents: [extent] }];
      },
    });
  return { disk, paths, extents, check };
}

export type Lookup = "readDirectory" | "sizeOf" | "exists" | "open";

/** A copy of the disk that answers one operation on one path with the error. */
export function failing(disk: SimulatedDisk, operation: Lookup, failingPath: string, code: string): SimulatedDisk {
  const copy = disk.copy();
  const answer = copy[operation].bind(copy) as (path: string, mode: OpenMode) => Promise<unknown>;
  Object.assign(copy, {
    [operation]: (path: string, mode: OpenMode) =>
      path === failingPath ? Promise.reject(new FileSystemError(code, operation, path)) : answer(path, mode),
  });
  return copy;
}
