/**
 * The columns of a segment's ended runs, with their checks and defects. A run stands there once, at the record of its end;
 * later records of it, such as retention's, change neither its checks nor its defects. So the order is that of the log
 * (runs-in-order.ts has that of the times).
 *
 * The columns of `FIGURE_COLUMNS` are enough for statistics. Those of `DETAIL_COLUMNS` are for exports.
 */

/** How many entries a column has: one for each run, check, defect and so on. */
export const COUNTS = [
  "runs",
  "checks",
  "defects",
  "settings",
  "programs",
  "texts",
  "textBytes",
  "messages",
  "messageBytes",
] as const;
export type ColumnCounts = Record<(typeof COUNTS)[number], number>;

type ColumnKind = "f64" | "u32" | "u8";
type Column = readonly [name: string, kind: ColumnKind, count: (typeof COUNTS)[number], perEntry?: number];

/** In order of their sizes, so that each begins at a multiple of its own. */
export const FIGURE_COLUMNS = [
  /** Microseconds since the Unix epoch. */
  ["completedAtUs", "f64", "runs"],
  /** 0: it never started. */
  ["startedAtUs", "f64", "runs"],
  ["createdAtUs", "f64", "runs"],
  /** Of the record: a question counts up to one (`runsUpTo`). */
  ["sequences", "f64", "runs"],
  /** NaN: the check has none. */
  ["values", "f64", "checks"],
  /** What checks have in common; NaN: none. */
  ["nominals", "f64", "settings"],
  ["thresholds", "f64", "settings"],
  /** Place among the programs. */
  ["programs", "u32", "runs"],
  /** Place among the texts, plus 1; 0: none. */
  ["serials", "u32", "runs"],
  ["revisions", "u32", "runs"],
  /** Where the run's checks and defects end; they begin where those of the run before end. */
  ["checkEnds", "u32", "runs"],
  ["defectEnds", "u32", "runs"],
  /** Place among the settings. */
  ["settings", "u32", "checks"],
  /** Place of the check's name among the texts. */
  ["names", "u32", "settings"],
  /** Places among the texts, plus 1; 0: none. */
  ["defectTypes", "u32", "defects"],
  ["severities", "u32", "defects"],
  /** Where each text ends; UTF-8. */
  ["textEnds", "u32", "texts"],
  /** Place in RUN_STATUSES. */
  ["statuses", "u8", "runs"],
  /** Place in QUALITY_CODES. */
  ["outcomes", "u8", "runs"],
  /** Place in CHECK_STATUSES. */
  ["checkStatuses", "u8", "checks"],
  /** Place in CANONICAL_UNITS. */
  ["units", "u8", "settings"],
  ["programIds", "u8", "programs", 16],
  ["texts", "u8", "textBytes"],
] as const satisfies readonly Column[];

export const DETAIL_COLUMNS = [
  /** NaN: none. */
  ["deltas", "f64", "checks"],
  /** Place among the messages, plus 1; 0: none. */
  ["messages", "u32", "checks"],
  ["messageEnds", "u32", "messages"],
  ["runIds", "u8", "runs", 16],
  ["messageTexts", "u8", "messageBytes"],
] as const satisfies readonly Column[];

interface ArrayOfKind {
  f64: Float64Array;
  u32: Uint32Array;
  u8: Uint8Array;
}
type ColumnsOf<Columns extends readonly Column[]> = {
  readonly [C in Columns[number] as C[0]]: ArrayOfKind[C[1]];
};
export type FigureColumns = ColumnsOf<typeof FIGURE_COLUMNS>;
export type DetailColumns = ColumnsOf<typeof DETAIL_COLUMNS>;
export type FindingColumns = FigureColumns & DetailColumns;

/** The columns of a segment, in memory. */
export interface SegmentFindings {
  readonly counts: ColumnCounts;
  readonly figures: FigureColumns;
  /** Null if they were not asked for, and are not there anyway. */
  readonly details: DetailColumns | null;
}

/** When the first run of a segment ended, and the last one, by their times. Infinity and -Infinity: it has no runs. */
export interface TimeSpan {
  lowUs: number;
  highUs: number;
}

const ITEM_BYTES: Record<ColumnKind, number> = { f64: 8, u32: 4, u8: 1 };

/** Bytes of these columns together, a multiple of 8. */
export function columnsBytes(columns: readonly Column[], counts: ColumnCounts): number {
  const bytes = columns.reduce(
    (sum, [, kind, count, perEntry = 1]) => sum + ITEM_BYTES[kind] * counts[count] * perEntry,
    0,
  );
  return Math.ceil(bytes / 8) * 8;
}

/** The columns as they lie in these bytes, from a multiple of 8 on. They are not copied. */
export function viewColumns<Columns extends readonly Column[]>(
  columns: Columns,
  counts: ColumnCounts,
  buffer: ArrayBuffer,
  offset: number,
): ColumnsOf<Columns> {
  const views: Record<string, Float64Array | Uint32Array | Uint8Array> = {};
  let at = offset;
  for (const [name, kind, count, perEntry = 1] of columns) {
    const length = counts[count] * perEntry;
    if (kind === "f64") views[name] = new Float64Array(buffer, at, length);
    else if (kind === "u32") views[name] = new Uint32Array(buffer, at, length);
    else views[name] = new Uint8Array(buffer, at, length);
    at += ITEM_BYTES[kind] * length;
  }
  return views as ColumnsOf<Columns>;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The text at a place, given where each one ends. */
export function textAt(ends: Uint32Array, texts: Uint8Array, place: number): string {
  return decoder.decode(texts.subarray(place === 0 ? 0 : ends[place - 1], ends[place]));
}
