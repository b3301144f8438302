/**
 * The runs of all cells as one table: what `ViewRuns` is for one store. Each store of a cell has a table of its own, because ids ascend only within
 * a store. Ids are unique over all of them. A store that gets another name gets another table: its runs keep the name of the cell that made them.
 *
 * An ordinal of the joined table is the number of the run's table times 2^32, plus its ordinal there. Tables are numbered in the order of the stream,
 * so that every hub of the plant has the same ordinals.
 *
 * A page by program, status, outcome or a mark comes from one merged order (merged-order.ts), whatever the number of tables is.
 *
 * A page by serial number or by several cells, or by a mark that divides many blocks, costs one query for each table, and then O(log tables) for
 * each entry. To skip to an offset, blocks of entries are skipped: if each of k tables looks at the last of its next s entries, and k times s entries
 * are to be skipped, then the table whose entry is the newest has s entries that all come before the page. So O(k log(offset / k)) steps lead to
 * any offset.
 */
import { lowerBound } from "../../../core/lower-bound.js";
import type { ReportStatus } from "../../../core/run/quality.js";
import type { RunStatus } from "../../../core/run/run-state.js";
import { UuidTable } from "../../columns/uuid-table.js";
import type { RecordLocation } from "../../log/committed-batch.js";
import type { IndexedRun } from "../../records/indexed-run.js";
import type { RunPage } from "../run-index.js";
import {
  CHANGED_RUNS,
  type ChangedRuns,
  kindFilter,
  type RunFilter,
  type RunListQuery,
  type RunTable,
  ViewRuns,
} from "../view-runs.js";
import { MergedOrder } from "./merged-order.js";

const TABLE_SIZE = 2 ** 32;
/** Most blocks of the merged order that a page walks for a mark: about a millisecond. */
const WALKED_BLOCKS = 16;

interface Table {
  readonly cell: string;
  readonly storeId: string;
  readonly runs: ViewRuns;
  /** What its first ordinal is in the joined table. */
  readonly base: number;
}

/** The runs of one table that match a query, newest first. */
interface Matches {
  readonly table: Table;
  readonly total: number;
  /** The next one's place among them. */
  at: number;
  /** The id of the entry that is compared. */
  id: string;
}

export class PlantRuns implements RunTable {
  readonly #tables: Table[] = [];
  /** By store id: a table for each of its names. */
  readonly #ofStore = new Map<string, Table[]>();
  #current: Table | undefined;
  /** All tables of the current one's store. */
  #siblings: readonly Table[] = [];
  /** Program ids, numbered alike in all tables. */
  readonly #programs = new UuidTable();
  readonly #order = new MergedOrder(this);

