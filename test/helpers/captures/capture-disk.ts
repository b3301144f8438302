import { capturePath } from "../../../storage/captures/capture-path.js";
import { CaptureStore } from "../../../storage/captures/capture-store.js";
import { SimulatedDisk } from "../disk/simulated-disk.js";

type CaptureStoreOptions = ConstructorParameters<typeof CaptureStore>[0];

/** The folder of captures on a simulated disk. */
export const CAPTURES = "/data/captures";

/** A disk with nothing but the folder of captures, which is durable. */
export async function createCaptureDisk(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  await disk.makeDirectory(CAPTURES);
  for (const directory of ["", "/data", CAPTURES]) await disk.syncDirectory(directory);
  return disk;
}

export function openCaptures(disk: SimulatedDisk, options: Partial<CaptureStoreOptions> = {}): CaptureStore {
  return new CaptureStore({ fileSystem: disk, capturesPath: CAPTURES, maximumOpenFiles: 8, ...options });
}

/** Where a run's captures lie. */
export function capturesOf(runId: string): string {
  return `${CAPTURES}/${capturePath(runId, "capture")}`;
}

/** Stores captures of a run, durably. */
export async function storeCaptures(store: CaptureStore, runId: string, bytes: Uint8Array): Promise<void> {
  const file = store.file(runId, "capture", 0);
  file.append(bytes);
  await file.makeDurable();
  store.finish(runId);
}
