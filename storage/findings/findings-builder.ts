import { readUuid, uuidToBytes } from "../../core/identifiers.js";
import { CANONICAL_UNITS, CHECK_STATUSES, type Defect, type QualityCheck } from "../../core/run/quality.js";
import { TypedColumn } from "../columns/typed-column.js";
import { UUID_BYTES } from "../records/index-layout.js";
import type { IndexedRun } from "../records/indexed-run.js";
import {
  type ColumnCounts,
  columnsBytes,
  DETAIL_COLUMNS,
  FIGURE_COLUMNS,
  type FindingColumns,
  type SegmentFindings,
  type TimeSpan,
  textAt,
  viewColumns,
} from "./finding-columns.js";

/** Texts by their place, each once. */
class Texts {
  readonly #places = new Map<string, number>();

  get size(): number {
    return this.#places.size;
  }

  placeOf(text: string): number {
    const known = this.#places.get(text);
    if (known !== undefined) return known;
    const place = this.#places.size;
    this.#places.set(text, place);
    return place;
  }

  /** 0 for none, else the place plus 1. */
  optional(text: string | null | undefined): number {
    return text === null || text === undefined ? 0 : this.placeOf(text) + 1;
  }

  columns(): { ends: number[]; bytes: Uint8Array } {
    const encoded = [...this.#places.keys()].map((text) => Buffer.from(text));
    let end = 0;
    const ends = encoded.map(({ length }) => {
      end += length;
      return end;
    });
    return { ends, bytes: Buffer.concat(encoded) };
  }
}

/** The columns of a segment: each part is what a findings file has of it. */
export interface BuiltColumns extends TimeSpan {
  counts: ColumnCounts;
  figures: Uint8Array<ArrayBuffer>;
  details: Uint8Array<ArrayBuffer>;
}

type ColumnName = keyof FindingColumns;
type Numbers = Float64Array | Uint32Array | Uint8Array;

const ARRAYS = { f64: Float64Array, u32: Uint32Array, u8: Uint8Array } as const;
/** Small: at a hub, runs of many short times are put together, each time in columns of their own. */
const CHUNK_ENTRIES = 256;

/** Columns whose entries are the same in any segment. */
const PLAIN_COLUMNS = [
  ...["completedAtUs", "startedAtUs", "createdAtUs", "sequences", "revisions", "statuses", "outcomes"],
] as const;
const NO_ID = new Uint8Array(UUID_BYTES);

/** Makes the columns of a segment, from its runs in their order. */
export class FindingsBuilder {
  readonly #rows = Object.fromEntries(
    [...FIGURE_COLUMNS, ...DETAIL_COLUMNS].map(([name, kind]) => [
      name,
      new TypedColumn<Numbers>(ARRAYS[kind], CHUNK_ENTRIES),
    ]),
  ) as Record<ColumnName, TypedColumn<Numbers>>;
  readonly #settings = new Map<string, number>();
  readonly #programs = new Texts();
  readonly #texts = new Texts();
  readonly #messages = new Texts();

  /** How many runs it has. */
  get runs(): number {
    return this.#rows.sequences.length;
  }

