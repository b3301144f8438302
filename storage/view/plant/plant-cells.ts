/** Identity, components and programs of all cells: what `CellState` is for one. */
import type { ComponentRow } from "../../../core/health.js";
import type { CellChange } from "../../../core/link/change.js";
import type { ProgramState } from "../../../core/run/program.js";
import type { PlantMessage } from "../../records/plant-message.js";
import { CellState, type CellTable } from "../cell-state.js";
import { ViewPrograms } from "../view-programs.js";

interface Cell {
  storeId: string;
  state: CellState;
  lastContactUs: number;
  /** The last message that could not be taken; null if all could. */
  fault: string | null;
}

export class PlantCells implements CellTable {
  /** The newest definition of each program. A program is deleted when no cell has it any more. */
  readonly programs = new ViewPrograms();
  readonly #cells = new Map<string, Cell>();
  #current: Cell | undefined;

  /** The next changes come from this store. A cell with a new store begins anew. */
  select({ cell: name, storeId, streamTimeUs, fault }: PlantMessage): void {
    let cell = this.#cells.get(name);
    if (cell === undefined || cell.storeId !== storeId) {
      const before = cell?.state.programs.ids() ?? [];
      cell = { storeId, state: new CellState(), lastContactUs: 0, fault: cell?.fault ?? null };
      this.#cells.set(name, cell);
      for (const id of before) this.#programChanged(id);
    }
    cell.lastContactUs = streamTimeUs;
    cell.fault = fault ?? cell.fault;
    this.#current = cell;
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
    const rows = [...this.#cells].map(([name, cell]) => rowOf(name, cell));
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

function rowOf(name: string, { state, lastContactUs, fault }: Cell): ComponentRow {
  const unwell = [...state.components.values()].filter(({ status }) => status !== "healthy");
  const details = [
    `last message at ${new Date(lastContactUs / 1000).toISOString()}`,
    ...unwell.map(({ key, status, detail }) => `${key} is ${status}${detail === null ? "" : ` (${detail})`}`),
    ...(fault === null ? [] : [fault]),
  ];
  const status = unwell.length > 0 || fault !== null ? "degraded" : "healthy";
  return { key: `cell_${name}`, id: null, status, detail: details.join("; "), enabled: null, required: false };
}
