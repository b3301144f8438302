import { LIMITS } from "../../../core/limits.js";
import { CHECK_STATUSES } from "../../../core/run/quality.js";
import { RUN_STATUSES } from "../../../core/run/run-state.js";
import { RunningValues } from "../../../core/statistics/running-values.js";
import { SortedValues } from "../../../core/statistics/sorted-values.js";
import { type SegmentFindings, textAt } from "../../../storage/findings/finding-columns.js";
import { type FindingQuery, wantedSettings } from "../../../storage/findings/finding-query.js";
import { runsInOrder } from "../../../storage/findings/runs-in-order.js";
import type { ColumnsReader } from "../../../storage/findings/segment-findings.js";
import { QUALITY_CODES } from "../../../storage/records/index-layout.js";
import { PartYields } from "./part-yields.js";

const COMPLETED = RUN_STATUSES.indexOf("completed");
const FAILED_CHECK = CHECK_STATUSES.indexOf("failed");

/** More different names than an answer may have. */
export class TooManyNamesError extends Error {
  override name = "TooManyNamesError";
}

/** What a summary may hold at a time. */
export interface HeldBounds {
  /** Values of checks, and durations; with more, it holds none. */
  mostValues: number;
  /** Memory for serial numbers; with more, it holds none. */
  mostPartBytes: number;
}

/** Numbers whose quantiles are asked for. */
export interface Series {
  /** Their count. */
  values: number;
  /** The numbers, as long as the summary holds them. */
  sorted: SortedValues;
}

/** What is known of a check. Its values are those of the checks that have one. */
export interface CheckSummary extends Series {
  readonly name: string;
  /** By place in CHECK_STATUSES. */
  readonly counts: number[];
  /** Place in CANONICAL_UNITS, of the newest check. */
  units: number;
  /** Of the newest check with a value and a threshold; if none has one, `nominal` is of the newest that has it. NaN: none. */
  nominal: number;
  threshold: number;
  limitsChanged: boolean;
  /** The values in the order in which their runs ended. */
  readonly running: RunningValues;
}

/** How a check is told from others while it is counted. */
interface CountedCheck extends CheckSummary {
  /** The setting of the last check that was noted, and whether that had a value; it belongs to one segment. */
  noted: number;
  firstNominal: number;
  firstThreshold: number;
}

export interface DefectCount {
  readonly type: string | null;
  defects: number;
  runs: number;
  readonly severities: Map<string, number>;
  /** The last run that had one. */
  lastRun: number;
}

/**
 * Counts a program's runs, checks and defects, in the order in which they ended. It can be kept, and go on when there are more runs: what
 * it says depends on the runs and their order only.
 */
export class ProgramSummary {
  /** By place in RUN_STATUSES. */
  readonly runs: number[] = RUN_STATUSES.map(() => 0);
  /** Completed runs by place in QUALITY_CODES. */
  readonly outcomes: number[] = QUALITY_CODES.map(() => 0);
  /** Of completed runs, in seconds. */
  readonly durations: Series = { values: 0, sorted: new SortedValues() };
  readonly defects = new Map<string | null, DefectCount>();
  readonly #query: FindingQuery;
  readonly #checks: CountedCheck[] = [];
  readonly #placesOfChecks = new Map<string, number>();
  /** Of first inspections, and of the newest ones. */
  readonly yields: PartYields;
  readonly #mostValues: number;
  #values = 0;
  #mostBuckets: number = LIMITS.trendBuckets;
  /** Different kinds of defects, and severities of them. */
  #defectNames = 0;
  #runCount = 0;
  #untilSequence = 0;
  /** When the last run ended that it has counted. */
  #lastUs = 0;

  constructor(query: FindingQuery, { mostValues, mostPartBytes }: HeldBounds) {
    this.#query = query;
    this.#mostValues = mostValues;
    this.yields = new PartYields(mostPartBytes);
  }

  /** The last record up to which it has counted. */
  get untilSequence(): number {
    return this.#untilSequence;
  }

  /** Whether checks and durations have their sorted values. */
  get holdsValues(): boolean {
    return this.#values <= this.#mostValues;
  }

