/**
 * Ended runs as their consolidated records tell them: a list entry from the index section, the whole state from the body. What was
 * read is cached with the time of the run's last update, which no two records share, so that nothing in the caches ever goes
 * stale, wherever compaction moves a record.
 */
import { LRUCache } from "lru-cache";
import { ownUtf8 } from "../../core/json/utf8.js";
import { runSummaryResponse } from "../../core/run/run-response.js";
import type { RunState, RunSummary } from "../../core/run/run-state.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { ByteBudget } from "../byte-budget.js";
import type { LogRecord, RecordLocation } from "../log/log-batch.js";
import { MisplacedRecordError, mayHaveMoved } from "../log/misplaced-record.js";
import { isReadDamage } from "../log/read-damage.js";
import { decodeChanges, decodeEmitted, endedSummary } from "../records/change-record.js";
import { decodeEndedSummary, isRecordOf, RECORD_TYPE } from "../records/record-index.js";

/** An ended run as the indexes know it. */
export interface StoredRun {
  readonly id: string;
  /** Its place among all runs. */
  readonly ordinal: number;
  readonly updatedAtUs: number;
  readonly location: RecordLocation;
}

/** Called between two pieces of long work: what to wait for before the next one, undefined while the turn is not over. */
export type GiveWay = () => Promise<void> | undefined;

type ReadRecord = Pick<LogRecord, "type" | "index" | "body">;

/**
 * Reads records back from the log, checked; rejects when one is damaged or missing, or has been moved by compaction. `check` throws
 * MisplacedRecordError for another record than the one wanted: one that compaction has put in its place.
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
/** Base addresses that lists were asked for under: the service's own name and its address, say. */
const MOST_BASES = 2;
/** Of one run, entries under as many addresses are kept: whoever asks names the address, and the search for it is one by one. */
const KEPT_BASES = 8;
/** What an entry of the cache weighs beside its JSON: by what the process has more of with 100,000 of them. */
const CACHE_ENTRY_BYTES = 800;

/** The list entry of a run in one state of it, under each of the last base addresses. */
interface KeptSummary {
  readonly updatedAtUs: number;
  /** The one made last stands first. */
  readonly jsons: readonly { readonly baseUrl: string; readonly json: Uint8Array }[];
}

export class RunRecords {
  readonly #reader: RecordReader;
  readonly #readBudget: ByteBudget;
  readonly #locate: (id: string) => RecordLocation | undefined;
  /** By the run's ordinal: a page looks for fifty, and a text of each one's id would take longer than all else of it. */
  readonly #summaries: LRUCache<number, KeptSummary>;
  /** Base addresses that list entries were last asked for under, the last one first: those of a run are made as it ends. */
  #baseUrls: readonly string[] = [];
  /** By version of the run. */
  readonly #states: LRUCache<string, RunState>;
  /** Reads under way, by version: who asks for the same state meanwhile shares its read and its decoding. */
  readonly #reading = new Map<string, Promise<RunState>>();
  readonly #onReadFailure: (error: unknown) => void;

