import type { ComponentRow } from "../../core/health.js";
import type { CellChange, CellIdentity } from "../../core/link/change.js";
import { ViewPrograms } from "./view-programs.js";

/** The cell's identity, components and programs, folded from the changes of the cell. */
export class CellState {
  readonly programs = new ViewPrograms();
  /** What producers put, by key. */
  readonly components = new Map<string, ComponentRow>();
  identity: CellIdentity = { kioskSerialNumber: null, unitSystem: "metric" };

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
