/**
 * Reads ended runs from their consolidated records: a list entry from the index section, the whole state from the body. The caches are keyed by the
 * time of the run's last update, which no two records share. So nothing in them is ever stale.
 */
import { LRUCache } from "lru-cache";
import { ownUtf8 } from "../../core/json/utf8.js";
import { runSummaryResponse } from "../../core/run/run-response.js";
import type { RunState, RunSummary } from "../../core/run/run-state.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { ByteBudget } from "../byte-budget.js";
import type { LogRecord, RecordLocation } from "../log/committed-batch.js";
import { MisplacedRecordError } from "../log/misplaced-record.js";
import { isReadDamage } from "../log/read-damage.js";
import { decodeChanges, decodeEmitted } from "../records/change-record.js";
import { decodeEndedSummary, isRecordOf, RECORD_TYPE } from "../records/record-index.js";
import type { HubFields } from "./active-runs.js";

/** An ended run as the indexes know it. */
export interface StoredRun {
  readonly id: string;
  /** Its place among all runs. */
  readonly ordinal: number;
  readonly updatedAtUs: number;
  /** At a hub. There `updatedAtUs` is not that of the record, either. */
  readonly cell?: string | undefined;
  readonly location: RecordLocation;
}

/** Called between two parts of long work. Returns a promise to await before the next part, or undefined while the turn may go on. */
export type GiveWay = () => Promise<void> | undefined;

type ReadRecord = Pick<LogRecord, "type" | "index" | "body">;

/**
 * Reads records back from the log and verifies them. Rejects when a record is damaged or missing. `check` throws
 * MisplacedRecordError for another record than the wanted one.
 */
export interface RecordReader {
  read(location: RecordLocation, check: (record: ReadRecord) => void): Promise<ReadRecord>;
  /** In the order of the locations. */
  readMany(
    locations: readonly RecordLocation[],
    check: (record: ReadRecord, position: number) => void,
  ): Promise<ReadRecord[]>;
}

export interface RunRecordsOptions {
  reader: RecordReader;
  /** Largest size of the cache of list entries, which are JSON; default 64 MiB. */
  summaryCacheBytes?: number;
  /** Largest estimated size of the cache of decoded states; default 64 MiB. */
  runCacheBytes?: number;
  /** The most bytes of the log that all reads together hold; default 64 MiB. */
  readBytes?: number;
  /** Called for every failed read of an ended run. */
  onReadFailure?: (error: unknown) => void;
}

const MIB = 1024 * 1024;
/** Bytes of records that a page reads together: enough to join neighbours, few enough that others are not kept waiting. */
const READ_TOGETHER_BYTES = 4 * MIB;
/** Decoded objects take several times the memory of their MessagePack. */
const DECODED_BYTES_PER_ENCODED_BYTE = 8;
/** Base addresses of recent lists for which entries are made when a run ends: for example the service's name and its address. */
const MOST_BASES = 2;
/** Entries that are kept of one run, one for each base address. Clients name the address, and the search for it is linear. */
const KEPT_BASES = 8;
/** Memory of a cache entry beside its JSON, measured with 100,000 entries. */
const CACHE_ENTRY_BYTES = 800;

/** The list entry of one state of a run, for each of the last base addresses. */
interface KeptSummary {
  readonly updatedAtUs: number;
  /** The newest first. */
  readonly jsons: readonly { readonly baseUrl: string; readonly json: Uint8Array }[];
}

export class RunRecords {
  readonly #reader: RecordReader;
  readonly #readBudget: ByteBudget;
  /** By the run's ordinal: a page looks for fifty runs, and making the text of each id would take longer than everything else. */
  readonly #summaries: LRUCache<number, KeptSummary>;
  /** The last base addresses of lists, newest first. When a run ends, its entries for them are made at once. */
  #baseUrls: readonly string[] = [];
  /** Decoded states, by version of the run. */
  readonly #states: LRUCache<string, RunState>;
  /** Reads under way, by version. Requests for the same state share one read and one decoding. */
  readonly #reading = new Map<string, Promise<RunState>>();
  readonly #onReadFailure: (error: unknown) => void;

