import type { LogReader } from "../../../storage/log/log-reader.js";
import type { RecordReader } from "../../../storage/view/run-records.js";

/** Reads wait at a gate: what they look for is moved meanwhile. */
export class GatedReader implements RecordReader {
  reads = 0;
  #gate: Promise<void> | null = null;
  #proceed: () => void = () => {};
  readonly #reader: LogReader;

  constructor(reader: LogReader) {
    this.#reader = reader;
  }

  hold(): void {
    this.#gate = new Promise((resolve) => {
      this.#proceed = resolve;
    });
  }

  release(): void {
    this.#gate = null;
    this.#proceed();
  }

  async read(...[location, check]: Parameters<RecordReader["read"]>) {
    this.reads++;
    await this.#gate;
    return this.#reader.read(location, check);
  }

  async readMany(...[locations, check]: Parameters<RecordReader["readMany"]>) {
    this.reads++;
    await this.#gate;
    return this.#reader.readMany(locations, check);
  }
}
