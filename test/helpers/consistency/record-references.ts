import { crc32 } from "node:zlib";
import type { Change } from "../../../core/link/change.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import type { EmittedEvent } from "../../../core/webhook/emitted-event.js";
import { UuidTable } from "../../../storage/columns/uuid-table.js";
import type { RecordLocation } from "../../../storage/log/committed-batch.js";
import { RECORD_TYPE, type RecordIndex } from "../../../storage/records/record-index.js";

/** A record that contradicts others, which only a bug of the service can write. */
export interface RecordFault {
  location: RecordLocation;
  message: string;
}

const IS_CREATED = 1;
const HAS_ENDED = 2;

/**
 * Checks that everything exists to which records refer: the run of a change; the event, run and webhook of a delivery. It judges after the last
 * record, and only in a log that has lost none.
 */
export class RecordReferences {
  /** What is known of each run. */
  readonly #runs = new UuidTable();
  /** Runs with changes, but so far without a record that begins or ends them. */
  readonly #runsWithout = new Map<string, RecordLocation>();
  /** Deliveries that began with an event of a run; the value is a digest of their event, run and webhook. */
  readonly #begun = new UuidTable();
  /** Records of deliveries for which no event was found so far. */
  readonly #unbegun = new Map<
    string,
    { delivery: Pick<Delivery, "eventId" | "runId" | "webhookId">; location: RecordLocation }
  >();
  readonly #webhooks = new Set<string>();
  /** Webhooks that a delivery names, but so far without a record. */
  readonly #webhooksWithout = new Map<string, RecordLocation>();
  /** The first change of each run that stands behind the run's end. */
  readonly #behindEnd = new Map<string, RecordLocation>();
  /** Deliveries whose record names another event, run or webhook than the event with which they began. */
  readonly #others = new Map<string, RecordLocation>();

  /** @param changes of the record, if it has any; all are of the run that the index section names */
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

  /** The faults that do not depend on what the log has lost. Called after all records were taken. */
  *certainFaults(): Generator<RecordFault> {
    for (const [runId, location] of this.#behindEnd)
      yield { location, message: `a change of run ${runId} stands behind the run's end` };
  }

  /** Further faults, which are faults only if the log has lost no record. */
  *faults(): Generator<RecordFault> {
    for (const [runId, location] of this.#runsWithout)
      yield {
        location,
        message: `a change belongs to run ${runId}, but no record before it begins that run, and none ends it`,
      };
    for (const [id, { delivery, location }] of this.#unbegun) {
      const { eventId, runId } = delivery;
      // If damage was repaired later, the run may have ended twice, and the event may be of the end that is lost.
      if (runId !== null && this.#hasEnded(runId)) continue;
      yield {
        location,
        message: `delivery ${id} belongs to event ${eventId} of run ${runId}, but no record has that event`,
      };
    }
    for (const [id, location] of this.#others)
      yield { location, message: `delivery ${id} names another event, run or webhook than at its beginning` };
    for (const [id, location] of this.#webhooksWithout)
      yield { location, message: `a delivery goes to webhook ${id}, but no record has that webhook` };
  }

  #hasEnded(runId: string): boolean {
    return ((this.#runs.get(runId) ?? 0) & HAS_ENDED) !== 0;
  }

  #run(id: string, is: typeof IS_CREATED | typeof HAS_ENDED): void {
    this.#runs.set(id, (this.#runs.get(id) ?? 0) | is);
    if (is === HAS_ENDED) {
      this.#runsWithout.delete(id);
      // The run went on while its earlier end was lost; that end has been restored since.
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
    // A test delivery has no run, and carries its own event.
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