  constructor(options: RunRecordsOptions) {
    this.#reader = options.reader;
    this.#onReadFailure = options.onReadFailure ?? (() => {});
    this.#readBudget = new ByteBudget(options.readBytes ?? 64 * MIB);
    this.#summaries = new LRUCache({
      maxSize: options.summaryCacheBytes ?? 64 * MIB,
      sizeCalculation: ({ jsons }) => jsons.reduce((sum, { json }) => sum + json.length + CACHE_ENTRY_BYTES, 0),
    });
    this.#states = new LRUCache({ maxSize: options.runCacheBytes ?? 64 * MIB });
  }

  /** The run's whole state, at once if it is cached. It is shared and must not be changed. */
  state(run: StoredRun): Promise<RunState> | RunState {
    const version = versionOf(run);
    return this.#states.get(version) ?? this.#reading.get(version) ?? this.#readState(run, version);
  }

  /** The events that the run emitted. Nothing else of its document is decoded, because that may be large. */
  async emitted(run: StoredRun): Promise<readonly EmittedEvent[]> {
    const state = this.#states.get(versionOf(run));
    if (state !== undefined) return state.emitted ?? [];
    return this.#readBudget.run(run.location.length, async () => decodeEmitted((await this.#read(run)).body));
  }

  /** The summaries of these runs, in their order; undefined for a damaged or missing record. */
  async summaries(runs: readonly StoredRun[]): Promise<(RunSummary | undefined)[]> {
    const bytes = runs.reduce((sum, { location }) => sum + location.length, 0);
    const records = await this.#readBudget.run(bytes, () => this.#readRecords(runs));
    return records.map((record, at) => record && { ...decodeEndedSummary(record.index), ...hubFields(runs[at]!) });
  }

  /** The stored body of the run's record, in memory that the caller may transfer. */
  body(run: StoredRun): Promise<Uint8Array> {
    return this.#readBudget.run(run.location.length, async () => {
      try {
        return (await this.#read(run)).body;
      } catch (error) {
        this.#onReadFailure(error);
        throw error;
      }
    });
  }

  /**
   * Called when a run's consolidated record has just come. If clients ask for lists, the run's entry is made now.
   * Otherwise the next list would have to wait until the entries of all runs that ended since are made or read.
   */
  ended(ordinal: number, summary: RunSummary): void {
    for (const baseUrl of this.#baseUrls) {
      this.#keep(ordinal, summary.updatedAtUs, baseUrl, summaryJson(summary, baseUrl));
    }
  }

  /** The list entry of an ended run as JSON, if it is cached. */
  cachedSummaryJson(ordinal: number, updatedAtUs: number, baseUrl: string): Uint8Array | undefined {
    if (this.#baseUrls[0] !== baseUrl) {
      this.#baseUrls = [baseUrl, ...this.#baseUrls.filter((other) => other !== baseUrl)].slice(0, MOST_BASES);
    }
    const kept = this.#summaries.get(ordinal);
    if (kept?.updatedAtUs !== updatedAtUs) return undefined;
    return kept.jsons.find((one) => one.baseUrl === baseUrl)?.json;
  }

  /** Called when the runs' ordinals have changed. */
  ordinalsChanged(): void {
    this.#summaries.clear();
  }

  #keep(ordinal: number, updatedAtUs: number, baseUrl: string, json: Uint8Array): void {
    const kept = this.#summaries.peek(ordinal);
    // This read is outdated: the run has got a newer record meanwhile.
    if (kept !== undefined && kept.updatedAtUs > updatedAtUs) return;
    const others = kept?.updatedAtUs === updatedAtUs ? kept.jsons.filter((one) => one.baseUrl !== baseUrl) : [];
    this.#summaries.set(ordinal, { updatedAtUs, jsons: [{ baseUrl, json }, ...others].slice(0, KEPT_BASES) });
  }

  /**
   * Reads the list entries from the log, as JSON, in the order of the runs; undefined for a damaged or missing record.
   *
   * @param giveWay needed for many or large entries
   */
  async readSummariesJson(
    runs: readonly StoredRun[],
    baseUrl: string,
    giveWay?: GiveWay,
  ): Promise<(Uint8Array | undefined)[]> {
    const parts: Promise<(Uint8Array | undefined)[]>[] = [];
    for (let start = 0; start < runs.length; ) {
      let end = start;
      let bytes = 0;
      do bytes += runs[end++]!.location.length;
      while (end < runs.length && bytes + runs[end]!.location.length <= READ_TOGETHER_BYTES);
      const part = runs.slice(start, end);
      parts.push(this.#readBudget.run(bytes, () => this.#readPart(part, baseUrl, giveWay)));
      // With `giveWay` the parts go one after the other, so that read bytes do not pile up in memory before they are decoded.
      if (giveWay !== undefined) await parts.at(-1);
      start = end;
    }
    return (await Promise.all(parts)).flat();
  }

  async #readPart(
    runs: readonly StoredRun[],
    baseUrl: string,
    giveWay: GiveWay | undefined,
  ): Promise<(Uint8Array | undefined)[]> {
    const records = await this.#readRecords(runs);
    const jsons: (Uint8Array | undefined)[] = [];
    for (const [at, record] of records.entries()) {
      jsons.push(record && this.#entryJson(runs[at]!, record, baseUrl));
      const pause = giveWay?.();
      if (pause !== undefined) await pause;
    }
    return jsons;
  }

  /** Undefined for a damaged or missing record. */
  async #readRecords(runs: readonly StoredRun[]): Promise<(ReadRecord | undefined)[]> {
    try {
      return await this.#reader.readMany(
        runs.map(({ location }) => location),
        (record, at) => checkIsOf(runs[at]!, record),
      );
    } catch (error) {
      if (!isReadDamage(error)) throw error;
      // Read one by one, so that a damaged record does not hide its neighbours.
      return Promise.all(runs.map((run) => this.#readUnlessDamaged(run)));
    }
  }

  #entryJson(run: StoredRun, record: ReadRecord, baseUrl: string): Uint8Array {
    const { ordinal } = run;
    const summary = { ...decodeEndedSummary(record.index), ...hubFields(run) };
    const json = summaryJson(summary, baseUrl);
    this.#keep(ordinal, summary.updatedAtUs, baseUrl, json);
    return json;
  }

  async #readUnlessDamaged(run: StoredRun): Promise<ReadRecord | undefined> {
    try {
      return await this.#read(run);
    } catch (error) {
      if (!isReadDamage(error)) throw error;
      this.#onReadFailure(error);
      return undefined;
    }
  }

  #read(run: StoredRun): Promise<ReadRecord> {
    return this.#reader.read(run.location, (record) => checkIsOf(run, record));
  }

  #readState(stored: StoredRun, version: string): Promise<RunState> {
    const { length } = stored.location;
    const reading = this.#readBudget.run(length, async () => {
      const { type, body } = await this.#read(stored);
      const [change] = decodeChanges(type, body);
      if (change?.kind !== "run_ended" || change.runId !== stored.id) throw misplaced(stored);
      Object.assign(change.run, hubFields(stored));
      this.#states.set(versionOf(change.run), change.run, { size: length * DECODED_BYTES_PER_ENCODED_BYTE });
      return change.run;
    });
    const shared = reading
      .catch((error: unknown) => {
        this.#onReadFailure(error);
        throw error;
      })
      .finally(() => this.#reading.delete(version));
    this.#reading.set(version, shared);
    return shared;
  }
}

function versionOf({ id, updatedAtUs }: Pick<RunState, "id" | "updatedAtUs">): string {
  return `${id} ${updatedAtUs}`;
}

/** What a hub shows of a run instead of what its record says; undefined in the store of a cell. */
function hubFields({ cell, updatedAtUs }: StoredRun): HubFields | undefined {
  return cell === undefined ? undefined : { cell, updatedAtUs };
}

function checkIsOf(run: StoredRun, record: ReadRecord): void {
  if (!isRecordOf(record, RECORD_TYPE.runEnded, run.id)) throw misplaced(run);
}

function misplaced({ id, location }: StoredRun): MisplacedRecordError {
  return new MisplacedRecordError(
    `there is no consolidated record of run ${id} in segment ${location.segmentBase} at offset ${location.offset}`,
  );
}

/** A list entry as UTF-8 JSON, in memory of its own so that it can be cached. */
export function summaryJson(summary: RunSummary, baseUrl: string): Uint8Array {
  return ownUtf8(JSON.stringify(runSummaryResponse(summary, baseUrl)));
}
