/** Decodes index sections: see index-layout.ts for their bytes. */
import { readUuid } from "../../core/identifiers.js";
import { RUN_STATUSES, type RunStatus } from "../../core/run/run-state.js";
import { IndexedEvents } from "./event-index.js";
import { HIGH, named, u32At, u53At } from "./index-fields.js";
import {
  CAPTURES_BYTES,
  type CapturesIndex,
  DELTA_BYTES,
  DELTA_KINDS,
  INSTANCE_BIT,
  OPEN_BIT,
  ORIGIN_HEAD_BYTES,
  type Origin,
  UUID_BYTES,
} from "./index-layout.js";
import { IndexedRun } from "./indexed-run.js";
import { RecordDecodeError } from "./record-decode-error.js";

const FRAME_BEGUN = DELTA_KINDS.indexOf("frame_begun");
const NO_EVENTS = {};
/** The last producer's name: records that follow each other mostly have the same one. */
let lastName = "";

/** Reads index sections by hand, as index-layout.ts describes them, because opening a store reads every record. */
export class IndexReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  origin(): Origin | null {
    const at = this.#take(ORIGIN_HEAD_BYTES);
    const first = this.#bytes[at] as number;
    const nameBytes = first & ~INSTANCE_BIT;
    const sequence = u53At(this.#bytes, at + 1);
    const nameAt = this.#take(nameBytes);
    const hasInstance = (first & INSTANCE_BIT) !== 0;
    const instanceAt = this.#take(hasInstance ? UUID_BYTES : 0);
    if (nameBytes === 0) return null;
    const producer = this.#name(nameAt, instanceAt);
    return hasInstance ? { producer, sequence, instance: readUuid(this.#bytes, instanceAt) } : { producer, sequence };
  }

  #name(start: number, end: number): string {
    const bytes = this.#bytes;
    let at = start;
    while (at < end && bytes[at] === lastName.charCodeAt(at - start)) at++;
    if (at < end || lastName.length !== end - start) lastName = String.fromCharCode(...bytes.subarray(start, end));
    return lastName;
  }

  delta(): { runId: string; statusAfter: RunStatus; frameId: string | null } {
    const at = this.#take(DELTA_BYTES);
    const code = this.#bytes[at + 17] as number;
    if (DELTA_KINDS[code] === undefined) throw new RecordDecodeError(`unknown change code ${code}`);
    return {
      runId: readUuid(this.#bytes, at),
      statusAfter: named(RUN_STATUSES, this.#bytes[at + 16] as number, "run status"),
      frameId: code === FRAME_BEGUN ? readUuid(this.#bytes, at + 18) : null,
    };
  }

  run(): IndexedRun {
    const run = new IndexedRun(this.#bytes, this.#at);
    this.#at = run.end;
    return run;
  }

  captures(): CapturesIndex {
    const at = this.#take(CAPTURES_BYTES);
    const high = u32At(this.#bytes, at + 4);
    const isOpen = high >= OPEN_BIT;
    const removedAtUs = u53At(this.#bytes, at + 8);
    return {
      bytes: u32At(this.#bytes, at) + (isOpen ? high - OPEN_BIT : high) * HIGH,
      removedAtUs: removedAtUs === 0 ? null : removedAtUs,
      isOpen,
    };
  }

  /** Events are the last part, if there are any. */
  events(): { events?: IndexedEvents } {
    return this.#at === this.#bytes.length ? NO_EVENTS : { events: new IndexedEvents(this.rest()) };
  }

  /** The bytes that were not read yet. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#take(this.#bytes.length - this.#at));
  }

  end(): void {
    const left = this.#bytes.length - this.#at;
    if (left !== 0) throw new RecordDecodeError(`the index section has ${left} bytes too many`);
  }

  /** Passes the next `length` bytes; returns where they begin. */
  #take(length: number): number {
    const at = this.#at;
    if (length > this.#bytes.length - at) {
      throw new RecordDecodeError(`the index section ends too early, at byte ${this.#bytes.length}`);
    }
    this.#at = at + length;
    return at;
  }
}
