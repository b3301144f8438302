import { randomBytes } from "node:crypto";
import { generateUuidV7, uuidV7TimeUs } from "../../../core/identifiers.js";
import { isTerminal, type RunSummary } from "../../../core/run/run-state.js";
import type { ResendItem, ResendQuery, ResentStatus } from "../../../core/webhook/resend.js";
import type { EventName, RunEventName, Webhook } from "../../../core/webhook/webhook.js";
import { ResendItemsBuilder } from "../../records/resend-record.js";
import type { GiveWay, StoredRun } from "../run-records.js";
import type { ViewTables } from "../view-fold.js";

/** Runs that are looked at in one go, and runs whose records are read together. */
const LOOKED_AT = 4_096;
const READ_TOGETHER = 256;

/** How far the clocks of producers may be ahead. */
const CLOCKS_APART_US = 24 * 60 * 60 * 1_000_000;

const ENDS = { completed: "ProgramCompleted", failed: "ProgramFailed", cancelled: "ProgramCancelled" } as const;

/** One that is chosen, with the time by which they are put in order. */
interface Chosen extends ResendItem {
  timeUs: number;
}

/**
 * The deliveries that a resend to this webhook is to attempt, oldest first, as its record has them. A run whose record is damaged has no missed events
 * here. It gives way after each piece of work.
 *
 * @param most ends the search when there are more
 * @returns how many there are, at most one more than `most`, and their items
 */
export async function chooseDeliveries(
  tables: ViewTables,
  webhook: Webhook,
  query: ResendQuery,
  most: number,
  giveWay: GiveWay,
): Promise<{ count: number; items: Uint8Array<ArrayBuffer> }> {
  const chosen: Chosen[] = [];
  const isFull = (): boolean => chosen.length > most;
  const isNamed = (name: string): boolean => query.eventNames === undefined || query.eventNames.includes(name);
  const isWanted = (status: string, name: string): boolean =>
    query.statuses.includes(status as ResentStatus) && isNamed(name);
  for (const few of tables.deliveries.between(webhook.id, query.sinceUs, query.untilUs, isWanted)) {
    for (const { id, createdAtUs } of few) chosen.push({ timeUs: createdAtUs, deliveryId: id, missed: null });
    await giveWay();
    if (isFull()) break;
  }
  if (query.statuses.includes("missed") && !isFull()) {
    const names = webhook.subscribedEvents.filter(isNamed);
    await addMissed(tables, webhook.id, query, names, chosen, isFull, giveWay);
  }
  const builder = new ResendItemsBuilder(chosen.length);
  for (const [at, one] of (await inOrder(chosen, giveWay)).entries()) {
    builder.add(one);
    if (at % LOOKED_AT === LOOKED_AT - 1) await giveWay();
  }
  return { count: chosen.length, items: builder.bytes };
}

async function addMissed(
  tables: ViewTables,
  webhookId: string,
  query: ResendQuery,
  names: readonly EventName[],
  chosen: Chosen[],
  isFull: () => boolean,
  giveWay: GiveWay,
): Promise<void> {
  const { sinceUs } = query;
  // An event up to then is in the view together with its deliveries. A later one may come while this goes on.
  const untilUs = Math.min(query.untilUs, tables.runs.latestUs + 1);
  let has: (runId: string, name: EventName) => boolean = () => false;
  for (const known of tables.deliveries.eventsOf(webhookId)) {
    has = known;
    await giveWay();
  }
  let lastId: string | null = null;
  const add = ({ id: runId, status, startedAtUs, completedAtUs }: TimedRun): void => {
    const events: [RunEventName, number | null][] = [["ProgramStarted", startedAtUs]];
    if (isTerminal(status)) events.push([ENDS[status], completedAtUs]);
    for (const [eventName, timeUs] of events) {
      if (timeUs === null || timeUs < sinceUs || timeUs >= untilUs) continue;
      if (!names.includes(eventName) || has(runId, eventName)) continue;
      lastId = generateUuidV7(Math.floor(untilUs / 1000), randomBytes(10), lastId);
      chosen.push({ timeUs, deliveryId: lastId, missed: { runId, eventName } });
    }
  };
  for await (const runs of runsBetween(tables, sinceUs, untilUs, giveWay)) {
    for (const run of runs) add(run);
    await giveWay();
    if (isFull()) return;
  }
}

type TimedRun = Pick<RunSummary, "id" | "status" | "startedAtUs" | "completedAtUs">;

/** The runs in which something happened between these times, in the order of their creation. Records that cannot be read are left out. */
async function* runsBetween(
  { runs, records, activeRuns }: ViewTables,
  sinceUs: number,
  untilUs: number,
  giveWay: GiveWay,
): AsyncGenerator<TimedRun[], void> {
  let stored: StoredRun[] = [];
  const read = async (): Promise<TimedRun[]> => {
    const summaries = await records.summaries(stored);
    stored = [];
    return summaries.filter((one) => one !== undefined);
  };
  for (let ordinal = 0; ordinal < runs.size; ordinal++) {
    if (ordinal % LOOKED_AT === LOOKED_AT - 1) await giveWay();
    const updatedAtUs = runs.updatedAtUs(ordinal);
    if (updatedAtUs < sinceUs) continue;
    const id = runs.id(ordinal);
    // Ids ascend, and have the time of creation by the producer's clock. A run that was created so much later did nothing before.
    if (uuidV7TimeUs(id) > untilUs + CLOCKS_APART_US) break;
    const location = runs.location(ordinal);
    if (location === undefined) yield [activeRuns.state(id)];
    else if (stored.push({ id, ordinal, updatedAtUs, location }) === READ_TOGETHER) yield await read();
  }
  if (stored.length > 0) yield await read();
}

/** Sorts by time in pieces (a merge sort), as sorting hundreds of thousands at once would hold up the thread. */
async function inOrder(chosen: Chosen[], giveWay: GiveWay): Promise<Chosen[]> {
  let from: Chosen[] = [];
  for (let start = 0; start < chosen.length; start += READ_TOGETHER) {
    from.push(...chosen.slice(start, start + READ_TOGETHER).sort((a, b) => a.timeUs - b.timeUs));
    await giveWay();
  }
  for (let width = READ_TOGETHER; width < from.length; width *= 2) {
    const to: Chosen[] = [];
    for (let start = 0; start < from.length; start += 2 * width) {
      const [middle, end] = [Math.min(start + width, from.length), Math.min(start + 2 * width, from.length)];
      for (let left = start, right = middle; left < middle || right < end; ) {
        const isLeft = right === end || (left < middle && from[left]!.timeUs <= from[right]!.timeUs);
        to.push(from[isLeft ? left++ : right++]!);
        if (to.length % LOOKED_AT === 0) await giveWay();
      }
    }
    from = to;
  }
  return from;
}
