import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";

/** The machine's file system with a gate before every fdatasync, or every write: it can be held, and a sync can fail. */
export class GatedFileSystem {
  #held: (() => void)[] | undefined;
  #failing: string | undefined;
  #gated: { operation: "datasync" | "write"; pathPart: string } = { operation: "datasync", pathPart: "" };
  #onWaiting: (() => void)[] = [];
  datasyncs = 0;

  /** fdatasync calls, or writes, wait until `release`: of files whose path contains this. */
  hold(operation: "datasync" | "write" = "datasync", pathPart = ""): void {
    this.#gated = { operation, pathPart };
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const proceed of held) proceed();
  }

  /** Resolves when something waits at the gate. */
  waiting(): Promise<void> {
    if ((this.#held?.length ?? 0) > 0) return Promise.resolve();
    return new Promise((resolve) => this.#onWaiting.push(resolve));
  }

  /** fdatasync of every file whose path contains this fails from now on. */
  failDatasync(pathPart: string): void {
    this.#failing = pathPart;
  }

  readonly fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (path, mode) => this.#wrap(await nodeFileSystem.open(path, mode), path),
  };

  #wrap(file: StoreFile, path: string): StoreFile {
    return {
      write: async (bytes, position) => {
        await this.#pass("write", path);
        return file.write(bytes, position);
      },
      read: (into, position) => file.read(into, position),
      readSync: (into, position) => file.readSync(into, position),
      truncate: (sizeBytes) => file.truncate(sizeBytes),
      size: () => file.size(),
      identity: () => file.identity(),
      close: () => file.close(),
      closeSync: () => file.closeSync(),
      datasync: async () => {
        this.datasyncs++;
        await this.#pass("datasync", path);
        if (this.#failing !== undefined && path.includes(this.#failing))
          throw new FileSystemError("EIO", "fdatasync", path);
        await file.datasync();
      },
    };
  }

  #pass(operation: "datasync" | "write", path: string): Promise<void> {
    const { operation: gated, pathPart } = this.#gated;
    if (this.#held === undefined || operation !== gated || !path.includes(pathPart)) return Promise.resolve();
    const held = this.#held;
    return new Promise((resolve) => {
      held.push(resolve);
      for (const onWaiting of this.#onWaiting.splice(0)) onWaiting();
    });
  }
}