  /** @param sequence of the record */
  add(run: IndexedRun, sequence: number, checks: readonly QualityCheck[], defects: readonly Defect[]): void {
    const rows = this.#rows;
    const { id, programId, serialNumber, createdAtUs, startedAtUs, completedAtUs } = run.summary();
    for (const check of checks) this.#addCheck(check);
    for (const { type, severity } of defects) {
      rows.defectTypes.push(this.#texts.optional(type));
      rows.severities.push(this.#texts.optional(severity));
    }
    this.#addProgram(programId);
    rows.completedAtUs.push(completedAtUs ?? 0);
    rows.startedAtUs.push(startedAtUs ?? 0);
    rows.createdAtUs.push(createdAtUs);
    rows.sequences.push(sequence);
    rows.serials.push(this.#texts.optional(serialNumber));
    rows.revisions.push(run.revision);
    rows.checkEnds.push(rows.values.length);
    rows.defectEnds.push(rows.defectTypes.length);
    rows.statuses.push(run.statusCode);
    rows.outcomes.push(run.qualityCode);
    for (const byte of uuidToBytes(id)) rows.runIds.push(byte);
  }

  /** Copies runs of other columns, one after the other. Details that are not there are left out. */
  copy({ counts, figures, details }: SegmentFindings, runs: Uint32Array): void {
    const rows = this.#rows;
    const text = (place: number): string => textAt(figures.textEnds, figures.texts, place);
    const optional = (place: number): number => (place === 0 ? 0 : this.#texts.optional(text(place - 1)));
    const settings = new Int32Array(counts.settings).fill(-1);
    for (const run of runs) {
      const checkEnd = figures.checkEnds[run] as number;
      for (let check = run === 0 ? 0 : (figures.checkEnds[run - 1] as number); check < checkEnd; check++) {
        const setting = figures.settings[check] as number;
        if (settings[setting] === -1) settings[setting] = this.#copySetting(figures, setting, text);
        rows.settings.push(settings[setting] as number);
        rows.values.push(figures.values[check] as number);
        rows.checkStatuses.push(figures.checkStatuses[check] as number);
        rows.deltas.push(details?.deltas[check] ?? Number.NaN);
        const message = details?.messages[check] ?? 0;
        const known =
          details === null || message === 0 ? null : textAt(details.messageEnds, details.messageTexts, message - 1);
        rows.messages.push(this.#messages.optional(known));
      }
      const defectEnd = figures.defectEnds[run] as number;
      for (let at = run === 0 ? 0 : (figures.defectEnds[run - 1] as number); at < defectEnd; at++) {
        rows.defectTypes.push(optional(figures.defectTypes[at] as number));
        rows.severities.push(optional(figures.severities[at] as number));
      }
      for (const name of PLAIN_COLUMNS) rows[name].push(figures[name][run] as number);
      this.#addProgram(readUuid(figures.programIds, UUID_BYTES * (figures.programs[run] as number)));
      rows.serials.push(optional(figures.serials[run] as number));
      rows.checkEnds.push(rows.values.length);
      rows.defectEnds.push(rows.defectTypes.length);
      const id = details?.runIds.subarray(UUID_BYTES * run, UUID_BYTES * (run + 1)) ?? NO_ID;
      for (const byte of id) rows.runIds.push(byte);
    }
  }

  #copySetting(figures: SegmentFindings["figures"], setting: number, text: (place: number) => string): number {
    const { names, units, nominals, thresholds } = figures;
    return this.#settingOf(
      text(names[setting] as number),
      units[setting] as number,
      nominals[setting] as number,
      thresholds[setting] as number,
    );
  }

  #addProgram(id: string): void {
    const known = this.#programs.size;
    this.#rows.programs.push(this.#programs.placeOf(id));
    if (this.#programs.size > known) for (const byte of uuidToBytes(id)) this.#rows.programIds.push(byte);
  }

  #addCheck({ name, status, message, value, nominal, delta, threshold, canonical_units: units }: QualityCheck): void {
    const rows = this.#rows;
    const unit = CANONICAL_UNITS.indexOf(units ?? "mm");
    rows.values.push(value ?? Number.NaN);
    rows.deltas.push(delta ?? Number.NaN);
    rows.settings.push(this.#settingOf(name, unit, nominal ?? Number.NaN, threshold ?? Number.NaN));
    rows.checkStatuses.push(CHECK_STATUSES.indexOf(status));
    rows.messages.push(this.#messages.optional(message));
  }

  #settingOf(name: string, unit: number, nominal: number, threshold: number): number {
    // A number has no space, so the name can be any text.
    const key = `${unit} ${nominal} ${threshold} ${name}`;
    const known = this.#settings.get(key);
    if (known !== undefined) return known;
    const place = this.#settings.size;
    this.#settings.set(key, place);
    const rows = this.#rows;
    rows.names.push(this.#texts.placeOf(name));
    rows.nominals.push(nominal);
    rows.thresholds.push(threshold);
    rows.units.push(unit);
    return place;
  }

  finish(): BuiltColumns {
    const [texts, messages] = [this.#texts.columns(), this.#messages.columns()];
    const rows = this.#rows;
    const counts: ColumnCounts = {
      runs: rows.sequences.length,
      checks: rows.values.length,
      defects: rows.defectTypes.length,
      settings: rows.names.length,
      programs: this.#programs.size,
      texts: texts.ends.length,
      textBytes: texts.bytes.length,
      messages: messages.ends.length,
      messageBytes: messages.bytes.length,
    };
    const figures = new Uint8Array(columnsBytes(FIGURE_COLUMNS, counts));
    const details = new Uint8Array(columnsBytes(DETAIL_COLUMNS, counts));
    const views = {
      ...viewColumns(FIGURE_COLUMNS, counts, figures.buffer, 0),
      ...viewColumns(DETAIL_COLUMNS, counts, details.buffer, 0),
    };
    for (const [name, column] of Object.entries(rows)) column.copyTo(views[name as ColumnName]);
    views.textEnds.set(texts.ends);
    views.texts.set(texts.bytes);
    views.messageEnds.set(messages.ends);
    views.messageTexts.set(messages.bytes);
    let [lowUs, highUs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const timeUs of views.completedAtUs) {
      lowUs = Math.min(lowUs, timeUs);
      highUs = Math.max(highUs, timeUs);
    }
    return { counts, figures, details, lowUs, highUs };
  }
}
