/**
 * The kernels and the memory that they compute on. In WebAssembly they run on a shared memory, which other threads can join. The same
 * sources compiled by tsc run on a plain buffer, as a reference and where there is no WebAssembly SIMD.
 */
import { randomFillSync } from "node:crypto";
import { fileURLToPath } from "node:url";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { isShortage } from "../../storage/disk/file-system-error.js";
import * as heightDecoding from "./kernels/height-decoding.js";
import * as inlierMarking from "./kernels/inlier-marking.js";
import { useLinearMemory } from "./kernels/linear-memory.js";
import * as nearDistances from "./kernels/near-distances.js";
import * as neighbourSearch from "./kernels/neighbour-search.js";
import * as outlierStatistics from "./kernels/outlier-statistics.js";
import * as pointPacking from "./kernels/point-packing.js";
import * as pointTree from "./kernels/point-tree.js";
import * as sampleMapping from "./kernels/sample-mapping.js";
import * as sampleSwapping from "./kernels/sample-swapping.js";
import * as shortDecoding from "./kernels/short-decoding.js";
import * as tileBounds from "./kernels/tile-bounds.js";
import { isOutOfMemory } from "./pool/task-failures.js";

/** As much of it as is used here: its types come with those of browsers only. */
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
/** As .ci/build-kernels.mjs declares it: addresses stay within an i32. */
const MAXIMUM_PAGES = 32_768;
export const MEMORY_BYTES = MAXIMUM_PAGES * PAGE_BYTES;
/** Below it nothing is placed: address 0 stands for nothing. */
const FIRST_ADDRESS = 1_024;
const ALIGNMENT_BYTES = 16;

const TYPESCRIPT_KERNELS = {
  ...heightDecoding,
  ...inlierMarking,
  ...nearDistances,
  ...neighbourSearch,
  ...outlierStatistics,
  ...pointPacking,
  ...pointTree,
  ...sampleMapping,
  ...sampleSwapping,
  ...shortDecoding,
  ...tileBounds,
};

/** What both compile to. */
export type Kernels = Pick<
  typeof TYPESCRIPT_KERNELS,
  | "approximateSums"
  | "boundRaws"
  | "boundTiles"
  | "countPoints"
  | "decodeIntegers"
  | "decodeShorts"
  | "decodeSingles"
  | "exactStatistics"
  | "mapByTable"
  | "mapHeights"
  | "mapLuminance"
  | "markExactInliers"
  | "markInliers"
  | "markValues"
  | "measureExactly"
  | "measureNear"
  | "measureOpen"
  | "nearScratchBytes"
  | "packPoints"
  | "plantTree"
  | "resolveByTree"
  | "swapSamples"
  | "tileCost"
>;

/** Where the lines are that are packed from raw heights, what lies beside them, and where the vertices go. */
type PackedLines = [
  xs: number,
  yOrigin: number,
  yPitch: number,
  firstLine: number,
  lines: number,
  width: number,
  mask: number,
  firstBit: number,
  lights: number,
  lightShift: number,
  out: number,
];

export interface WasmKernels extends Kernels, StripKernels {
  /** assembly/distance-lanes.ts */
  measureLanes(
    grid: number,
    best: number,
    distances: number,
    squares: number,
    pitch: number,
    firstLine: number,
    endLine: number,
    work: number,
  ): void;
  /** assembly/point-packing.ts */
  packShorts(
    ...raw: [raw: number, signed: number, scale: number, offset: number, first: number, second: number, ...PackedLines]
  ): number;
  /** assembly/point-packing.ts */
  packWords(
    ...raw: [
      raw: number,
      isSingle: number,
      scale: number,
      offset: number,
      codes: number,
      codeCount: number,
      ...PackedLines,
    ]
  ): number;
  /** assembly/exact-lanes.ts */
  exactLanesScratchBytes(grid: number): number;
  measureExactLanes(
    grid: number,
    best: number,
    distances: number,
    firstLine: number,
    endLine: number,
    work: number,
  ): void;
}

/** assembly/png/strip-coding.ts */
export interface StripKernels {
  codeStrip(
    samples: number,
    pitch: number,
    lineBytes: number,
    lines: number,
    bytesPerPixel: number,
    filtered: number,
    work: number,
    out: number,
  ): number;
}

/** The memory of kernels in WebAssembly, as it crosses between threads: those that join it compute on the same bytes. */
export type SharedMemory = WebAssembly.Memory;

/** More memory is needed than addresses reach, however much the machine has. */
export class MemoryLimitError extends RangeError {}

/** A memory that is allocated piece by piece and freed only as a whole. */
export abstract class KernelMemory {
  #end = FIRST_ADDRESS;

