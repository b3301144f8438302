import { LIMITS } from "../../../core/limits.js";
import { CHECK_STATUSES } from "../../../core/run/quality.js";
import { RUN_STATUSES } from "../../../core/run/run-state.js";
import { RunningValues } from "../../../core/statistics/running-values.js";
import { SortedValues } from "../../../core/statistics/sorted-values.js";
import { TextTable } from "../../../storage/columns/text-table.js";
import { textAt } from "../../../storage/findings/finding-columns.js";
import { type FindingQuery, matchingRuns, wantedSettings } from "../../../storage/findings/finding-query.js";
import type { SegmentFindings } from "../../../storage/findings/segment-findings.js";
import { QUALITY_CODES } from "../../../storage/records/index-layout.js";

const COMPLETED = RUN_STATUSES.indexOf("completed");
const FAILED_CHECK = CHECK_STATUSES.indexOf("failed");
const PASSED = QUALITY_CODES.indexOf("passed");
const NO_REPORT = QUALITY_CODES.indexOf(null);

/** More different names than an answer may have. */
export class TooManyNamesError extends Error {
  override name = "TooManyNamesError";
}

/** What is known of a check. */
export interface CheckSummary {
  readonly name: string;
  /** By place in CHECK_STATUSES. */
  readonly counts: number[];
  /** Count of the checks that have a value. */
  values: number;
  /** Place in CANONICAL_UNITS, of the newest check. */
  units: number;
  /** Of the newest check with a value and a threshold; if none has one, `nominal` is of the newest that has it. NaN: none. */
  nominal: number;
  threshold: number;
  limitsChanged: boolean;
  /** The values in the order in which their runs ended. */
  readonly running: RunningValues;
  /** The same ones, as long as the summary holds them. */
  sorted: SortedValues;
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
 * Counts a program's runs, checks and defects, segment by segment. It can be kept, and go on when there are more runs: what it says
 * depends on the runs and their order only.
 */
export class ProgramSummary {
  /** By place in RUN_STATUSES. */
  readonly runs: number[] = RUN_STATUSES.map(() => 0);
  /** Completed runs by place in QUALITY_CODES. */
  readonly outcomes: number[] = QUALITY_CODES.map(() => 0);
  /** Of completed runs. */
  readonly durationsSeconds = new SortedValues();
  readonly firstPass = { passed: 0, known: 0 };
  readonly defects = new Map<string | null, DefectCount>();
  readonly #query: FindingQuery;
  readonly #checks: CountedCheck[] = [];
  readonly #placesOfChecks = new Map<string, number>();
  readonly #parts = new TextTable();
  readonly #newestRevisions: number[] = [];
  readonly #newestOutcomes: number[] = [];
  /** Parts whose newest revision passed, and those whose newest revision has an outcome. */
  readonly finalPass = { passed: 0, known: 0 };
  readonly #mostValues: number;
  #values = 0;
  #mostBuckets: number = LIMITS.trendBuckets;
  /** Different kinds of defects, and severities of them. */
  #defectNames = 0;
  #runCount = 0;
  /** The newest segment that it has seen, and the record of its last run there. */
  #base = 0;
  #lastSequence = 0;

  /** @param mostValues that it holds; if there are more, it holds none */
  constructor(query: FindingQuery, mostValues: number) {
    this.#query = query;
    this.#mostValues = mostValues;
  }

  /** The segment in which it goes on. */
  get base(): number {
    return this.#base;
  }

  /** Whether the checks have their sorted values. */
  get holdsValues(): boolean {
    return this.#values <= this.#mostValues;
  }

  /** About the memory that it takes. */
  get bytes(): number {
    const checks = this.#checks.reduce(
      (sum, { sorted, running }) => sum + sorted.bytes + 128 * running.buckets.length + 1_024,
      0,
    );
    return 1_024 + checks + this.durationsSeconds.bytes + 64 * this.#parts.size;
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

  /** Adds the segment's runs, without those that were added before. @throws TooManyNamesError; it cannot go on after that */
  add(segment: SegmentFindings): void {
    const { figures, counts } = segment;
    const { statuses, outcomes, startedAtUs, completedAtUs } = figures;
    const parts = new Int32Array(counts.texts).fill(-1);
    const settings = { wanted: wantedSettings(segment, this.#query), places: new Int32Array(counts.settings).fill(-1) };
    for (const check of this.#checks) check.noted = -1;
    const runs = matchingRuns(segment, this.#query, this.#lastSequence);
    this.#base = segment.base;
    this.#lastSequence = figures.sequences[counts.runs - 1] ?? this.#lastSequence;
    for (const run of runs) {
      const status = statuses[run] as number;
      const outcome = outcomes[run] as number;
      this.#runCount++;
      this.runs[status] = (this.runs[status] as number) + 1;
      this.#addPart(segment, run, outcome, parts);
      if (status !== COMPLETED) continue;
      this.outcomes[outcome] = (this.outcomes[outcome] as number) + 1;
      const startUs = startedAtUs[run] as number;
      if (startUs > 0) this.durationsSeconds.add(((completedAtUs[run] as number) - startUs) / 1e6);
      this.#addChecks(segment, run, settings);
      this.#addDefects(segment, run);
    }
  }

  #addPart({ figures }: SegmentFindings, run: number, outcome: number, parts: Int32Array): void {
    const revision = figures.revisions[run] as number;
    const serial = (figures.serials[run] as number) - 1;
    if (revision === 1) countOutcome(this.firstPass, outcome);
    if (serial < 0) {
      countOutcome(this.finalPass, outcome);
      return;
    }
    let part = parts[serial] as number;
    if (part < 0) {
      const { textEnds, texts } = figures;
      const start = serial === 0 ? 0 : (textEnds[serial - 1] as number);
      part = this.#parts.findOrAddBytes(texts, start, textEnds[serial] as number);
      parts[serial] = part;
    }
    if (part < this.#newestRevisions.length) {
      if ((this.#newestRevisions[part] as number) > revision) return;
      countOutcome(this.finalPass, this.#newestOutcomes[part] as number, -1);
    }
    countOutcome(this.finalPass, outcome);
    this.#newestRevisions[part] = revision;
    this.#newestOutcomes[part] = outcome;
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
        counted.values++;
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

  #hold({ sorted }: CountedCheck, value: number): void {
    if (!this.holdsValues) return;
    sorted.add(value);
    this.#values++;
    if (!this.holdsValues) for (const check of this.#checks) check.sorted = new SortedValues();
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

function countOutcome(counts: { passed: number; known: number }, outcome: number, more = 1): void {
  if (outcome !== NO_REPORT) counts.known += more;
  if (outcome === PASSED) counts.passed += more;
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
