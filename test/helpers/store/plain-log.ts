import { forEachRecord, type LogRecord, type RecordLocation } from "../../../storage/log/committed-batch.js";
import { RECORD_HEADER_BYTES, recordLength, writeRecordHeader } from "../../../storage/log/record-format.js";
import type { RecordReader, RunRecordsOptions } from "../../../storage/view/run-records.js";
import { View } from "../../../storage/view/view.js";
import type { CellHistory, HistoryRecord } from "../link/cell-history.js";

type Batch = Parameters<View["applyBatch"]>[0];

/** A batch of one record, as the log encodes it. */
function batchOf({ type, timeUs, index, body }: HistoryRecord, sequence: number, segmentBase: number, offset: number) {
  const bytes = new Uint8Array(recordLength(index.length, body.length));
  bytes.set(index, RECORD_HEADER_BYTES);
  bytes.set(body, RECORD_HEADER_BYTES + index.length);
  const header = {
    type,
    flags: 1,
    sequence,
    durableUpTo: 0,
    timeUs,
    indexLength: index.length,
    bodyLength: body.length,
  };
  writeRecordHeader(bytes, new DataView(bytes.buffer), 0, header, 0, offset);
  return { bytes, segmentBase, offset, lastSequence: sequence };
}

/** A log as the view sees one: records with their places, 500 to a segment. */
export class PlainLog {
  readonly batches: Batch[] = [];
  readonly #places = new Map<string, Batch>();
  reads = 0;
  #segmentBase = 1;
  #offset = 64;

  append(record: HistoryRecord): Batch {
    const sequence = this.batches.length + 1;
    if (sequence % 500 === 0) {
      this.#segmentBase = sequence;
      this.#offset = 64;
    }
    const batch = batchOf(record, sequence, this.#segmentBase, this.#offset);
    this.#offset += batch.bytes.length;
    this.batches.push(batch);
    this.#places.set(`${batch.segmentBase} ${batch.offset} ${batch.bytes.length}`, batch);
    return batch;
  }

  async read({ segmentBase, offset, length }: RecordLocation): Promise<LogRecord> {
    this.reads++;
    const batch = this.#places.get(`${segmentBase} ${offset} ${length}`);
    if (batch === undefined) throw new Error("a location that was never given out");
    return recordOf(batch);
  }

  async readMany(locations: readonly RecordLocation[]): Promise<LogRecord[]> {
    return Promise.all(locations.map((location) => this.read(location)));
  }

  /** A reader whose every record goes through `change`. */
  readerThat(change: (record: LogRecord) => LogRecord): RecordReader {
    const read = async (location: RecordLocation) => change(await this.read(location));
    return { read, readMany: (locations) => Promise.all(locations.map(read)) };
  }

  /** A view opened on the records for which `keep` holds, their bodies as `bodyOf` says. */
  open(
    options: Partial<RunRecordsOptions> = {},
    keep: (record: LogRecord) => boolean = () => true,
    bodyOf: (record: LogRecord) => Uint8Array = ({ body }) => body,
  ): View {
    const view = new View({ reader: this, ...options });
    for (const batch of this.batches) {
      const record = recordOf(batch);
      if (!keep(record)) continue;
      const body = bodyOf(record);
      view.applyBatch(
        body === record.body
          ? batch
          : batchOf(
              { ...record, type: record.type as HistoryRecord["type"], body },
              record.sequence,
              batch.segmentBase,
              batch.offset,
            ),
      );
    }
    view.finishOpening();
    return view;
  }
}

export function recordOf(batch: Batch): LogRecord {
  const records: LogRecord[] = [];
  forEachRecord(batch, (record) => records.push(record));
  return records[0]!;
}

export function logOf(history: CellHistory, records: number): PlainLog {
  const log = new PlainLog();
  while (log.batches.length < records) log.append(history.next());
  return log;
}

/** All batches as one. */
export function wholeOf({ batches }: PlainLog) {
  const [first, last] = [batches[0]!, batches.at(-1)!];
  const bytes = Buffer.concat(batches.map((batch) => batch.bytes));
  return { bytes, segmentBase: first.segmentBase, offset: first.offset, lastSequence: last.lastSequence };
}
