import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { writeFully } from "../../../storage/disk/whole-files.js";
import { forEachRecord, type LogRecord, type RecordLocation } from "../../../storage/log/committed-batch.js";
import { isContentIntact, readRecordHeader, recordLength, writeHeaderCrc } from "../../../storage/log/record-format.js";
import { createSegment, encodeSegmentStart, type WritableSegment } from "../../../storage/log/segment.js";
import { randomSalt } from "../../../storage/recovery/recovery.js";
import { StorageError } from "../../../storage/storage-error.js";
import type { RecorderState } from "../../recorder/recorder-state.js";

/** As the log's own default. */
const SEGMENT_BYTES = 64 * 1024 * 1024;

/**
 * Writes a log anew from records of another place. Each header gets the CRC of its new place; everything else stays. The state is folded along, because
 * each segment begins with it.
 */
export class LogRebuilder {
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  readonly #state: RecorderState;
  readonly #segmentBytes: number;
  #segment: WritableSegment | null = null;
  /** The last sequence number that was written. */
  lastSequence = 0;
  records = 0;

  constructor(options: { fileSystem: FileSystem; directory: string; state: RecorderState; segmentBytes?: number }) {
    this.#fileSystem = options.fileSystem;
    this.#directory = options.directory;
    this.#state = options.state;
    this.#segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
  }

  /**
   * Writes these whole records behind what is there. They are changed in place.
   *
   * @throws StorageError `record_damaged` for records that are not intact, or not behind the last one
   */
  async write(bytes: Uint8Array, onRecord: (record: LogRecord, location: RecordLocation) => void): Promise<void> {
    const segment = await this.#openSegment();
    const { salt, base, endOffset } = segment;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < bytes.length; ) {
      const header = readRecordHeader(view, at);
      const length = recordLength(header.indexLength, header.bodyLength);
      if (at + length > bytes.length || header.sequence <= this.lastSequence || !isContentIntact(bytes, at, header)) {
        throw new StorageError(
          "record_damaged",
          `record ${header.sequence} is damaged, or not behind record ${this.lastSequence}`,
        );
      }
      writeHeaderCrc(bytes, view, at, salt, endOffset + at);
      this.lastSequence = header.sequence;
      this.records++;
      at += length;
    }
    await writeFully(segment.file, bytes, endOffset, segment.path);
    segment.endOffset += bytes.length;
    forEachRecord({ bytes, segmentBase: base, offset: endOffset }, (record, location) => {
      this.#state.replay(record, location);
      onRecord(record, location);
    });
  }

  async close(): Promise<void> {
    const segment = this.#segment;
    this.#segment = null;
    if (segment === null) return;
    await segment.file.datasync();
    await segment.file.close();
  }

  async #openSegment(): Promise<WritableSegment> {
    if (this.#segment !== null && this.#segment.endOffset < this.#segmentBytes) return this.#segment;
    await this.close();
    const plan = { base: this.lastSequence + 1, salt: randomSalt() };
    const { lastTimeUs: timeUs } = this.#state;
    const start = encodeSegmentStart({ ...plan, openingState: this.#state.openingState(), timeUs });
    this.#segment = await createSegment(this.#fileSystem, this.#directory, plan.base, plan.salt, start);
    return this.#segment;
  }
}