  abstract readonly kernels: Kernels;
  /** Kernels that exist only in WebAssembly; null without it. */
  abstract readonly wasm: WasmKernels | null;
  abstract get buffer(): ArrayBufferLike;
  protected abstract grow(toBytes: number): void;

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
    if (end > this.buffer.byteLength) this.grow(end);
    this.#end = end;
    return at;
  }

  reset(): void {
    this.#end = FIRST_ADDRESS;
  }

  /** More is laid out from here on: before it lies what another thread has laid out, which stays. */
  continueFrom(usedBytes: number): void {
    this.#end = usedBytes;
  }

  /** Views are void once more is allocated. */
  bytes(at: number, length: number): Uint8Array {
    return new Uint8Array(this.buffer, at, length);
  }

  /** In a buffer of its own, which can be moved to another thread. */
  copyOf(at: number, length: number): Uint8Array<ArrayBuffer> {
    // Not zeroed first: all of it is written.
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
}

class TypeScriptMemory extends KernelMemory {
  readonly wasm = null;
  #buffer = new ArrayBuffer(PAGE_BYTES);

  get kernels(): Kernels {
    useLinearMemory(this.#buffer);
    return TYPESCRIPT_KERNELS;
  }

  get buffer(): ArrayBufferLike {
    return this.#buffer;
  }

  protected grow(toBytes: number): void {
    const grown = new ArrayBuffer(Math.ceil(toBytes / PAGE_BYTES) * PAGE_BYTES);
    new Uint8Array(grown).set(new Uint8Array(this.#buffer));
    this.#buffer = grown;
  }
}

class WasmMemory extends KernelMemory {
  readonly kernels: WasmKernels;
  readonly wasm: WasmKernels;
  readonly shared: WebAssembly.Memory;

  constructor(module: WebAssembly.Module, shared: WebAssembly.Memory) {
    super();
    this.shared = shared;
    const instance = new WebAssembly.Instance(module, { env: { memory: shared } });
    this.wasm = instance.exports as unknown as WasmKernels;
    this.kernels = this.wasm;
  }

  get buffer(): ArrayBufferLike {
    return this.shared.buffer;
  }

  protected grow(toBytes: number): void {
    this.shared.grow(Math.ceil((toBytes - this.shared.buffer.byteLength) / PAGE_BYTES));
  }
}

export function typeScriptKernels(): KernelMemory {
  return new TypeScriptMemory();
}

/** @throws where this machine has no WebAssembly SIMD, or the build has not made the module */
export async function wasmKernels(): Promise<KernelMemory> {
  return joinMemory(newSharedMemory());
}

export function newSharedMemory(): SharedMemory {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: MAXIMUM_PAGES, shared: true });
  randomFillSync(new Uint8Array(memory.buffer, 4 * IDENTITY, 8));
  return memory;
}

/** Words (i32) of a memory where nothing is placed: 64 random bits, by which a thread knows it again. What crosses between threads is a new object each time. */
const IDENTITY = 2;

/**
 * The kernels on a memory that other threads may compute on as well: with nothing laid out, as far as this one knows. A thread has one instance for a
 * memory, as long as it is not collected: calls of a new one's functions are slow until they are compiled anew. @throws as `wasmKernels`
 */
export async function joinMemory(shared: SharedMemory): Promise<KernelMemory> {
  const module = await compiled();
  const identity = new BigUint64Array(shared.buffer, 4 * IDENTITY, 1)[0] as bigint;
  const known = joinedMemories.get(identity)?.deref();
  if (known !== undefined) {
    known.reset();
    return known;
  }
  const joined = new WasmMemory(module, shared);
  joinedMemories.delete(identity);
  joinedMemories.set(identity, new WeakRef(joined));
  const [oldest] = joinedMemories.keys();
  if (joinedMemories.size > MOST_JOINED && oldest !== undefined) joinedMemories.delete(oldest);
  return joined;
}

/** More than one thread has at a time. */
const MOST_JOINED = 16;
const joinedMemories = new Map<bigint, WeakRef<KernelMemory>>();

/** False where `wasmKernels` throws. @throws FileSystemError, RangeError where there is no descriptor or memory for the module now */
export function hasWasmKernels(): Promise<boolean> {
  return compiled().then(
    () => true,
    (error) => {
      if (isPassing(error)) throw error;
      return false;
    },
  );
}

function isPassing(error: unknown): boolean {
  return isShortage(error) || isOutOfMemory(error);
}

let modulePromise: Promise<WebAssembly.Module> | undefined;

function compiled(): Promise<WebAssembly.Module> {
  modulePromise ??= readModule()
    .then((bytes) => WebAssembly.compile(bytes))
    .catch((error) => {
      // Whoever asks next may get it.
      if (isPassing(error)) modulePromise = undefined;
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
