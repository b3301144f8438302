/**
 * With TEST_HUB=1 the cells of contract tests (`RecordedCell`) are served by a hub: each record goes to it in a message of the plant's stream, and
 * clients read the hub's view by the hub's routes. The stream's clock is the cell's, so the hub's marks are the times that tests expect.
 */

import type { RecordInput } from "../../../storage/log/log-options.js";
import { encodePlantMessage } from "../../../storage/records/plant-message.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { MessageReader, type ReadMessage } from "../../../workers/hub/message-reader.js";
import { BATCH_BYTES, encodeFields, logSubject, messageFields } from "../../../workers/plant/log-message.js";
import { logMessage } from "./simulated-stream.js";

export const IS_HUB_IN_FRONT = process.env.TEST_HUB === "1";

const CELL = "contract-cell";
const STORE_ID = "11111111-1111-4111-8111-111111111111";

/** Carries the records of one cell to its hub. */
export class HubInFront {
  readonly #reader = new MessageReader();
  #streamSequence = 0;
  /** By it the test of the suites sees that they are served by a hub. */
  #isSaid = false;
  #markUs = 0;
  #lastSequence = 0;

  /**
   * Ships a record, in parts if it is large.
   *
   * @param bytes the record as the cell's log has it
   * @param updatedAtUs when it was written
   * @returns what the hub's log gets
   */
  ship(bytes: Uint8Array, sequence: number, updatedAtUs: number): RecordInput[] {
    if (!this.#isSaid) console.log("# served by a hub");
    this.#isSaid = true;
    const parts = Math.ceil(bytes.length / BATCH_BYTES);
    let read: ReadMessage | null = null;
    for (let part = 1; part <= parts; part++) {
      const piece = bytes.subarray((part - 1) * BATCH_BYTES, part * BATCH_BYTES);
      const range = { firstSequence: sequence, lastSequence: sequence, previousSequence: this.#lastSequence };
      const fields = { ...range, count: 1, part, parts };
      const header = encodeFields(messageFields(fields, piece));
      const message = logMessage(logSubject(CELL, STORE_ID), header, piece, ++this.#streamSequence, updatedAtUs);
      read = this.#reader.read(message, () => ({ cell: CELL, lastSequences: { [CELL]: this.#lastSequence } }));
    }
    if (read === null || read.fault !== null) throw new Error(read?.fault ?? "the record has no last part");
    this.#lastSequence = sequence;
    const { records, ...own } = read;
    this.#markUs = Math.max(this.#markUs + 1, updatedAtUs);
    const index = encodePlantMessage({
      ...own,
      ...{ streamSequence: this.#streamSequence, partSequences: [] },
      ...{ streamTimeUs: updatedAtUs, markUs: this.#markUs, count: records.length },
    });
    const message = { type: RECORD_TYPE.plantMessage, flags: 1, timeUs: updatedAtUs, index, body: new Uint8Array(0) };
    return [message, ...records];
  }
}

/** JSON of a hub without what a cell does not say: the tests expect what the cell says. */
export function withoutCellNames(json: string): string {
  return json.replaceAll(`"cell":"${CELL}",`, "").replaceAll(`"cells":["${CELL}"],`, "");
}
