import { crc32 } from "node:zlib";
import type { Change } from "../../core/link/change.js";
import type { Delivery } from "../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import { UuidTable } from "../columns/uuid-table.js";
import type { RecordLocation } from "../log/log-batch.js";
import { RECORD_TYPE, type RecordIndex } from "../records/record-index.js";
import type { RecordFault } from "./check-store.js";

const IS_CREATED = 1;
const HAS_ENDED = 2;

/**
 * Whether what records refer to is there: the run of a change, the event, run and webhook of a delivery. It is judged behind the last record, in a log
 * that has lost none, as compaction drops what a later record has too: a run's changes and their events once it has ended, and of a webhook
 * and a delivery, within a segment, all but the last.
 */
export class RecordReferences {
  /** Runs; what is known of each. */
  readonly #runs = new UuidTable();
  /** Runs with changes and no record, so far, that they begin or end with. */
  readonly #runsWithout = new Map<string, RecordLocation>();
  /** Deliveries that events of runs began with; of each a digest of what it is of. */
  readonly #begun = new UuidTable();
  /** Records of deliveries that no event, so far, has begun with. */
  readonly #unbegun = new Map<
    string,
    { delivery: Pick<Delivery, "eventId" | "runId" | "webhookId">; location: RecordLocation }
  >();
  readonly #webhooks = new Set<string>();
  /** Webhooks that something names and no record, so far, is of. */
  readonly #webhooksWithout = new Map<string, RecordLocation>();
  /** Changes of a run behind its end; of each run the first one. */
  readonly #behindEnd = new Map<string, RecordLocation>();
  /** Deliveries that are of something else than what they began with. */
  readonly #others = new Map<string, RecordLocation>();

  /** @param changes of a record that has some; each is of the run that the index section names */
  take(index: RecordIndex, changes: readonly Change[], location: RecordLocation): void {
    switch (index.type) {
      case RECORD_TYPE.webhook:
        this.#webhook((index.shown.webhook ?? index.shown.deleted).id);
        return;
      case RECORD_TYPE.delivery:
        this.#delivery(index.delivery, location);
        return;
      case RECORD_TYPE.runCreated:
        this.#run(index.summary.id, IS_CREATED);
        return;
      case RECORD_TYPE.runEnded:
        this.#run(index.summary.id, HAS_ENDED);
        for (const change of changes)
          if (change.kind === "run_ended") this.#begin(change.runId, change.run.emitted ?? [], location);
        return;
      case RECORD_TYPE.runDelta:
        if (!this.#runs.has(index.runId) && !this.#runsWithout.has(index.runId))
          this.#runsWithout.set(index.runId, location);
        if (this.#hasEnded(index.runId) && !this.#behindEnd.has(index.runId))
          this.#behindEnd.set(index.runId, location);
        for (const change of changes)
          if (change.kind === "run_started" && change.event !== undefined)
            this.#begin(change.runId, [change.event], location);
        return;
      default:
        return;
    }
  }

  /** What is wrong whatever the log has lost, once all records were taken. */
  *certainFaults(): Generator<RecordFault> {
    for (const [runId, location] of this.#behindEnd)
      yield { location, message: `a change of run ${runId} behind its end` };
  }

  /** What is wrong besides with a log that has lost none. */
  *faults(): Generator<RecordFault> {
    for (const [runId, location] of this.#runsWithout)
      yield { location, message: `a change of run ${runId}, with which no record before it begins, and none ends` };
    for (const [id, { delivery, location }] of this.#unbegun) {
      const { eventId, runId } = delivery;
      // Damage that was put right later may have had the run end twice: compaction keeps the last end alone, without the events of the other.
      if (runId !== null && this.#hasEnded(runId)) continue;
      yield { location, message: `delivery ${id} is of event ${eventId} of run ${runId}, which no record tells of` };
    }
    for (const [id, location] of this.#others)
      yield { location, message: `delivery ${id} is of another event, run or webhook than the one that it began with` };
    for (const [id, location] of this.#webhooksWithout)
      yield { location, message: `a delivery to webhook ${id}, which no record is of` };
  }

  #hasEnded(runId: string): boolean {
    return ((this.#runs.get(runId) ?? 0) & HAS_ENDED) !== 0;
  }

  #run(id: string, is: typeof IS_CREATED | typeof HAS_ENDED): void {
    this.#runs.set(id, (this.#runs.get(id) ?? 0) | is);
    // Its beginning was dropped for its end. One that comes behind what it should begin is none.
    if (is === HAS_ENDED) {
      this.#runsWithout.delete(id);
      // It went on while the earlier end was lost, which has been put back since.
      this.#behindEnd.delete(id);
    }
  }

  #begin(runId: string, events: readonly EmittedEvent[], location: RecordLocation): void {
    for (const { id: eventId, deliveries } of events) {
      for (const { id, webhookId } of deliveries) {
        this.#begun.set(id, digestOf({ eventId, runId, webhookId }));
        this.#needWebhook(webhookId, location);
        const waiting = this.#unbegun.get(id);
        if (waiting === undefined) continue;
        this.#unbegun.delete(id);
        this.#compare(id, waiting.delivery, waiting.location);
      }
    }
  }

  #delivery(delivery: Delivery, location: RecordLocation): void {
    const { id, runId } = delivery;
    this.#needWebhook(delivery.webhookId, location);
    // That of a test is of no run, and has its event with it.
    if (runId === null) return;
    if (this.#begun.has(id)) this.#compare(id, delivery, location);
    else if (!this.#unbegun.has(id)) this.#unbegun.set(id, { delivery, location });
  }

  #compare(id: string, delivery: Pick<Delivery, "eventId" | "runId" | "webhookId">, location: RecordLocation): void {
    if (this.#begun.get(id) !== digestOf(delivery)) this.#others.set(id, location);
  }

  #webhook(id: string): void {
    this.#webhooks.add(id);
    this.#webhooksWithout.delete(id);
  }

  #needWebhook(id: string, location: RecordLocation): void {
    if (!this.#webhooks.has(id) && !this.#webhooksWithout.has(id)) this.#webhooksWithout.set(id, location);
  }
}

function digestOf({ eventId, runId, webhookId }: Pick<Delivery, "eventId" | "runId" | "webhookId">): number {
  return crc32(`${eventId} ${runId} ${webhookId}`);
}
