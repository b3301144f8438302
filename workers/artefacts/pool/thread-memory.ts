import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { type FrameReader, type FrameSource, openFrame } from "../frame/frame-source.js";
import { type KernelMemory, newKernelMemory } from "../kernel-memory.js";
import type { MemoryNeed } from "./memory-need.js";

/** The kernels' memory of one thread. Its tasks use it one after the other. */
export class ThreadMemory {
  readonly #fileSystem: FileSystem;
  readonly #need: MemoryNeed;
  #memory: Promise<KernelMemory> | undefined;

  constructor(fileSystem: FileSystem, need: MemoryNeed) {
    this.#fileSystem = fileSystem;
    this.#need = need;
  }

  /** The memory for the next task, with nothing in it. A memory that has grown too large is replaced. */
  async fresh(): Promise<KernelMemory> {
    this.#memory ??= newKernelMemory();
    const ready = await this.#memory.catch((error) => {
      this.#memory = undefined;
      throw error;
    });
    this.#need.note(ready.usedBytes);
    if (!this.#need.isKept(ready.buffer.byteLength)) {
      this.#memory = undefined;
      return this.fresh();
    }
    ready.reset();
    return ready;
  }

  /** Opens a frame for a task and closes it afterwards. */
  async withFrame<T>(source: FrameSource, use: (memory: KernelMemory, frame: FrameReader) => Promise<T>): Promise<T> {
    const memory = await this.fresh();
    const frame = openFrame(this.#fileSystem, source, (at, length) => memory.bytes(at, length));
    try {
      return await use(memory, frame);
    } finally {
      frame.close();
    }
  }
}
