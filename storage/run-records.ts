/**
 * Ended runs as their consolidated records tell them: a list entry from the index section, the whole state from the body. What was
 * read is cached by the record's place, whose content never changes, so that nothing in the caches ever goes stale.
 */
import { LRUCache } from "lru-cache";
import { runSummaryResponse } from "../core/run-response.js";
import type { RunState, RunSummary } from "../core/run-state.js";
import { ByteBudget } from "./byte-budget.js";
import { decodeChanges } from "./change-record.js";
import type { LogRecord, RecordLocation } from "./log-batch.js";
import { isReadDamage } from "./read-damage.js";
import { decodeIndex, RECORD_TYPE } from "./record-index.js";

type ReadRecord = Pick<LogRecord, "type" | "index" | "body">;

/** Reads records back from the log, checked; rejects when one is damaged or missing. */
export interface RecordReader {
  read(location: RecordLocation): Promise<ReadRecord>;
  /** In the order of the locations. */
  readMany(locations: readonly RecordLocation[]): Promise<ReadRecord[]>;
}

export interface RunRecordsOptions {
  reader: RecordReader;
  /** Bound of the cache of list entries, as JSON; default 64 MiB. */
  summaryCacheBytes?: number;
  /** Bound of the cache of decoded states, by estimate; default 64 MiB. */
  runCacheBytes?: number;
  /** Bound of what all reads together hold of the log; default 64 MiB. */
  readBytes?: number;
  /** Told of every failed read of an ended run. */
  onReadFailure?: (error: unknown) => void;
}

const MIB = 1024 * 1024;
/** Records of one page that are read together: enough to join neighbours, little enough to leave others their turn. */
const READ_TOGETHER_BYTES = 4 * MIB;
/** Decoded objects weigh several times their MessagePack. */
const DECODED_BYTES_PER_ENCODED_BYTE = 8;
/** What an entry of the cache weighs beside key and value; an estimate. */
const CACHE_ENTRY_BYTES = 200;

export class RunRecords {
  readonly #reader: RecordReader;
  readonly #readBudget: ByteBudget;
  /** By place and base address. */
  readonly #summaries: LRUCache<string, Uint8Array>;
  /** By place. */
  readonly #states: LRUCache<string, RunState>;
  /** Reads under way, by place: who asks for the same state meanwhile shares its read and its decoding. */
  readonly #reading = new Map<string, Promise<RunState>>();
  readonly #onReadFailure: (error: unknown) => void;

  constructor(options: RunRecordsOptions) {
    this.#reader = options.reader;
    this.#onReadFailure = options.onReadFailure ?? (() => {});
    this.#readBudget = new ByteBudget(options.readBytes ?? 64 * MIB);
    this.#summaries = new LRUCache({
      maxSize: options.summaryCacheBytes ?? 64 * MIB,
      sizeCalculation: (json, key) => json.length + key.length + CACHE_ENTRY_BYTES,
    });
    this.#states = new LRUCache({ maxSize: options.runCacheBytes ?? 64 * MIB });
  }

  /** The run's whole state, shared: not to be changed. At once if it is cached. */
  state(location: RecordLocation): Promise<RunState> | RunState {
    const place = placeOf(location);
    return this.#states.get(place) ?? this.#reading.get(place) ?? this.#readState(location, place);
  }

  /** The list entry as JSON, if it is cached. */
  cachedSummaryJson(location: RecordLocation, baseUrl: string): Uint8Array | undefined {
    return this.#summaries.get(`${placeOf(location)} ${baseUrl}`);
  }

  /** The list entries as JSON, in the order of the locations, read from the log; undefined where a record is damaged or missing. */
  async readSummariesJson(locations: readonly RecordLocation[], baseUrl: string): Promise<(Uint8Array | undefined)[]> {
    const parts: Promise<(Uint8Array | undefined)[]>[] = [];
    for (let start = 0; start < locations.length; ) {
      let end = start;
      let bytes = 0;
      do bytes += locations[end++]!.length;
      while (end < locations.length && bytes + locations[end]!.length <= READ_TOGETHER_BYTES);
      const part = locations.slice(start, end);
      parts.push(this.#readBudget.run(bytes, () => this.#readPart(part, baseUrl)));
      start = end;
    }
    return (await Promise.all(parts)).flat();
  }

  async #readPart(locations: readonly RecordLocation[], baseUrl: string): Promise<(Uint8Array | undefined)[]> {
    let records: (ReadRecord | undefined)[];
    try {
      records = await this.#reader.readMany(locations);
    } catch (error) {
      if (!isReadDamage(error)) throw error;
      // One by one: a damaged record must not hide its neighbours.
      records = await Promise.all(locations.map((location) => this.#readUnlessDamaged(location)));
    }
    return records.map((record, at) => {
      if (record === undefined) return undefined;
      const { type, index } = record;
      const place = placeOf(locations[at]!);
      const decoded = type === RECORD_TYPE.runEnded ? decodeIndex(type, index) : undefined;
      if (decoded?.type !== RECORD_TYPE.runEnded) throw new Error(`no consolidated record at ${place}`);
      const json = summaryJson(decoded.summary, baseUrl);
      this.#summaries.set(`${place} ${baseUrl}`, json);
      return json;
    });
  }

  async #readUnlessDamaged(location: RecordLocation): Promise<ReadRecord | undefined> {
    try {
      return await this.#reader.read(location);
    } catch (error) {
      if (!isReadDamage(error)) throw error;
      this.#onReadFailure(error);
      return undefined;
    }
  }

  #readState(location: RecordLocation, place: string): Promise<RunState> {
    const reading = this.#readBudget.run(location.length, async () => {
      const { type, body } = await this.#reader.read(location);
      const [change] = decodeChanges(type, body);
      if (change?.kind !== "run_ended") throw new Error(`no consolidated record at ${place}`);
      this.#states.set(place, change.run, { size: location.length * DECODED_BYTES_PER_ENCODED_BYTE });
      return change.run;
    });
    const shared = reading
      .catch((error: unknown) => {
        this.#onReadFailure(error);
        throw error;
      })
      .finally(() => this.#reading.delete(place));
    this.#reading.set(place, shared);
    return shared;
  }
}

function placeOf({ segmentBase, offset }: RecordLocation): string {
  return `${segmentBase}:${offset}`;
}

/** A list entry as UTF-8 JSON. */
export function summaryJson(summary: RunSummary, baseUrl: string): Uint8Array {
  return Buffer.from(JSON.stringify(runSummaryResponse(summary, baseUrl)));
}
