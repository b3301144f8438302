/** Identity, components and programs of all cells: what `CellState` is for one. */
import { counted } from "../../../core/counted.js";
import type { ComponentRow } from "../../../core/health.js";
import type { CellChange } from "../../../core/link/change.js";
import type { ProgramState } from "../../../core/run/program.js";
import type { PlantMessage } from "../../records/plant-message.js";
import { CellState, type CellTable } from "../cell-state.js";
import { ViewPrograms } from "../view-programs.js";

/** A store of a cell. A cell whose disk was replaced has had several. */
interface CellStore {
  /** The last name under which it was shipped. */
  cell: string;
  state: CellState;
  streamSequence: number;
  lastContactUs: number;
  lagRecords: number;
}

interface CellFaults {
  first: string;
  last: string;
  count: number;
}

export class PlantCells implements CellTable {
  /** The newest definition of each program. A program is deleted when no cell has it any more. */
  readonly programs = new ViewPrograms();
  readonly #stores = new Map<string, CellStore>();
  /** By cell: of the stores with its name, the one that was shipped last. */
  readonly #cells = new Map<string, CellStore>();
  /** By cell: what was wrong with messages that were not as they should be. */
  readonly #faults = new Map<string, CellFaults>();
  #current: CellStore | undefined;

  /** The next changes come from this store. */
  select({ cell, storeId, streamSequence, streamTimeUs, lagRecords }: PlantMessage): void {
    let store = this.#stores.get(storeId);
    if (store === undefined) {
      store = { cell, state: new CellState(), streamSequence, lastContactUs: 0, lagRecords: 0 };
      this.#stores.set(storeId, store);
    }
    const before = store.cell;
    Object.assign(store, { cell, streamSequence, lastContactUs: streamTimeUs, lagRecords });
    this.#current = store;
    if (before !== cell) this.#chooseStore(before);
    if (this.#cells.get(cell) !== store) this.#chooseStore(cell);
  }

  noteFault(cell: string, fault: string): void {
    const { first, count } = this.#faults.get(cell) ?? { first: fault, count: 0 };
    this.#faults.set(cell, { first, last: fault, count: count + 1 });
  }

  #chooseStore(cell: string): void {
    const before = this.#cells.get(cell);
    const stores = [...this.#stores.values()].filter((store) => store.cell === cell);
    const newest = stores.sort((left, right) => right.streamSequence - left.streamSequence)[0];
    if (newest === undefined) this.#cells.delete(cell);
    else this.#cells.set(cell, newest);
    const idsOf = (store: CellStore | undefined) => store?.state.programs.ids() ?? [];
    for (const id of new Set([...idsOf(before), ...idsOf(newest)])) this.#programChanged(id);
  }

  apply(change: CellChange, timeUs: number): void {
    const state = this.#current?.state;
    if (state === undefined) return;
    state.apply(change, timeUs);
    if (change.kind === "program_put") this.#programChanged(change.program.id);
    if (change.kind === "program_deleted") this.#programChanged(change.id);
  }

  /** Names of the cells that have the program, ascending. */
  cellsOf(programId: string): string[] {
    const names = [...this.#cells].filter(([, { state }]) => state.programs.get(programId) !== undefined);
    return names.map(([name]) => name).sort();
  }

  /** A row for each cell, by its key. It is degraded at most: a plant goes on without one of its cells. */
  get components(): Map<string, ComponentRow> {
    const names = new Set([...this.#cells.keys(), ...this.#faults.keys()]);
    const rows = [...names].map((name) => rowOf(name, this.#cells.get(name), this.#faults.get(name)));
    return new Map(rows.map((row) => [row.key, row]));
  }

  #programChanged(id: string): void {
    let newest: ProgramState | undefined;
    for (const { state } of this.#cells.values()) {
      const program = state.programs.get(id);
      if (program !== undefined && program.updatedAtUs > (newest?.updatedAtUs ?? -1)) newest = program;
    }
    if (newest === undefined) this.programs.delete(id);
    else this.programs.put(newest.document, newest.updatedAtUs);
  }
}

function rowOf(name: string, store: CellStore | undefined, faults: CellFaults | undefined): ComponentRow {
  const unwell = [...(store?.state.components.values() ?? [])].filter(({ status }) => status !== "healthy");
  const details = [
    ...(store === undefined ? [] : contactOf(store)),
    ...unwell.map(({ key, status, detail }) => `${key} is ${status}${detail === null ? "" : ` (${detail})`}`),
    ...(faults === undefined ? [] : [faults.last]),
    ...(faults === undefined || faults.count === 1
      ? []
      : [`${counted(faults.count - 1, "fault")} before, the first: ${faults.first}`]),
  ];
  const status = unwell.length > 0 || faults !== undefined ? "degraded" : "healthy";
  return { key: `cell_${name}`, id: null, status, detail: details.join("; "), enabled: null, required: false };
}

function contactOf({ lastContactUs, lagRecords }: CellStore): string[] {
  return [
    `last message at ${new Date(lastContactUs / 1000).toISOString()}`,
    `the plant was ${counted(lagRecords, "record")} behind the cell then`,
  ];
}
