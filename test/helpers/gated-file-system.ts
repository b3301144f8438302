import { type FileSystem, FileSystemError, nodeFileSystem, type StoreFile } from "../../storage/file-system.js";

/** The machine's file system with a gate before every fdatasync: it can be held, and it can fail. */
export class GatedFileSystem {
  #held: (() => void)[] | undefined;
  #failing: string | undefined;
  #onWaiting: (() => void)[] = [];
  datasyncs = 0;

  /** fdatasync calls wait until `release`. */
  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const proceed of held) proceed();
  }

  /** Resolves when some fdatasync waits at the gate. */
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
      write: (bytes, position) => file.write(bytes, position),
      read: (into, position) => file.read(into, position),
      readSync: (into, position) => file.readSync(into, position),
      truncate: (sizeBytes) => file.truncate(sizeBytes),
      size: () => file.size(),
      close: () => file.close(),
      datasync: async () => {
        this.datasyncs++;
        await this.#pass();
        if (this.#failing !== undefined && path.includes(this.#failing))
          throw new FileSystemError("EIO", "fdatasync", path);
        await file.datasync();
      },
    };
  }

  #pass(): Promise<void> {
    if (this.#held === undefined) return Promise.resolve();
    const held = this.#held;
    return new Promise((resolve) => {
      held.push(resolve);
      for (const onWaiting of this.#onWaiting.splice(0)) onWaiting();
    });
  }
}
