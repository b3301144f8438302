import type { StoreFile } from "../../../storage/disk/file-system-interface.js";
import type { SimulatedDisk } from "./simulated-disk.js";

/** From now on `watch` sees each file that is opened, and may put its own functions in place of the file's. */
export function watchOpened(disk: SimulatedDisk, watch: (file: StoreFile, path: string) => void): void {
  const open = disk.open.bind(disk);
  disk.open = async (path, mode) => {
    const file = await open(path, mode);
    watch(file, path);
    return file;
  };
}
