/**
 * Bounds the bytes that reads hold at one time, whatever clients ask for together. Each read takes its bytes first, and waits in order until they
 * are free. A read larger than the whole budget runs alone.
 */
export class ByteBudget {
  readonly #totalBytes: number;
  #takenBytes = 0;
  readonly #waiting: { bytes: number; start: () => void }[] = [];

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
  }

  /** Runs `work` when `bytes` are free, and gives them back when it has settled. */
  async run<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    if (this.#waiting.length > 0 || !this.#fits(bytes)) {
      await new Promise<void>((start) => this.#waiting.push({ bytes, start }));
    } else {
      this.#takenBytes += bytes;
    }
    try {
      return await work();
    } finally {
      this.#takenBytes -= bytes;
      this.#startWaiting();
    }
  }

  #fits(bytes: number): boolean {
    return this.#takenBytes === 0 || this.#takenBytes + bytes <= this.#totalBytes;
  }

  #startWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#takenBytes += next.bytes;
      next.start();
    }
  }
}
