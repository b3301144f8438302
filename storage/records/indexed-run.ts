import { readUuid } from "../../core/identifiers.js";
import type { JsonObject } from "../../core/json/json.js";
import { RUN_STATUSES, type RunSummary } from "../../core/run/run-state.js";
import { NULL_LENGTH, named, u32At, u53At } from "./index-fields.js";
import { QUALITY_CODES, SUMMARY_HEAD_BYTES, UUID_BYTES } from "./index-layout.js";
import { RecordDecodeError } from "./record-decode-error.js";

/** A byte order mark is part of the text. Broken UTF-8 makes the record broken. */
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * A run's summary and frame ids in the bytes of an index section (index-layout.ts). They are decoded only as far as a
 * reader needs: a start reads a million of them, and makes no text of any.
 */
export class IndexedRun {
  readonly bytes: Uint8Array;
  /** Where the summary begins: with the 16 bytes of the run's id. */
  readonly idAt: number;
  /** Where the ids of the run's frames begin, 16 bytes each. */
  readonly framesAt: number;
  readonly frameCount: number;
  /** Where the last frame id ends. */
  readonly end: number;

  /** @param bytes not copied @throws RecordDecodeError when they end too early, or have an unknown code */
  constructor(bytes: Uint8Array, at: number) {
    this.bytes = bytes;
    this.idAt = at;
    this.#assertWithin(at + SUMMARY_HEAD_BYTES);
    named(RUN_STATUSES, this.statusCode, "run status");
    if (this.qualityCode >= QUALITY_CODES.length)
      throw new RecordDecodeError(`unknown status code ${this.qualityCode} of a quality report`);
    this.framesAt = this.serialNumberEnd + this.#lengthAt(89) + this.#lengthAt(93);
    this.frameCount = u32At(bytes, at + 97);
    this.end = this.framesAt + UUID_BYTES * this.frameCount;
    this.#assertWithin(this.end);
  }

  get id(): string {
    return readUuid(this.bytes, this.idAt);
  }

  get programIdAt(): number {
    return this.idAt + 16;
  }

  /** Its place in RUN_STATUSES. */
  get statusCode(): number {
    return (this.bytes[this.idAt + 32] as number) & 15;
  }

  /** The place of the quality report's status in QUALITY_CODES. */
  get qualityCode(): number {
    return (this.bytes[this.idAt + 32] as number) >>> 4;
  }

  get revision(): number {
    return u32At(this.bytes, this.idAt + 33);
  }

  get createdAtUs(): number {
    return u53At(this.bytes, this.idAt + 37);
  }

  get updatedAtUs(): number {
    return u53At(this.bytes, this.idAt + 45);
  }

  get completedAtUs(): number | null {
    return u53At(this.bytes, this.idAt + 61) || null;
  }

  /** Where the UTF-8 of the serial number begins. A program's name before it is never null: that length is too long. */
  get serialNumberAt(): number {
    return this.idAt + SUMMARY_HEAD_BYTES + u32At(this.bytes, this.idAt + 81);
  }

  get hasSerialNumber(): boolean {
    return u32At(this.bytes, this.idAt + 85) !== NULL_LENGTH;
  }

  /** Where the UTF-8 of the serial number ends. */
  get serialNumberEnd(): number {
    return this.serialNumberAt + this.#lengthAt(85);
  }

  frameIds(): string[] {
    return Array.from({ length: this.frameCount }, (_, nth) => readUuid(this.bytes, this.framesAt + UUID_BYTES * nth));
  }

  /** @throws RecordDecodeError when a text is broken */
  summary(): RunSummary {
    const { bytes, idAt: at } = this;
    let textAt = at + SUMMARY_HEAD_BYTES;
    const text = (lengthAt: number): string | null => {
      const length = u32At(bytes, at + lengthAt);
      if (length === NULL_LENGTH) return null;
      textAt += length;
      return decodeText(bytes, textAt - length, textAt);
    };
    const [programName, serialNumber, errorMessage, metadata] = [text(81), text(85), text(89), text(93)];
    return {
      id: this.id,
      programId: readUuid(bytes, this.programIdAt),
      programName: programName as string,
      status: RUN_STATUSES[this.statusCode]!,
      qualityStatus: QUALITY_CODES[this.qualityCode]!,
      serialNumber,
      revision: this.revision,
      metadata: metadata === null ? null : parseMetadata(metadata),
      createdAtUs: this.createdAtUs,
      updatedAtUs: this.updatedAtUs,
      startedAtUs: u53At(bytes, at + 53) || null,
      completedAtUs: this.completedAtUs,
      errorMessage,
      progress: {
        totalSteps: u32At(bytes, at + 69),
        completedSteps: u32At(bytes, at + 73),
        currentStep: u32At(bytes, at + 77) || null,
      },
    };
  }

  /** The same run over a copy of the bytes. */
  copy(): IndexedRun {
    return new IndexedRun(this.bytes.slice(this.idAt, this.end), 0);
  }

  #lengthAt(offset: number): number {
    const length = u32At(this.bytes, this.idAt + offset);
    return length === NULL_LENGTH ? 0 : length;
  }

  #assertWithin(end: number): void {
    if (end > this.bytes.length)
      throw new RecordDecodeError(`the index section ends too early, at byte ${this.bytes.length}`);
  }
}

function decodeText(bytes: Uint8Array, start: number, end: number): string {
  try {
    return textDecoder.decode(bytes.subarray(start, end));
  } catch {
    throw new RecordDecodeError(`the text before byte ${end} is not UTF-8`);
  }
}

function parseMetadata(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    throw new RecordDecodeError("the metadata is not JSON");
  }
}