  /** Whether it can go on when there are more runs. */
  get holdsAll(): boolean {
    return this.holdsValues && this.yields.isHeld;
  }

  /** About the memory that it takes. */
  get bytes(): number {
    const checks = this.#checks.reduce(
      (sum, { sorted, running }) => sum + sorted.bytes + 200 * running.buckets.length + 1_024,
      0,
    );
    return 1_024 + checks + this.durations.sorted.bytes + this.yields.bytes;
  }

  /** In the order in which they were first seen. */
  get checks(): readonly CheckSummary[] {
    return this.#checks;
  }

  /** The check of each setting of the segment; -1: it is not asked for, or none of the program's runs has it. */
  checksOfSettings(segment: SegmentFindings): Int32Array {
    const { figures, counts } = segment;
    const wanted = wantedSettings(segment, this.#query);
    const places = new Map<number, number>();
    return Int32Array.from({ length: counts.settings }, (_, setting) => {
      if (wanted[setting] === 0) return -1;
      const text = figures.names[setting] as number;
      let place = places.get(text);
      if (place === undefined) {
        place = this.#placesOfChecks.get(textAt(figures.textEnds, figures.texts, text)) ?? -1;
        places.set(text, place);
      }
      return place;
    });
  }

  /**
   * Counts the runs whose end has been recorded since the last time, up to this record.
   *
   * @returns false if one of them ended before one that is counted already: then all have to be counted anew
   * @throws TooManyNamesError; it cannot go on after that
   */
  async count(reader: ColumnsReader, untilSequence: number): Promise<boolean> {
    const query = { ...this.#query, untilSequence };
    for await (const { segment, runs } of runsInOrder(reader, query, { afterSequence: this.#untilSequence })) {
      const [first, last] = [runs[0], runs.at(-1)];
      if (first === undefined || last === undefined) continue;
      const { completedAtUs } = segment.figures;
      if ((completedAtUs[first] as number) < this.#lastUs) return false;
      this.#add(segment, runs);
      this.#lastUs = completedAtUs[last] as number;
    }
    this.#untilSequence = untilSequence;
    return true;
  }

  #add(segment: SegmentFindings, runs: Uint32Array): void {
    const { figures, counts } = segment;
    const { statuses, outcomes } = figures;
    const settings = { wanted: wantedSettings(segment, this.#query), places: new Int32Array(counts.settings).fill(-1) };
    for (const check of this.#checks) check.noted = -1;
    this.yields.add(segment, runs);
    for (const run of runs) {
      const status = statuses[run] as number;
      const outcome = outcomes[run] as number;
      this.#runCount++;
      this.runs[status] = (this.runs[status] as number) + 1;
      if (status !== COMPLETED) continue;
      this.outcomes[outcome] = (this.outcomes[outcome] as number) + 1;
      const seconds = durationOf(segment, run);
      if (seconds !== null) this.#hold(this.durations, seconds);
      this.#addChecks(segment, run, settings);
      this.#addDefects(segment, run);
    }
  }

  #addChecks(segment: SegmentFindings, run: number, settings: { wanted: Uint8Array; places: Int32Array }): void {
    const { figures } = segment;
    const timeUs = figures.completedAtUs[run] as number;
    const end = figures.checkEnds[run] as number;
    for (let check = run === 0 ? 0 : (figures.checkEnds[run - 1] as number); check < end; check++) {
      const setting = figures.settings[check] as number;
      if (settings.wanted[setting] === 0) continue;
      let place = settings.places[setting] as number;
      if (place < 0) {
        place = this.#placeOf(textAt(figures.textEnds, figures.texts, figures.names[setting] as number));
        settings.places[setting] = place;
      }
      const counted = this.#checks[place] as CountedCheck;
      const status = figures.checkStatuses[check] as number;
      counted.counts[status] = (counted.counts[status] as number) + 1;
      const value = figures.values[check] as number;
      const hasValue = !Number.isNaN(value);
      if (hasValue) {
        counted.running.add(value, timeUs, status === FAILED_CHECK, this.#mostBuckets);
        this.#hold(counted, value);
      }
      const noted = 2 * setting + (hasValue ? 1 : 0);
      if (counted.noted === noted) continue;
      counted.noted = noted;
      counted.units = figures.units[setting] as number;
      if (hasValue) noteLimits(counted, figures.nominals[setting] as number, figures.thresholds[setting] as number);
    }
  }

  #placeOf(name: string): number {
    const known = this.#placesOfChecks.get(name);
    if (known !== undefined) return known;
    const place = this.#checks.length;
    if (place === LIMITS.statisticsNames) throw new TooManyNamesError();
    this.#placesOfChecks.set(name, place);
    const counts = CHECK_STATUSES.map(() => 0);
    const series = { running: new RunningValues(), sorted: new SortedValues() };
    const none = { nominal: Number.NaN, threshold: Number.NaN, firstNominal: Number.NaN, firstThreshold: Number.NaN };
    this.#checks.push({ name, counts, values: 0, units: 0, limitsChanged: false, noted: -1, ...none, ...series });
    this.#limitBuckets();
    return place;
  }

  #hold(series: Series, value: number): void {
    series.values++;
    if (!this.holdsValues) return;
    series.sorted.add(value);
    this.#values++;
    if (!this.holdsValues) for (const one of [this.durations, ...this.#checks]) one.sorted = new SortedValues();
  }

  /** The more checks there are, the fewer buckets has each. */
  #limitBuckets(): void {
    const most = Math.min(LIMITS.trendBuckets, Math.floor(LIMITS.allTrendBuckets / this.#checks.length));
    if (most === this.#mostBuckets) return;
    this.#mostBuckets = most;
    for (const { running } of this.#checks) running.limit(most);
  }

  #addDefects({ figures }: SegmentFindings, run: number): void {
    const end = figures.defectEnds[run] as number;
    const text = (place: number) => (place === 0 ? null : textAt(figures.textEnds, figures.texts, place - 1));
    for (let at = run === 0 ? 0 : (figures.defectEnds[run - 1] as number); at < end; at++) {
      const type = text(figures.defectTypes[at] as number);
      const severity = text(figures.severities[at] as number);
      let counted = this.defects.get(type);
      if (counted === undefined) {
        this.#countDefectName();
        counted = { type, defects: 0, runs: 0, severities: new Map(), lastRun: 0 };
        this.defects.set(type, counted);
      }
      counted.defects++;
      if (counted.lastRun !== this.#runCount) counted.runs++;
      counted.lastRun = this.#runCount;
      if (severity === null) continue;
      const known = counted.severities.get(severity);
      if (known === undefined) this.#countDefectName();
      counted.severities.set(severity, (known ?? 0) + 1);
    }
  }

  #countDefectName(): void {
    this.#defectNames++;
    if (this.#defectNames > LIMITS.statisticsNames) throw new TooManyNamesError();
  }
}

/** How long a run took, in seconds. Null for one that has not started, or was not completed. */
export function durationOf({ figures }: SegmentFindings, run: number): number | null {
  const startUs = figures.startedAtUs[run] as number;
  if (figures.statuses[run] !== COMPLETED || startUs === 0) return null;
  return ((figures.completedAtUs[run] as number) - startUs) / 1e6;
}

/** Notes the nominal value and the threshold of a check with a value, if they are not those of the check before it. */
function noteLimits(check: CountedCheck, nominal: number, threshold: number): void {
  if (check.values === 1) {
    check.firstNominal = nominal;
    check.firstThreshold = threshold;
  } else if (!isSame(nominal, check.firstNominal) || !isSame(threshold, check.firstThreshold)) {
    check.limitsChanged = true;
  }
  if (!Number.isNaN(threshold)) {
    check.nominal = nominal;
    check.threshold = threshold;
  } else if (Number.isNaN(check.threshold) && !Number.isNaN(nominal)) {
    check.nominal = nominal;
  }
}

function isSame(a: number, b: number): boolean {
  return a === b || (Number.isNaN(a) && Number.isNaN(b));
}
