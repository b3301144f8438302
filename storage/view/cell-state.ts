import type { ComponentRow } from "../../core/health.js";
import type { CellChange, CellIdentity } from "../../core/link/change.js";
import { ViewPrograms } from "./view-programs.js";

/** What the view needs of the cell, or of all cells at a hub (plant/plant-cells.ts). */
export type CellTable = Pick<CellState, "programs" | "components" | "apply"> & {
  cellsOf(programId: string): string[] | undefined;
};

/** The cell's identity, components and programs, folded from the changes of the cell. */
export class CellState {
  readonly programs = new ViewPrograms();
  /** What producers put, by key. */
  readonly components = new Map<string, ComponentRow>();
  identity: CellIdentity = { kioskSerialNumber: null, unitSystem: "metric" };

  /** Names of the cells that have a program; undefined in the store of a cell. */
  cellsOf(_programId: string): string[] | undefined {
    return undefined;
  }

  apply(change: CellChange, timeUs: number): void {
    switch (change.kind) {
      case "cell_put":
        this.identity = change.cell;
        return;
      case "component_put":
        this.components.set(change.row.key, change.row);
        return;
      case "component_deleted":
        this.components.delete(change.key);
        return;
      case "program_put":
        this.programs.put(change.program, timeUs);
        return;
      case "program_deleted":
        this.programs.delete(change.id);
        return;
      case "producer_forgotten":
        return;
    }
  }
}
