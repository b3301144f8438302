import type { PlantMessage } from "../../records/plant-message.js";
import { PlantCells } from "./plant-cells.js";
import { PlantRuns } from "./plant-runs.js";

/** The tables of all cells, and which message the records being folded belong to. */
export class PlantTables {
  readonly runs = new PlantRuns();
  readonly cell = new PlantCells();
  #cell: string | undefined;
  #markUs = 0;
  #firstSequence = 0;
  #lastSequence = 0;

  /** @param sequence of the message's own record: those of its records follow */
  message(message: PlantMessage, sequence: number): void {
    const { cell, storeId, markUs, lastSequence, count, fault } = message;
    if (fault !== null) this.cell.noteFault(cell, fault);
    // A message that cannot be read may name any store, so it makes none.
    if (lastSequence === 0) return;
    this.runs.select(cell, storeId);
    this.cell.select(message);
    this.#cell = cell;
    this.#markUs = markUs;
    this.#firstSequence = sequence + 1;
    this.#lastSequence = sequence + count;
  }

  /** Of the record with this sequence number: its cell, and its mark. Undefined if its message was lost to damage. */
  originOf(sequence: number): { cell: string; updatedAtUs: number } | undefined {
    const isOfMessage = sequence >= this.#firstSequence && sequence <= this.#lastSequence;
    if (this.#cell === undefined || !isOfMessage) return undefined;
    return { cell: this.#cell, updatedAtUs: this.#markUs + sequence - this.#firstSequence };
  }
}
