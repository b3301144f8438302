/**
 * The table of all runs, by ordinal: ids, what lists filter by, where consolidated records are, and which frames belong to which run. It is folded
 * only from the index sections of records.
 *
 * An ordinal is a run's place in creation order, which is the order of ids. If the run_created record of a run is damaged, its consolidated record
 * can come after later runs. Such a run waits until `admitLateRuns` builds the table once more with all in order.
 */
import { NO_REPORT, REPORT_STATUSES, type ReportStatus } from "../../core/run/quality.js";
import { RUN_STATUSES, type RunStatus } from "../../core/run/run-state.js";
import { RecordLocations } from "../columns/record-locations.js";
import { UuidColumn } from "../columns/uuid-column.js";
import { UuidTable } from "../columns/uuid-table.js";
import type { RecordLocation } from "../log/committed-batch.js";
import { QUALITY_CODES, UUID_BYTES } from "../records/index-layout.js";
import type { IndexedRun } from "../records/indexed-run.js";
import { mayHaveBeen, StatusTimes } from "./changes/status-times.js";
import type { KindFilter } from "./plant/kind-counts.js";
import { RunIndex, type RunPage } from "./run-index.js";

/** Filters of runs; one left out holds for every run. */
export interface RunFilter {
  readonly programId?: string | undefined;
  readonly serialNumber?: string | undefined;
  /** Any text. A status that no run can have matches no run. */
  readonly status?: string | undefined;
  /** Names of cells, at a hub. A store of one cell knows no name, and no run of it matches. */
  readonly cells?: readonly string[] | undefined;
}

/** Filters and page of a list of runs. */
export interface RunListQuery extends RunFilter {
  /** A report's status, or NO_REPORT. Any other text matches no run. */
  readonly qualityStatus?: string | undefined;
  /** Only runs updated strictly after this time, in microseconds since the Unix epoch. */
  readonly updatedSinceUs?: number | undefined;
  readonly offset: number;
  readonly limit: number;
}

/** The outcomes as filters name them, by their codes: NO_REPORT finds runs without a report. */
const OUTCOME_NAMES: readonly string[] = [NO_REPORT, ...REPORT_STATUSES];

/** How many changed runs are looked at in one go. They take some microseconds. */
export const CHANGED_RUNS = 128;

export interface ChangedRuns {
  readonly ordinals: readonly number[];
  /** No other run was updated after that time. */
  readonly isLast: boolean;
}

interface LateRun {
  readonly run: IndexedRun;
  readonly timeUs: number;
  readonly location: RecordLocation;
}

/** What the view needs of a table of runs: that of one store, or the joined one of all cells (plant/plant-runs.ts). */
export type RunTable = Pick<ViewRuns, keyof ViewRuns>;

export class ViewRuns {
  #ids = new UuidColumn();
  #index = new RunIndex();
  #locations = new RecordLocations();
  /** Program ids, numbered in order of first run. */
  readonly #programs: UuidTable;
  readonly #onChanged: (ordinal: number, kindBefore: number) => void;
  /** Frame id → run ordinal. */
  readonly #runsOfFrames = new UuidTable();
  #lateRuns = new Map<string, LateRun>();
  readonly #statusTimes = new StatusTimes();
  /** The last answer of `changedAfter`. */
  #lastChanged: (ChangedRuns & { readonly version: number; readonly afterUs: number }) | undefined;

  /**
   * @param programs shared by tables that number programs alike
   * @param onChanged called when a run was updated that was there before
   */
  constructor(programs = new UuidTable(), onChanged: (ordinal: number, kindBefore: number) => void = () => {}) {
    this.#programs = programs;
    this.#onChanged = onChanged;
  }

  get size(): number {
    return this.#ids.length;
  }

  /** Adds a new run. False if its id is not above the last one, which happens only after damage to the log. */
  create(run: IndexedRun, timeUs: number): boolean {
    return this.#add(run, timeUs) >= 0;
  }

  /** The ordinal of the next new run. */
  get nextOrdinal(): number {
    return this.size;
  }

  /** The name of the run's cell; undefined in the store of a cell. */
  cell(_ordinal: number): string | undefined {
    return undefined;
  }

  /** The id of the store that the run came from; undefined in the store of a cell. */
  storeId(_ordinal: number): string | undefined {
    return undefined;
  }

  update(ordinal: number, status: RunStatus, qualityStatus: ReportStatus | null, timeUs: number): void {
    this.#update(ordinal, RUN_STATUSES.indexOf(status), QUALITY_CODES.indexOf(qualityStatus), timeUs);
  }