  /** `locate`: where the run's consolidated record lies by now. */
  constructor(options: RunRecordsOptions, locate: (id: string) => RecordLocation | undefined) {
    this.#reader = options.reader;
    this.#locate = locate;
    this.#onReadFailure = options.onReadFailure ?? (() => {});
    this.#readBudget = new ByteBudget(options.readBytes ?? 64 * MIB);
    this.#summaries = new LRUCache({
      maxSize: options.summaryCacheBytes ?? 64 * MIB,
      sizeCalculation: ({ jsons }) => jsons.reduce((sum, { json }) => sum + json.length + CACHE_ENTRY_BYTES, 0),
    });
    this.#states = new LRUCache({ maxSize: options.runCacheBytes ?? 64 * MIB });
  }

  /** The run's whole state, shared: not to be changed. At once if it is cached. */
  state(run: StoredRun): Promise<RunState> | RunState {
    const version = versionOf(run);
    return this.#states.get(version) ?? this.#reading.get(version) ?? this.#readState(run, version);
  }

  /** The events that it emitted: little of a document that may be large, so that no more of it is decoded. */
  async emitted(run: StoredRun): Promise<readonly EmittedEvent[]> {
    const state = this.#states.get(versionOf(run));
    if (state !== undefined) return state.emitted ?? [];
    return this.#readBudget.run(run.location.length, async () => decodeEmitted((await this.#read(run)).body));
  }

  /** The body of its record as it is stored, in memory that the caller may give away. */
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
   * A run's consolidated record has just come. Where lists are asked for, its entry is made now, one among other work: whoever asks for a page next
   * would wait until those of all runs are made that ended since, or were read.
   */
  ended(ordinal: number, summary: RunSummary): void {
    for (const baseUrl of this.#baseUrls) {
      this.#keep(ordinal, summary.updatedAtUs, baseUrl, summaryJson(summary, baseUrl));
    }
  }

  /** The list entry of an ended run as JSON, where nothing needs to be read for it. */
  cachedSummaryJson(ordinal: number, updatedAtUs: number, baseUrl: string): Uint8Array | undefined {
    if (this.#baseUrls[0] !== baseUrl) {
      this.#baseUrls = [baseUrl, ...this.#baseUrls.filter((other) => other !== baseUrl)].slice(0, MOST_BASES);
    }
    const kept = this.#summaries.get(ordinal);
    if (kept?.updatedAtUs !== updatedAtUs) return undefined;
    return kept.jsons.find((one) => one.baseUrl === baseUrl)?.json;
  }

  /** Runs have other ordinals from now on. */
  ordinalsChanged(): void {
    this.#summaries.clear();
  }

  #keep(ordinal: number, updatedAtUs: number, baseUrl: string, json: Uint8Array): void {
    const kept = this.#summaries.peek(ordinal);
    // A read that has been overtaken: the run has ended again meanwhile.
    if (kept !== undefined && kept.updatedAtUs > updatedAtUs) return;
    const others = kept?.updatedAtUs === updatedAtUs ? kept.jsons.filter((one) => one.baseUrl !== baseUrl) : [];
    this.#summaries.set(ordinal, { updatedAtUs, jsons: [{ baseUrl, json }, ...others].slice(0, KEPT_BASES) });
  }

  /**
   * The list entries as JSON, in the order of the runs, read from the log; undefined where a record is damaged or missing.
   * @param giveWay for many, or large ones
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
      // One after the other where others are to have their turn: what is read waits in memory until it is decoded.
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
    let records: (ReadRecord | undefined)[];
    try {
      records = await this.#reader.readMany(
        runs.map(({ location }) => location),
        (record, at) => checkIsOf(runs[at]!, record),
      );
    } catch (error) {
      if (!mayHaveMoved(error)) throw error;
      // One by one: a damaged record must not hide its neighbours, and one that was moved is looked up.
      records = await Promise.all(runs.map((run) => this.#readUnlessDamaged(run)));
    }
    const jsons: (Uint8Array | undefined)[] = [];
    for (const [at, record] of records.entries()) {
      jsons.push(record && this.#entryJson(runs[at]!, record, baseUrl));
      const turn = giveWay?.();
      if (turn !== undefined) await turn;
    }
    return jsons;
  }

  #entryJson({ ordinal }: StoredRun, record: ReadRecord, baseUrl: string): Uint8Array {
    const summary = endedSummary(decodeEndedSummary(record.index), record.body);
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

  /** The run's record, wherever it is moved meanwhile. */
  async #read({ id, location }: StoredRun): Promise<ReadRecord> {
    for (let from = location; ; ) {
      try {
        const sought = { id, location: from };
        return await this.#reader.read(from, (record) => checkIsOf(sought, record));
      } catch (error) {
        const now = this.#locate(id);
        const isMoved = now !== undefined && (now.offset !== from.offset || now.segmentBase !== from.segmentBase);
        if (!isMoved || !mayHaveMoved(error)) throw error;
        from = now;
      }
    }
  }

  #readState(stored: StoredRun, version: string): Promise<RunState> {
    const { length } = stored.location;
    const reading = this.#readBudget.run(length, async () => {
      const { type, body } = await this.#read(stored);
      const [change] = decodeChanges(type, body);
      if (change?.kind !== "run_ended" || change.runId !== stored.id) throw misplaced(stored);
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

type SoughtRun = Pick<StoredRun, "id" | "location">;

function checkIsOf(run: SoughtRun, record: ReadRecord): void {
  if (!isRecordOf(record, RECORD_TYPE.runEnded, run.id)) throw misplaced(run);
}

function misplaced({ id, location }: SoughtRun): MisplacedRecordError {
  return new MisplacedRecordError(`no consolidated record of run ${id} at ${location.segmentBase}:${location.offset}`);
}

/** A list entry as UTF-8 JSON, in memory of its own: it may be cached. */
export function summaryJson(summary: RunSummary, baseUrl: string): Uint8Array {
  return ownUtf8(JSON.stringify(runSummaryResponse(summary, baseUrl)));
}