  /** The next runs come from this store. */
  select(cell: string, storeId: string): void {
    const tables = this.#ofStore.get(storeId) ?? [];
    let table = tables.find((one) => one.cell === cell);
    if (table === undefined) {
      const base = this.#tables.length * TABLE_SIZE;
      const runs = new ViewRuns(this.#programs, (ordinal, before) => this.#order.changed(base + ordinal, before));
      table = { cell, storeId, runs, base };
      this.#tables.push(table);
      tables.push(table);
      this.#ofStore.set(storeId, tables);
    }
    this.#current = table;
    this.#siblings = tables;
  }

  get size(): number {
    return this.#order.size;
  }

  get nextOrdinal(): number {
    const { base, runs } = this.#selected;
    return base + runs.size;
  }

  get latestUs(): number {
    return this.#tables.reduce((latestUs, { runs }) => Math.max(latestUs, runs.latestUs), 0);
  }

  get #selected(): Table {
    if (this.#current === undefined) throw new Error("no message of a cell has come");
    return this.#current;
  }

  create(run: IndexedRun, timeUs: number): boolean {
    const { base, runs } = this.#selected;
    const isNew = runs.create(run, timeUs);
    if (isNew) this.#order.add(base + runs.size - 1);
    return isNew;
  }

  end(run: IndexedRun, timeUs: number, location: RecordLocation): number {
    const siblings = this.#siblings;
    const before = siblings.length > 1 ? siblings.find(({ runs }) => runs.has(run.id)) : undefined;
    const { base, runs } = before ?? this.#selected;
    const { size } = runs;
    const ordinal = runs.end(run, timeUs, location);
    if (runs.size > size) this.#order.add(base + ordinal);
    return ordinal < 0 ? -1 : base + ordinal;
  }

  update(ordinal: number, status: RunStatus, qualityStatus: ReportStatus | null, timeUs: number): void {
    this.#of(ordinal).update(ordinal % TABLE_SIZE, status, qualityStatus, timeUs);
  }

  setQualityStatus(ordinal: number, qualityStatus: ReportStatus | null): void {
    this.#of(ordinal).setQualityStatus(ordinal % TABLE_SIZE, qualityStatus);
  }

  addFrame(ordinal: number, frameId: string): void {
    this.#of(ordinal).addFrame(ordinal % TABLE_SIZE, frameId);
  }

  admitLateRuns(): number[] {
    const late = this.#tables.map(({ runs }) => runs.admitLateRuns());
    const ordinals = late.flatMap((ofTable, nth) => ofTable.map((ordinal) => this.#tables[nth]!.base + ordinal));
    if (ordinals.length === 0) return ordinals;
    this.#order.renumber((before) => {
      const table = Math.floor(before / TABLE_SIZE);
      const [ofTable, own] = [late[table]!, before - table * TABLE_SIZE];
      // The nth late run is at or below this one's place if without those before it, its place would be.
      return before + lowerBound(0, ofTable.length, (nth) => ofTable[nth]! - nth <= own);
    });
    for (const ordinal of ordinals) this.#order.add(ordinal);
    return ordinals;
  }

  beginStatusTimes(): void {
    for (const { runs } of this.#tables) runs.beginStatusTimes();
  }

  cell(ordinal: number): string {
    return this.#table(ordinal).cell;
  }

  storeId(ordinal: number): string {
    return this.#table(ordinal).storeId;
  }

  id(ordinal: number): string {
    return this.#of(ordinal).id(ordinal % TABLE_SIZE);
  }

  idWord(ordinal: number, word: number): number {
    return this.#of(ordinal).idWord(ordinal % TABLE_SIZE, word);
  }

  has(id: string): boolean {
    return this.#tables.some(({ runs }) => runs.has(id));
  }

  ordinal(id: string): number {
    for (const { base, runs } of this.#tables) {
      const ordinal = runs.ordinal(id);
      if (ordinal >= 0) return base + ordinal;
    }
    return -1;
  }

  kind(ordinal: number): number {
    return this.#of(ordinal).kind(ordinal % TABLE_SIZE);
  }

  status(ordinal: number): RunStatus {
    return this.#of(ordinal).status(ordinal % TABLE_SIZE);
  }

  qualityStatus(ordinal: number): ReportStatus | null {
    return this.#of(ordinal).qualityStatus(ordinal % TABLE_SIZE);
  }

  entry(ordinal: number): ReturnType<ViewRuns["entry"]> {
    return this.#of(ordinal).entry(ordinal % TABLE_SIZE);
  }

  updatedAtUs(ordinal: number): number {
    return this.#of(ordinal).updatedAtUs(ordinal % TABLE_SIZE);
  }

  location(ordinal: number): RecordLocation | undefined {
    return this.#of(ordinal).location(ordinal % TABLE_SIZE);
  }

  runOfFrame(frameId: string): number | undefined {
    for (const { base, runs } of this.#tables) {
      const ordinal = runs.runOfFrame(frameId);
      if (ordinal !== undefined) return base + ordinal;
    }
    return undefined;
  }

  programRunCount(programId: string): number {
    return this.#tables.reduce((sum, { runs }) => sum + runs.programRunCount(programId), 0);
  }

  /** The newest run of any cell that is running or finalizing. */
  newestActive(): number | undefined {
    let newest: number | undefined;
    for (const { base, runs } of this.#tables) {
      const active = runs.newestActive();
      if (active === undefined) continue;
      if (newest === undefined || this.id(base + active) > this.id(newest)) newest = base + active;
    }
    return newest;
  }

  changedAfter(afterUs: number, version: number): ChangedRuns {
    let isLast = true;
    const found: { ordinal: number; timeUs: number }[] = [];
    for (const { base, runs } of this.#tables) {
      if (runs.latestUs <= afterUs) continue;
      const changed = runs.changedAfter(afterUs, version);
      isLast &&= changed.isLast;
      for (const ordinal of changed.ordinals)
        found.push({ ordinal: base + ordinal, timeUs: runs.updatedAtUs(ordinal) });
    }
    found.sort((left, right) => left.timeUs - right.timeUs);
    // Behind the last one of a table that has more, others of that table may come first.
    const ordinals = found.slice(0, CHANGED_RUNS).map(({ ordinal }) => ordinal);
    return { ordinals, isLast: isLast && ordinals.length === found.length };
  }

  concerns(ordinal: number, filter: RunFilter, currentUs: number): boolean {
    const { cell, runs } = this.#table(ordinal);
    const { cells, ...ofTable } = filter;
    if (cells?.includes(cell) === false) return false;
    return runs.concerns(ordinal % TABLE_SIZE, ofTable, currentUs);
  }

  query({ cells, ...query }: RunListQuery): RunPage {
    const { offset, limit, serialNumber, updatedSinceUs } = query;
    const kinds = kindFilter(query, this.#programs);
    if (kinds === null) return { total: 0, ordinals: [] };
    const hasFewToWalk = updatedSinceUs === undefined || this.#order.straddling(updatedSinceUs) <= WALKED_BLOCKS;
    if (cells === undefined && serialNumber === undefined && hasFewToWalk)
      return this.#order.page({ ...kinds, updatedSinceUs }, offset, limit);
    const matching: Matches[] = [];
    let total = 0;
    for (const table of this.#tables) {
      if (cells?.includes(table.cell) === false) continue;
      const found = table.runs.query({ ...query, offset: 0, limit: 0 }).total;
      if (found > 0) matching.push({ table, total: found, at: 0, id: "" });
      total += found;
    }
    if (offset >= total || limit === 0) return { total, ordinals: [] };
    if (matching.length === 1) {
      const { runs, base } = matching[0]!.table;
      return { total, ordinals: runs.query(query).ordinals.map((ordinal) => base + ordinal) };
    }
    skip(matching, query, offset);
    return { total, ordinals: nextOf(matching, query, limit) };
  }

  #table(ordinal: number): Table {
    return this.#tables[Math.floor(ordinal / TABLE_SIZE)]!;
  }

  #of(ordinal: number): ViewRuns {
    return this.#table(ordinal).runs;
  }
}

/** Moves each table to its first entry of the page at the offset. */
function skip(matching: readonly Matches[], query: RunListQuery, offset: number): void {
  let left = offset;
  while (left > 0) {
    const some = matching.filter(({ at, total }) => at < total);
    const block = Math.max(1, Math.floor(left / (2 * some.length)));
    const heap = new NewestFirst(some.map((matches) => compared(matches, query, block)));
    // While so many are left, the newest of the compared entries has only entries before the page in its block.
    for (let newest = heap.first; newest !== undefined && left > 0; newest = heap.first) {
      const size = Math.min(block, newest.total - newest.at);
      if (block > 1 && left < block * heap.size) break;
      newest.at += size;
      left -= size;
      if (newest.at < newest.total) heap.firstChanged(compared(newest, query, block));
      else heap.removeFirst();
    }
  }
}

/** Sets the entry that is compared: the last one of the next block, or of the table. */
function compared(matches: Matches, query: RunListQuery, block: number): Matches {
  const { table, total, at } = matches;
  const [ordinal] = table.runs.query({ ...query, offset: Math.min(at + block, total) - 1, limit: 1 }).ordinals;
  matches.id = table.runs.id(ordinal!);
  return matches;
}

/** The next entries of all tables. */
function nextOf(matching: readonly Matches[], query: RunListQuery, limit: number): number[] {
  const pages = new Map<Matches, readonly number[]>();
  const takeFrom = (matches: Matches): Matches => {
    const { table, at } = matches;
    let page = pages.get(matches);
    if (page === undefined || page.length === 0) {
      // Most pages have a few entries of each table.
      const mostOfOne = Math.ceil((2 * limit) / matching.length) + 1;
      page = table.runs.query({ ...query, offset: at, limit: Math.min(limit, mostOfOne) }).ordinals;
      pages.set(matches, page);
    }
    matches.id = table.runs.id(page[0]!);
    return matches;
  };
  const ordinals: number[] = [];
  const heap = new NewestFirst(matching.filter(({ at, total }) => at < total).map(takeFrom));
  for (let newest = heap.first; newest !== undefined && ordinals.length < limit; newest = heap.first) {
    const [ordinal, ...others] = pages.get(newest)!;
    ordinals.push(newest.table.base + ordinal!);
    pages.set(newest, others);
    newest.at++;
    if (newest.at < newest.total) heap.firstChanged(takeFrom(newest));
    else heap.removeFirst();
  }
  return ordinals;
}

/** A binary heap of tables by the entry that is compared, the newest first. */
class NewestFirst {
  readonly #items: Matches[];

  constructor(items: Matches[]) {
    this.#items = items.sort((left, right) => (left.id > right.id ? -1 : 1));
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): Matches | undefined {
    return this.#items[0];
  }

  removeFirst(): void {
    const last = this.#items.pop()!;
    if (this.#items.length > 0) this.firstChanged(last);
  }

  /** Puts the item in the first one's place, and then where it belongs. */
  firstChanged(item: Matches): void {
    const items = this.#items;
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && items[child + 1]!.id > items[child]!.id) child++;
      if (items[child]!.id <= item.id) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }
}
