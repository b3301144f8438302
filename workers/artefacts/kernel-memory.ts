import { fileURLToPath } from "node:url";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import type { Kernels } from "./kernels.js";

/** Only the parts that are used here: its types come with those of browsers only. */
declare namespace WebAssembly {
  class Module {
    private readonly module: unknown;
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum: number; shared: true });
    readonly buffer: SharedArrayBuffer;
    grow(pages: number): number;
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: Record<string, unknown>;
  }
  function compile(bytes: Uint8Array): Promise<Module>;
}

const PAGE_BYTES = 65_536;
/** .ci/build-kernels.mjs declares the same number. With it, addresses stay within an i32. */
const MAXIMUM_PAGES = 32_768;
const MEMORY_BYTES = MAXIMUM_PAGES * PAGE_BYTES;
/** Nothing is placed below it, because address 0 means that there is nothing. */
const FIRST_ADDRESS = 1_024;
const ALIGNMENT_BYTES = 16;

/** More memory is needed than addresses reach, however much the machine has. */
export class MemoryLimitError extends RangeError {}

/** A memory that is allocated piece by piece and freed only as a whole, and the kernels that compute on it. */
export class KernelMemory {
  readonly kernels: Kernels;
  /** It is shared, because a memory that is not shared makes all its views void whenever it grows. */
  readonly #memory = new WebAssembly.Memory({ initial: 1, maximum: MAXIMUM_PAGES, shared: true });
  #end = FIRST_ADDRESS;

  constructor(module: WebAssembly.Module) {
    this.kernels = new WebAssembly.Instance(module, { env: { memory: this.#memory } }).exports as unknown as Kernels;
  }

  get buffer(): SharedArrayBuffer {
    return this.#memory.buffer;
  }

  /** Bytes in use. */
  get usedBytes(): number {
    return this.#end;
  }

  /** @throws MemoryLimitError; {RangeError} when the machine has no memory of that size */
  allocate(lengthBytes: number): number {
    const at = Math.ceil(this.#end / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
    // A vector of 16 bytes may be read from any of the bytes.
    const end = at + lengthBytes + ALIGNMENT_BYTES;
    if (end > MEMORY_BYTES) throw new MemoryLimitError(`the kernels' memory has no room for ${lengthBytes} bytes`);
    if (end > this.buffer.byteLength) this.#grow(end);
    this.#end = end;
    return at;
  }

  reset(): void {
    this.#end = FIRST_ADDRESS;
  }

  /** Frees what was allocated since the memory had this many bytes in use. */
  continueFrom(usedBytes: number): void {
    this.#end = usedBytes;
  }

  /** Views become void when more is allocated. */
  bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.buffer, at, length);
  }

  /** A copy in a buffer of its own, which can be moved to another thread. */
  copyOf(at: number, length: number): Uint8Array<ArrayBuffer> {
    // It is not zeroed first, because all of it is written.
    const copy = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
    copy.set(this.bytes(at, length));
    return copy;
  }

  words(at: number, length: number): Int32Array {
    return new Int32Array(this.buffer, at, length);
  }

  singles(at: number, length: number): Float32Array {
    return new Float32Array(this.buffer, at, length);
  }

  doubles(at: number, length: number): Float64Array {
    return new Float64Array(this.buffer, at, length);
  }

  #grow(toBytes: number): void {
    this.#memory.grow(Math.ceil((toBytes - this.buffer.byteLength) / PAGE_BYTES));
  }
}

/** @throws FileSystemError, RangeError if there is no descriptor or memory for it now */
export async function newKernelMemory(): Promise<KernelMemory> {
  return new KernelMemory(await loadKernels());
}

let modulePromise: Promise<WebAssembly.Module> | undefined;

/** Reads and compiles the kernels, once. @throws as `newKernelMemory` */
export function loadKernels(): Promise<WebAssembly.Module> {
  modulePromise ??= readModule()
    .then((bytes) => WebAssembly.compile(bytes))
    .catch((error) => {
      // The next caller may have more luck.
      modulePromise = undefined;
      throw error;
    });
  return modulePromise;
}

async function readModule(): Promise<Uint8Array<ArrayBuffer>> {
  const file = await nodeFileSystem.open(fileURLToPath(new URL("./kernels.wasm", import.meta.url)), "read");
  try {
    const bytes = new Uint8Array(await file.size());
    await file.read(bytes, 0);
    return bytes;
  } finally {
    await file.close();
  }
}