  #update(ordinal: number, status: number, outcome: number, timeUs: number): void {
    const before = this.kind(ordinal);
    if (this.#index.status(ordinal) !== status) this.#statusTimes.changed(ordinal, timeUs);
    this.#index.update(ordinal, { status, outcome, timeUs });
    this.#onChanged(ordinal, before);
  }

  /** Sets the quality status of a run that has not ended. */
  setQualityStatus(ordinal: number, qualityStatus: ReportStatus | null): void {
    const before = this.kind(ordinal);
    this.#index.changeState(ordinal, { outcome: QUALITY_CODES.indexOf(qualityStatus) });
    this.#onChanged(ordinal, before);
  }

  addFrame(ordinal: number, frameId: string): void {
    this.#runsOfFrames.set(frameId, ordinal);
  }

  /**
   * Takes a consolidated record: of an active run, of a run that only this record knows, or in place of an earlier one.
   *
   * @returns the run's ordinal; -1 if it has none yet (`admitLateRuns`)
   */
  end(run: IndexedRun, timeUs: number, location: RecordLocation): number {
    let ordinal = this.#add(run, timeUs);
    if (ordinal < 0) {
      ordinal = this.#ids.indexOfBytes(run.bytes, run.idAt);
      if (ordinal < 0) {
        this.#lateRuns.set(run.id, { run: run.copy(), timeUs, location });
        return -1;
      }
      this.#update(ordinal, run.statusCode, run.qualityCode, timeUs);
    }
    this.#ended(ordinal, run, location);
    return ordinal;
  }

