import { readUuid } from "../../../core/identifiers.js";
import { CANONICAL_UNITS, CHECK_STATUSES } from "../../../core/run/quality.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { type SegmentFindings, textAt } from "../../../storage/findings/finding-columns.js";
import { UUID_BYTES } from "../../../storage/records/index-layout.js";
import type { TextBytes } from "./text-bytes.js";

/** Bytes of text that rows have in common. */
export type Pieces = readonly Uint8Array[];

/** Writes checks as rows of text. What rows have in common is made once for each run, and for each setting. */
export interface RowFormat {
  /** False: checks without a value are left out. */
  readonly showsWithoutValue: boolean;
  /** What the rows of a run have in common. */
  run(run: RunOfRows): string[];
  /** What the rows of a setting have in common. */
  setting(setting: SettingOfRows): string[];
  row(out: TextBytes, run: Pieces, setting: Pieces, check: CheckOfRow): void;
}

export interface RunOfRows {
  readonly id: string;
  readonly serialNumber: string | null;
  readonly revision: number;
  readonly completedAtUs: number;
}

/** Numbers are NaN where there is none. */
export interface SettingOfRows {
  readonly name: string;
  readonly nominal: number;
  readonly threshold: number;
  readonly units: (typeof CANONICAL_UNITS)[number];
}

export interface CheckOfRow {
  readonly status: (typeof CHECK_STATUSES)[number];
  readonly value: number;
  readonly delta: number;
  readonly message: string | null;
}

/** Writes the rows of a segment's runs. */
export class SegmentRows {
  readonly #segment: SegmentFindings;
  readonly #format: RowFormat;
  readonly #wanted: Uint8Array;
  readonly #settings: (Pieces | undefined)[] = [];

  /** @param segment with details @param wanted for each setting, whether its rows are */
  constructor(segment: SegmentFindings, format: RowFormat, wanted: Uint8Array) {
    this.#segment = segment;
    this.#format = format;
    this.#wanted = wanted;
  }

  /** Where the checks of a run begin and end. */
  checksOf(run: number): [start: number, end: number] {
    const { checkEnds } = this.#segment.figures;
    return [run === 0 ? 0 : (checkEnds[run - 1] as number), checkEnds[run] as number];
  }

  /** Writes the rows of some checks of a run. */
  write(out: TextBytes, run: number, start: number, end: number): void {
    const { figures, details } = this.#segment;
    if (details === null) throw new Error("rows need the details of a segment");
    const { values, settings, checkStatuses } = figures;
    let head: Pieces | undefined;
    for (let check = start; check < end; check++) {
      const setting = settings[check] as number;
      const value = values[check] as number;
      if (this.#wanted[setting] === 0 || (Number.isNaN(value) && !this.#format.showsWithoutValue)) continue;
      head ??= encoded(this.#format.run(this.#run(run)));
      const status = CHECK_STATUSES[checkStatuses[check] as number]!;
      const message = details.messages[check] as number;
      this.#format.row(out, head, this.#setting(setting), {
        status,
        value,
        delta: details.deltas[check] as number,
        message: message === 0 ? null : textAt(details.messageEnds, details.messageTexts, message - 1),
      });
    }
  }

  #run(run: number): RunOfRows {
    const { figures, details } = this.#segment;
    const serial = figures.serials[run] as number;
    return {
      id: readUuid(details!.runIds, UUID_BYTES * run),
      serialNumber: serial === 0 ? null : textAt(figures.textEnds, figures.texts, serial - 1),
      revision: figures.revisions[run] as number,
      completedAtUs: figures.completedAtUs[run] as number,
    };
  }

  #setting(setting: number): Pieces {
    const known = this.#settings[setting];
    if (known !== undefined) return known;
    const { figures } = this.#segment;
    const common = this.#format.setting({
      name: textAt(figures.textEnds, figures.texts, figures.names[setting] as number),
      nominal: figures.nominals[setting] as number,
      threshold: figures.thresholds[setting] as number,
      units: CANONICAL_UNITS[figures.units[setting] as number]!,
    });
    const made = encoded(common);
    this.#settings[setting] = made;
    return made;
  }
}

function encoded(pieces: readonly string[]): Pieces {
  return pieces.map((piece) => Buffer.from(piece));
}

const COLUMNS = [
  ...["run_id", "serial_number", "revision", "completed_at", "name", "status"],
  ...["value", "nominal", "delta", "threshold", "units", "message"],
] as const;

export const CSV_HEAD = `${COLUMNS.join(",")}\n`;

/**
 * CSV (RFC 4180, with LF): an empty cell for null. A text that a spreadsheet would take for a formula gets a leading `'`: one that
 * begins with `=`, `+`, `-`, `@`, a tab or a CR, and is no number.
 */
export const CSV_ROWS: RowFormat = {
  showsWithoutValue: true,
  run: ({ id, serialNumber, revision, completedAtUs }) => [
    `${id},${csvCell(serialNumber)},${revision},${formatTimeUs(completedAtUs)},`,
  ],
  setting: ({ name, nominal, threshold, units }) => [
    `${csvCell(name)},`,
    `,${csvNumber(nominal)},`,
    `,${csvNumber(threshold)},${units},`,
  ],
  row(out, run, setting, { status, value, delta, message }) {
    out.add(run[0]!);
    out.add(setting[0]!);
    out.addAscii(status);
    out.addAscii(",");
    if (!Number.isNaN(value)) out.addNumber(value);
    out.add(setting[1]!);
    if (!Number.isNaN(delta)) out.addNumber(delta);
    out.add(setting[2]!);
    out.addText(csvCell(message));
    out.addAscii("\n");
  },
};

/** One JSON object a line. */
export const NDJSON_ROWS: RowFormat = {
  showsWithoutValue: true,
  run: ({ id, serialNumber, revision, completedAtUs }) => [
    `{"run_id":"${id}","serial_number":${JSON.stringify(serialNumber)},"revision":${revision},` +
      `"completed_at":"${formatTimeUs(completedAtUs)}","name":`,
  ],
  setting: ({ name, nominal, threshold, units }) => [
    `${JSON.stringify(name)},"status":"`,
    `,"nominal":${jsonNumber(nominal)},"delta":`,
    `,"threshold":${jsonNumber(threshold)},"units":"${units}","message":`,
  ],
  row(out, run, setting, { status, value, delta, message }) {
    out.add(run[0]!);
    out.add(setting[0]!);
    out.addAscii(status);
    out.addAscii('","value":');
    if (Number.isNaN(value)) out.addAscii("null");
    else out.addNumber(value);
    out.add(setting[1]!);
    if (Number.isNaN(delta)) out.addAscii("null");
    else out.addNumber(delta);
    out.add(setting[2]!);
    out.addText(JSON.stringify(message));
    out.addAscii("}\n");
  },
};

const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function csvCell(text: string | null): string {
  if (text === null) return "";
  // Readers of CSV end at NUL, or refuse it.
  const plain = csvText(text.replaceAll("\0", "\uFFFD"));
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** A spreadsheet would run what looks like a formula. */
function csvText(text: string): string {
  return FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
}

function csvNumber(value: number): string {
  return Number.isNaN(value) ? "" : String(value);
}

function jsonNumber(value: number): string {
  return Number.isNaN(value) ? "null" : String(value);
}
