import type { CellChange } from "../../core/link/change.js";
import type { LogRecord, RecordLocation } from "../log/committed-batch.js";
import type { HintEntry } from "../log/hint-format.js";
import { LOG_RECORD_TYPE } from "../log/record-format.js";
import { decodeChanges } from "../records/change-record.js";
import { decodeIndex, isKnownRecordType, RECORD_TYPE } from "../records/record-index.js";

const NOTHING = new Uint8Array(0);

/**
 * Chooses which records of one segment a start needs, and which of these with their body. It looks at nothing but the
 * segment. So a hint that is made again is the same, byte for byte.
 *
 * | record | needed | its body |
 * |---|---|---|
 * | opening state | always, for its time alone: the newest segment's opening state says the rest | no |
 * | mark, refusal | never: the opening state says the rest here too | |
 * | run created, run delta | unless the run ends later in the segment; at a hub, also if its store got another name before | yes |
 * | run ended | unless a later record of this kind replaces it, but as above | while artefacts are still to be made |
 * | cell changes | unless later records of the segment say all that it says | yes |
 * | webhook | always: the order in which webhooks came matters | yes |
 * | delivery | unless a later record of the delivery replaces it | no |
 * | resend | unless a later record of the resend replaces it | while it is running |
 * | message of the plant | while a record of it is needed, or if it has a fault; the last one of each store | no |
 * | record of a newer release | always | yes |
 */
export class HintChoice {
  readonly #entries = new Map<number, HintEntry>();
  /** Entries of runs that have not ended so far, by run. */
  readonly #open = new Map<string, number[]>();
  /** The last entry about each thing, by the name of the thing. */
  readonly #last = new Map<string, number>();
  /** For each entry of cell changes, the count of things about which no later entry says anything. */
  readonly #said = new Map<number, number>();
  #nth = 0;
  hasOpeningState = false;
  /** Of the message of the plant that the record belongs to: what its cell says replaces nothing of another cell. */
  #store = "";
  /** By store: its last message of the plant. The earlier ones, `#messages`, are only needed for their records. */
  readonly #lastMessages = new Map<string, HintEntry>();
  readonly #messages = new Set<HintEntry>();
  /** By store: the name of its cell. */
  readonly #cells = new Map<string, string>();

  /** Takes the segment's next record. It keeps copies of what it needs. @throws RecordDecodeError */
  take(record: LogRecord, location: RecordLocation): void {
    const { type } = record;
    if (type === LOG_RECORD_TYPE.openingState) {
      this.hasOpeningState = true;
      this.#add({ ...record, index: NOTHING }, location, false);
      return;
    }
    if (type === LOG_RECORD_TYPE.mark) return;
    if (!isKnownRecordType(type)) {
      this.#add(record, location, true);
      return;
    }
    const index = decodeIndex(type, record.index);
    switch (index.type) {
      case RECORD_TYPE.refusal:
        return;
      case RECORD_TYPE.runCreated:
        this.#addOpen(index.summary.id, record, location);
        return;
      case RECORD_TYPE.runDelta:
        this.#addOpen(index.runId, record, location);
        return;
      case RECORD_TYPE.runEnded:
        for (const nth of this.#open.get(index.summary.id) ?? []) this.#entries.delete(nth);
        this.#open.delete(index.summary.id);
        this.#replace(`run ${index.summary.id}`, this.#add(record, location, index.captures.isOpen));
        return;
      case RECORD_TYPE.delivery:
        this.#replace(`delivery ${index.delivery.id}`, this.#add(record, location, false));
        return;
      case RECORD_TYPE.resend:
        this.#replace(`resend ${index.resend.id}`, this.#add(record, location, index.resend.state === "running"));
        return;
      case RECORD_TYPE.webhook:
        this.#add(record, location, true);
        return;
      case RECORD_TYPE.cellChanges:
        this.#addCellChanges(decodeChanges(type, record.body) as CellChange[], record, location);
        return;
      case RECORD_TYPE.plantMessage: {
        this.#store = index.message.storeId;
        const nth = this.#add(record, location, false);
        // It could not be read, so it says nothing of the store.
        if (index.message.lastSequence === 0) return;
        this.#noteCell(index.message.cell);
        const entry = this.#entries.get(nth) as HintEntry;
        const before = this.#lastMessages.get(this.#store);
        if (before !== undefined) this.#messages.add(before);
        // A fault is told whatever comes after it.
        if (index.message.fault === null) this.#lastMessages.set(this.#store, entry);
        else this.#lastMessages.delete(this.#store);
        return;
      }
    }
  }

  /** The entries so far, in the order of the records. */
  entries(): HintEntry[] {
    const entries = [...this.#entries.values()];
    return entries.filter((entry, at) => {
      const next = entries[at + 1];
      return !this.#messages.has(entry) || next?.type !== RECORD_TYPE.plantMessage;
    });
  }

  /** If the store has another name now, all entries of runs stay: a run keeps the name of the cell that made it. */
  #noteCell(cell: string): void {
    const before = this.#cells.get(this.#store);
    this.#cells.set(this.#store, cell);
    if (before === undefined || before === cell) return;
    this.#open.clear();
    for (const subject of this.#last.keys()) if (subject.startsWith("run ")) this.#last.delete(subject);
  }

  #add(record: LogRecord, { offset, length }: RecordLocation, needsBody: boolean): number {
    const nth = this.#nth++;
    const { type, sequence, timeUs, index, body } = record;
    this.#entries.set(nth, {
      ...{ type, sequence, timeUs, offset, length },
      index: index.slice(),
      body: needsBody ? body.slice() : NOTHING,
    });
    return nth;
  }

  #addOpen(runId: string, record: LogRecord, location: RecordLocation): void {
    const nth = this.#add(record, location, true);
    const open = this.#open.get(runId);
    if (open === undefined) this.#open.set(runId, [nth]);
    else open.push(nth);
  }

  #replace(subject: string, nth: number): void {
    const before = this.#last.get(subject);
    if (before !== undefined) this.#entries.delete(before);
    this.#last.set(subject, nth);
  }

  #addCellChanges(changes: readonly CellChange[], record: LogRecord, location: RecordLocation): void {
    const nth = this.#add(record, location, true);
    const subjects = new Set(changes.map((change) => `${subjectOf(change)} ${this.#store}`));
    this.#said.set(nth, subjects.size);
    for (const subject of subjects) {
      const before = this.#last.get(subject);
      this.#last.set(subject, nth);
      if (before === undefined) continue;
      const left = (this.#said.get(before) as number) - 1;
      this.#said.set(before, left);
      if (left === 0) this.#entries.delete(before);
    }
  }
}

/** What a change is about. A later change about the same thing replaces it. */
function subjectOf(change: CellChange): string {
  switch (change.kind) {
    case "cell_put":
      return "cell";
    case "component_put":
      return `component ${change.row.key}`;
    case "component_deleted":
      return `component ${change.key}`;
    case "program_put":
      return `program ${change.program.id}`;
    // Both changes of a deleted program are kept: they say that it existed. So a deletion has a name of its own here.
    case "program_deleted":
      return `deleted program ${change.id}`;
    case "producer_forgotten":
      return `producer ${change.name}`;
  }
}