  #ended(ordinal: number, { bytes, framesAt, end }: IndexedRun, location: RecordLocation): void {
    this.#locations.set(ordinal, location);
    const frames = this.#runsOfFrames;
    for (let at = framesAt; at < end; at += UUID_BYTES) frames.setValueAt(frames.enterBytes(bytes, at), ordinal);
  }

  /**
   * Gives late runs their place; ordinals change if there are any. O(runs), once after a store was read.
   *
   * @returns the ordinals of the late runs, ascending
   */
  admitLateRuns(): number[] {
    if (this.#lateRuns.size === 0) return [];
    const late = [...this.#lateRuns.values()].sort((a, b) => (a.run.id < b.run.id ? 1 : -1));
    this.#lateRuns = new Map();
    const [ids, index, locations] = [this.#ids, this.#index, this.#locations];
    this.#ids = new UuidColumn();
    this.#index = new RunIndex();
    this.#locations = new RecordLocations();
    const moved = new Uint32Array(ids.length);
    // Each late run is below the run that was the last one when it came, so none is left over.
    const admitted: [ordinal: number, run: LateRun][] = [];
    const admitBelow = (id: string): void => {
      for (let next = late.at(-1); next !== undefined && next.run.id < id; next = late.at(-1)) {
        late.pop();
        admitted.push([this.#add(next.run, next.timeUs), next]);
      }
    };
    for (let old = 0; old < moved.length; old++) {
      const id = ids.at(old);
      admitBelow(id);
      this.#ids.push(id);
      moved[old] = this.#index.addRun(index.entry(old));
      this.#locations.push();
      const location = locations.get(old);
      if (location !== undefined) this.#locations.set(moved[old]!, location);
    }
    this.#runsOfFrames.mapValues((ordinal) => moved[ordinal]!);
    for (const [ordinal, { run, location }] of admitted) this.#ended(ordinal, run, location);
    return admitted.map(([ordinal]) => ordinal);
  }

  id(ordinal: number): string {
    return this.#ids.at(ordinal);
  }

  /** One of the four words of the run's id, the most significant first: ids compare like their words, and no text is made. */
  idWord(ordinal: number, word: number): number {
    return this.#ids.wordAt(ordinal, word);
  }

  /** -1 for an unknown run. */
  ordinal(id: string): number {
    return this.#ids.indexOf(id);
  }

  /** Whether the run is known, perhaps without a place yet (`admitLateRuns`). */
  has(id: string): boolean {
    return this.#lateRuns.has(id) || this.ordinal(id) >= 0;
  }

  /** The run's program and state in one number (plant/kind-counts.ts). */
  kind(ordinal: number): number {
    return this.#index.kind(ordinal);
  }

  status(ordinal: number): RunStatus {
    return RUN_STATUSES[this.#index.status(ordinal)]!;
  }

  qualityStatus(ordinal: number): ReportStatus | null {
    return QUALITY_CODES[this.#index.outcome(ordinal)]!;
  }

  /** What the index knows of a run, without status and outcome. */
  entry(ordinal: number): { programId: string; serialNumber: string | null; timeUs: number } {
    const { programOrdinal, serialNumber, timeUs } = this.#index.entry(ordinal);
    return { programId: this.#programs.idAt(programOrdinal), serialNumber, timeUs };
  }

  updatedAtUs(ordinal: number): number {
    return this.#index.timeUs(ordinal);
  }

  /** Where the consolidated record lies; undefined while the run has not ended. */
  location(ordinal: number): RecordLocation | undefined {
    return this.#locations.get(ordinal);
  }

  /** When any run was last updated, in microseconds since the Unix epoch; 0 without runs. Every later update has a later time. */
  get latestUs(): number {
    return this.#index.latestUs;
  }

  /** The store has been read. From now on the table knows when the status of a run has changed. */
  beginStatusTimes(): void {
    this.#statusTimes.begin(this.latestUs);
  }

  /**
   * The runs updated after a time, the earliest update first: as many as are looked at in one go.
   *
   * @param version differs after each change of a run: most followers of the runs are at one mark, and share an answer
   */
  changedAfter(afterUs: number, version: number): ChangedRuns {
    if (this.#lastChanged?.version === version && this.#lastChanged.afterUs === afterUs) return this.#lastChanged;
    const ordinals = this.#index.earliestAfter(afterUs, CHANGED_RUNS);
    this.#lastChanged = { version, afterUs, ordinals, isLast: ordinals.length < CHANGED_RUNS };
    return this.#lastChanged;
  }

  /** Whether a follower of a filter's runs is told of this one. At `currentUs` it had been told of every run (changes/status-times.ts). */
  concerns(ordinal: number, { programId, serialNumber, status, cells }: RunFilter, currentUs: number): boolean {
    if (cells !== undefined) return false;
    if (programId !== undefined || serialNumber !== undefined) {
      const entry = this.entry(ordinal);
      if (programId !== undefined && entry.programId !== programId) return false;
      if (serialNumber !== undefined && entry.serialNumber !== serialNumber) return false;
    }
    if (status === undefined) return true;
    const now = this.status(ordinal);
    return status === now || (mayHaveBeen(status, now) && this.#statusTimes.sinceUs(ordinal) > currentUs);
  }

  /** Undefined for an unknown frame. */
  runOfFrame(frameId: string): number | undefined {
    return this.#runsOfFrames.get(frameId);
  }

  /** Count of the program's runs of any status. */
  programRunCount(programId: string): number {
    const programOrdinal = this.#programs.entryOf(programId);
    return programOrdinal < 0 ? 0 : this.#index.programRunCount(programOrdinal);
  }

  /** The newest run that is running or finalizing. */
  newestActive(): number | undefined {
    const running = this.#index.newestOfStatus(RUN_STATUSES.indexOf("running"));
    const finalizing = this.#index.newestOfStatus(RUN_STATUSES.indexOf("finalizing"));
    if (running === undefined || finalizing === undefined) return running ?? finalizing;
    return Math.max(running, finalizing);
  }

  /** Newest first. */
  query(query: RunListQuery): RunPage {
    const { serialNumber, updatedSinceUs, cells, offset, limit } = query;
    const kinds = kindFilter(query, this.#programs);
    if (cells !== undefined || kinds === null) return { total: 0, ordinals: [] };
    return this.#index.query({
      ...kinds,
      ...(serialNumber !== undefined && { serialNumber }),
      ...(updatedSinceUs !== undefined && { updatedSinceUs }),
      offset,
      limit,
    });
  }

  /** @returns its ordinal; -1, and nothing is added, if its id is not above the last one */
  #add(run: IndexedRun, timeUs: number): number {
    if (!this.#ids.pushBytes(run.bytes, run.idAt)) return -1;
    this.#locations.push();
    return this.#index.addIndexedRun(run, this.#programs.enterBytes(run.bytes, run.programIdAt), timeUs);
  }
}

/** Program, status and outcome of the filters as codes; null if no run can match them. */
export function kindFilter(
  { programId, status, qualityStatus }: Omit<RunListQuery, "offset" | "limit">,
  programs: UuidTable,
): KindFilter | null {
  const programOrdinal = programId === undefined ? undefined : programs.entryOf(programId);
  const statusCode = status === undefined ? undefined : (RUN_STATUSES as readonly string[]).indexOf(status);
  const outcome = qualityStatus === undefined ? undefined : OUTCOME_NAMES.indexOf(qualityStatus);
  if (statusCode === -1 || outcome === -1 || programOrdinal === -1) return null;
  return { programOrdinal, status: statusCode, outcome };
}
