import type { StoreFile } from "../../../storage/disk/file-system-interface.js";

/** A file for reading whose bytes lie in memory. */
export function memoryFile(bytes: Uint8Array, onClose: () => void = () => {}): StoreFile {
  const readSync = (into: Uint8Array, position: number): number => {
    const part = bytes.subarray(position, position + into.length);
    into.set(part);
    return part.length;
  };
  const read = async (into: Uint8Array, position: number): Promise<number> => readSync(into, position);
  return {
    read,
    readSync,
    size: async () => bytes.length,
    close: async () => onClose(),
    closeSync: onClose,
  } as StoreFile;
}
