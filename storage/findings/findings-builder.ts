import { uuidToBytes } from "../../core/identifiers.js";
import { CANONICAL_UNITS, CHECK_STATUSES, type Defect, type QualityCheck } from "../../core/run/quality.js";
import type { IndexedRun } from "../records/indexed-run.js";
import {
  type ColumnCounts,
  columnsBytes,
  DETAIL_COLUMNS,
  FIGURE_COLUMNS,
  type FindingColumns,
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
export interface BuiltColumns {
  counts: ColumnCounts;
  figures: Uint8Array<ArrayBuffer>;
  details: Uint8Array<ArrayBuffer>;
}

type ColumnName = keyof FindingColumns;

/** Makes the columns of a segment, from its runs in their order. */
export class FindingsBuilder {
  readonly #rows = Object.fromEntries(
    [...FIGURE_COLUMNS, ...DETAIL_COLUMNS].map(([name]) => [name, [] as number[]]),
  ) as Record<ColumnName, number[]>;
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
    const { id, programId, serialNumber, startedAtUs, completedAtUs } = run.summary();
    for (const check of checks) this.#addCheck(check);
    for (const { type, severity } of defects) {
      rows.defectTypes.push(this.#texts.optional(type));
      rows.severities.push(this.#texts.optional(severity));
    }
    const known = this.#programs.size;
    rows.programs.push(this.#programs.placeOf(programId));
    if (this.#programs.size > known) rows.programIds.push(...uuidToBytes(programId));
    rows.completedAtUs.push(completedAtUs ?? 0);
    rows.startedAtUs.push(startedAtUs ?? 0);
    rows.sequences.push(sequence);
    rows.serials.push(this.#texts.optional(serialNumber));
    rows.revisions.push(run.revision);
    rows.checkEnds.push(rows.values.length);
    rows.defectEnds.push(rows.defectTypes.length);
    rows.statuses.push(run.statusCode);
    rows.outcomes.push(run.qualityCode);
    rows.runIds.push(...uuidToBytes(id));
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
    const columns: Record<ColumnName, ArrayLike<number>> = {
      ...this.#rows,
      ...{ textEnds: texts.ends, texts: texts.bytes, messageEnds: messages.ends, messageTexts: messages.bytes },
    };
    const counts: ColumnCounts = {
      runs: columns.sequences.length,
      checks: columns.values.length,
      defects: columns.defectTypes.length,
      settings: columns.names.length,
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
    for (const [name, column] of Object.entries(columns)) views[name as ColumnName].set(column);
    return { counts, figures, details };
  }
}
