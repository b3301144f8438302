/** Decodes index sections: see index-layout.ts for their bytes. */
import { readUuid } from "../../core/identifiers.js";
import type { JsonObject } from "../../core/json/json.js";
import { RUN_STATUSES, type RunStatus } from "../../core/run/run-state.js";
import { RecentUuids } from "../columns/recent-uuids.js";
import { SHORT_TEXT_BYTES, ShortTexts } from "../columns/short-texts.js";
import { IndexedEvents } from "./event-index.js";
import { HIGH, NULL_LENGTH } from "./index-fields.js";
import {
  CAPTURES_BYTES,
  type CapturesIndex,
  DELTA_BYTES,
  DELTA_KINDS,
  INSTANCE_BIT,
  OPEN_BIT,
  ORIGIN_HEAD_BYTES,
  type Origin,
  QUALITY_CODES,
  type StoredSummary,
  SUMMARY_HEAD_BYTES,
  UUID_BYTES,
} from "./index-layout.js";
import { RecordDecodeError } from "./record-decode-error.js";

const FRAME_BEGUN = DELTA_KINDS.indexOf("frame_begun");
const NO_EVENTS = {};
/** A byte order mark is part of the text. Broken UTF-8 makes the record broken. */
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Records that follow each other mostly have the same producer and few runs, so their texts are kept. */
const names = new ShortTexts("values");
const runIds = new RecentUuids();
const instances = new RecentUuids();

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
    const sequence = this.#u53(at + 1);
    const nameAt = this.#take(nameBytes);
    const hasInstance = (first & INSTANCE_BIT) !== 0;
    const instanceAt = this.#take(hasInstance ? UUID_BYTES : 0);
    if (nameBytes === 0) return null;
    const producer = this.#name(nameAt, instanceAt);
    return hasInstance
      ? { producer, sequence, instance: instances.read(this.#bytes, instanceAt) }
      : { producer, sequence };
  }

  #name(start: number, end: number): string {
    const known = end - start <= SHORT_TEXT_BYTES ? names.read(this.#bytes, start, end) : undefined;
    return known ?? String.fromCharCode(...this.#bytes.subarray(start, end));
  }

  delta(): { runId: string; statusAfter: RunStatus; frameId: string | null } {
    const at = this.#take(DELTA_BYTES);
    const code = this.#bytes[at + 17] as number;
    if (DELTA_KINDS[code] === undefined) throw new RecordDecodeError(`unknown change code ${code}`);
    return {
      runId: runIds.read(this.#bytes, at),
      statusAfter: statusOf(this.#bytes[at + 16] as number),
      frameId: code === FRAME_BEGUN ? readUuid(this.#bytes, at + 18) : null,
    };
  }

  summary(withFrames = true): { summary: StoredSummary; frameIds: string[] } {
    const at = this.#take(SUMMARY_HEAD_BYTES);
    const createdAtUs = this.#u53(at + 37);
    const updatedAtUs = this.#u53(at + 45);
    const startedAtUs = this.#u53(at + 53);
    const completedAtUs = this.#u53(at + 61);
    const currentStep = this.#u32(at + 77);
    const programName = this.#text(this.#u32(at + 81));
    const serialNumber = this.#nullableText(this.#u32(at + 85));
    const errorMessage = this.#nullableText(this.#u32(at + 89));
    const metadata = this.#nullableText(this.#u32(at + 93));
    const frameIds: string[] = [];
    const frames = withFrames ? this.#u32(at + 97) : 0;
    for (let count = frames; count > 0; count--) frameIds.push(readUuid(this.#bytes, this.#take(16)));
    return {
      summary: {
        id: readUuid(this.#bytes, at),
        programId: readUuid(this.#bytes, at + 16),
        programName,
        status: statusOf((this.#bytes[at + 32] as number) & 15),
        qualityStatus: qualityStatusOf((this.#bytes[at + 32] as number) >>> 4),
        serialNumber,
        revision: this.#u32(at + 33),
        metadata: metadata === null ? null : parseMetadata(metadata),
        createdAtUs,
        updatedAtUs,
        startedAtUs: startedAtUs === 0 ? null : startedAtUs,
        completedAtUs: completedAtUs === 0 ? null : completedAtUs,
        errorMessage,
        progress: {
          totalSteps: this.#u32(at + 69),
          completedSteps: this.#u32(at + 73),
          currentStep: currentStep === 0 ? null : currentStep,
        },
      },
      frameIds,
    };
  }

  captures(): CapturesIndex {
    if (this.#at === this.#bytes.length) return { bytes: null, removedAtUs: null, isOpen: false };
    const at = this.#take(CAPTURES_BYTES);
    const high = this.#u32(at + 4);
    const isOpen = high >= OPEN_BIT;
    const removedAtUs = this.#u53(at + 8);
    return {
      bytes: this.#u32(at) + (isOpen ? high - OPEN_BIT : high) * HIGH,
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

  #u32(at: number): number {
    const bytes = this.#bytes as { [index: number]: number };
    return (
      ((bytes[at] as number) |
        ((bytes[at + 1] as number) << 8) |
        ((bytes[at + 2] as number) << 16) |
        ((bytes[at + 3] as number) << 24)) >>>
      0
    );
  }

  #u53(at: number): number {
    return this.#u32(at) + this.#u32(at + 4) * HIGH;
  }

  #text(length: number): string {
    const at = this.#take(length);
    try {
      return textDecoder.decode(this.#bytes.subarray(at, at + length));
    } catch {
      throw new RecordDecodeError(`the text before byte ${this.#at} is not UTF-8`);
    }
  }

  #nullableText(length: number): string | null {
    return length === NULL_LENGTH ? null : this.#text(length);
  }
}

function parseMetadata(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    throw new RecordDecodeError("the metadata is not JSON");
  }
}

function qualityStatusOf(code: number): StoredSummary["qualityStatus"] {
  if (code >= QUALITY_CODES.length) throw new RecordDecodeError(`unknown status code ${code} of a quality report`);
  return QUALITY_CODES[code];
}

function statusOf(code: number): RunStatus {
  const status = RUN_STATUSES[code];
  if (status === undefined) throw new RecordDecodeError(`unknown run status code ${code}`);
  return status;
}
