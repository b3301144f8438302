import type { FrameGrid } from "./frame-grid.js";
import type { HeightInMm } from "./height-in-mm.js";
import type { Values } from "./npy.js";
import { type Overview, overviewHeight } from "./overview.js";
import type { RowStore } from "./row-store.js";

/** Heights of one line. */
export interface LineHeights {
  /** In mm; NaN where nothing was measured. */
  zMm(column: number): number;
}

/** What a map shows: the heights of one frame, or the difference of two. */
export interface HeightField {
  readonly grid: FrameGrid;
  readonly overview: Overview;
  /** How many lines may be loaded at once. */
  readonly linesInMemory: number;
  /** The line in full; undefined while it is not in memory. */
  line(line: number): LineHeights | undefined;
  /**
   * Loads lines, from `first` up to, but not including, `end`.
   * @returns gives each of these lines, even when it is no longer in memory
   */
  load(first: number, end: number, signal: AbortSignal): Promise<(line: number) => LineHeights>;
}

class StoredLine implements LineHeights {
  readonly #raw: Values;
  readonly #toMm: HeightInMm;

  constructor(raw: Values, toMm: HeightInMm) {
    this.#raw = raw;
    this.#toMm = toMm;
  }

  zMm(column: number): number {
    return this.#toMm(this.#raw[column] as number);
  }
}

/** The heights of a frame. */
export class FrameField implements HeightField {
  readonly grid: FrameGrid;
  readonly overview: Overview;
  readonly #rows: RowStore;
  readonly #toMm: HeightInMm;

  constructor(grid: FrameGrid, overview: Overview, rows: RowStore, toMm: HeightInMm) {
    this.grid = grid;
    this.overview = overview;
    this.#rows = rows;
    this.#toMm = toMm;
  }

  get linesInMemory(): number {
    return this.#rows.linesInMemory;
  }

  line(line: number): LineHeights | undefined {
    const raw = this.#rows.line(line);
    return raw && new StoredLine(raw, this.#toMm);
  }

  async load(first: number, end: number, signal: AbortSignal): Promise<(line: number) => LineHeights> {
    const rawLine = await this.#rows.load(first, end, signal);
    return (line) => new StoredLine(rawLine(line), this.#toMm);
  }
}

/** `other` minus `here`, point by point, on equal grids. NaN where one of them has no measurement. */
export class DifferenceField implements HeightField {
  readonly grid: FrameGrid;
  readonly overview: Overview;
  readonly #here: HeightField;
  readonly #other: HeightField;

  constructor(here: HeightField, other: HeightField) {
    this.grid = here.grid;
    this.#here = here;
    this.#other = other;
    const { zMm, width, stride, firstColumn, firstLine } = here.overview;
    const difference = new Float32Array(zMm.length);
    for (let at = 0; at < zMm.length; at++) {
      const column = firstColumn + (at % width) * stride;
      const line = firstLine + Math.floor(at / width) * stride;
      difference[at] = overviewHeight(other.overview, column, line) - (zMm[at] as number);
    }
    const isRounded = here.overview.isRounded === true || other.overview.isRounded === true;
    this.overview = { ...here.overview, zMm: difference, isRounded };
  }

  get linesInMemory(): number {
    return Math.min(this.#here.linesInMemory, this.#other.linesInMemory);
  }

  line(line: number): LineHeights | undefined {
    const here = this.#here.line(line);
    const other = this.#other.line(line);
    return here && other && differenceOf(here, other);
  }

  async load(first: number, end: number, signal: AbortSignal): Promise<(line: number) => LineHeights> {
    const [here, other] = await Promise.all([
      this.#here.load(first, end, signal),
      this.#other.load(first, end, signal),
    ]);
    return (line) => differenceOf(here(line), other(line));
  }
}

function differenceOf(here: LineHeights, other: LineHeights): LineHeights {
  return { zMm: (column) => other.zMm(column) - here.zMm(column) };
}

/** z in mm at a point, of the full line if it is in memory, else of the overview. */
export function heightAt(field: HeightField, column: number, line: number): { zMm: number; isExact: boolean } {
  const full = field.line(line);
  if (full !== undefined) return { zMm: full.zMm(column), isExact: true };
  const { stride, isRounded } = field.overview;
  return { zMm: overviewHeight(field.overview, column, line), isExact: stride === 1 && isRounded !== true };
}
