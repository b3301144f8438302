export interface MemoryNeedOptions {
  /** A memory up to this size is always kept. */
  keptBytes: number;
  /**
   * A larger one is kept for this long after the last frame that needed it: a head takes frames of one size for minutes.
   */
  keptLargeMs: number;
  nowMs: () => number;
}

const DEFAULTS: MemoryNeedOptions = {
  keptBytes: 256 * 1024 * 1024,
  keptLargeMs: 60_000,
  nowMs: () => performance.now(),
};

/**
 * Decides when memory that grew for large frames is given back. Giving back hundreds of megabytes takes the system tens
 * of milliseconds, and no thread of the process gets memory meanwhile. Done for every frame, that would delay readers
 * more than making the formats does.
 */
export class MemoryNeed {
  readonly #options: MemoryNeedOptions;
  #largeAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: Partial<MemoryNeedOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Notes how much memory a frame has used. */
  note(usedBytes: number): void {
    if (usedBytes > this.#options.keptBytes) this.#largeAtMs = this.#options.nowMs();
  }

  /** Whether a memory of this size is kept for the next frame. */
  isKept(memoryBytes: number): boolean {
    const { keptBytes, keptLargeMs, nowMs } = this.#options;
    return memoryBytes <= keptBytes || nowMs() - this.#largeAtMs < keptLargeMs;
  }
}
