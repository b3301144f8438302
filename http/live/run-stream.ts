import { wallClockUs } from "../../core/service-clock.js";
import { formatTimeUs } from "../../core/timestamps.js";
import type { RunFilter, View } from "../../storage/view/view.js";
import type { ThreadSlices } from "../documents/thread-slices.js";
import type { LiveStream } from "../replies/reply.js";
import type { LiveClient } from "./live-clients.js";
import { eventHead, type RunEvents } from "./run-events.js";

/** A chunk ends with the event that reaches this size. Together with what the servers hold back it stays below 256 KiB for a client. */
const CHUNK_BYTES = 32 * 1024;
/** How long an EventSource waits before it connects again. */
const RETRY_MS = 2_000;

/** By how much the clock of the plant may be ahead of a hub's. */
const AHEAD_US = 60_000_000;

const COMMENT = Buffer.from(":\n\n");

/** Where a stream begins. */
export interface StreamStart {
  /** All changes after this time are told. */
  readonly markUs: number;
  /** The client lists the runs after it is connected, so it knows them all. */
  readonly isNow: boolean;
  /** Why the client must list anew; undefined: its mark is known. */
  readonly resetReason: string | undefined;
}

/** @param sinceUs the client's mark; undefined: now */
export function streamStart(view: View, sinceUs: number | undefined): StreamStart {
  const latestUs = view.runs.latestUs;
  if (sinceUs === undefined) return { markUs: latestUs, isNow: true, resetReason: undefined };
  // Another hub may be ahead of this one: what it told comes here, too.
  const isOfOtherHub = view.isHub && sinceUs <= wallClockUs() + AHEAD_US;
  if (sinceUs <= latestUs || isOfOtherHub) return { markUs: sinceUs, isNow: false, resetReason: undefined };
  const reason =
    `the mark ${formatTimeUs(sinceUs)} is later than the last change of any run, ${formatTimeUs(latestUs)}: ` +
    "the store was replaced, or has lost its end";
  return { markUs: latestUs, isNow: true, resetReason: reason };
}

export interface RunStreamOptions {
  client: LiveClient;
  view: View;
  events: RunEvents;
  slices: ThreadSlices;
  filter: RunFilter;
  start: StreamStart;
  baseUrl: string;
  serviceVersion: string;
}

/** The changed runs as Server-Sent Events. */
export class RunStream implements LiveStream {
  readonly filler = COMMENT;
  readonly #options: RunStreamOptions;
  #head: Uint8Array | undefined;
  /** The client has been told all changes up to this time, except of runs that changed again since. */
  #markUs: number;
  /** The last mark at which it was told of every run; -1: unknown. */
  #currentUs: number;
  /** The wake after which it was told of every run. */
  #currentWake = -1;
  #beats: number;

  constructor(options: RunStreamOptions) {
    const { client, start, serviceVersion } = options;
    this.#options = options;
    this.#markUs = start.markUs;
    this.#currentUs = start.isNow ? start.markUs : -1;
    this.#beats = client.all.beats;
    this.#head = headOf(start, serviceVersion);
  }

  get cut(): AbortSignal {
    return this.#options.client.all.cut;
  }

  release(): void {
    this.#options.client.end();
  }

  async next(): Promise<Uint8Array | undefined> {
    const head = this.#head;
    if (head !== undefined) {
      this.#head = undefined;
      return head;
    }
    const { client, slices } = this.#options;
    while (!client.hasEnded) {
      const { beats, wakes } = client.all;
      if (this.#beats !== beats) {
        this.#beats = beats;
        return COMMENT;
      }
      if (this.#currentWake === wakes) {
        await client.wait();
        continue;
      }
      const pause = slices.giveWay();
      if (pause !== undefined) await pause;
      const events = await this.#nextEvents(wakes);
      if (events !== undefined) return events;
    }
    return undefined;
  }

  /** @param wakes their count before */
  async #nextEvents(wakes: number): Promise<Uint8Array | undefined> {
    const { client, view, events, filter, baseUrl } = this.#options;
    const changes = view.runChanges({ filter, markUs: this.#markUs, currentUs: this.#currentUs });
    const all = changes.timesUs.length === 0 ? [] : await events.of(changes, baseUrl);
    const told: Uint8Array[] = [];
    for (let bytes = 0; told.length < all.length && bytes < CHUNK_BYTES; ) {
      const event = all[told.length] as Uint8Array;
      told.push(event);
      bytes += event.byteLength;
    }
    client.countSent(told.length);
    if (told.length < all.length) {
      this.#markUs = changes.timesUs[told.length - 1] as number;
    } else {
      this.#markUs = changes.markUs;
      if (changes.isLast) {
        this.#currentUs = changes.markUs;
        this.#currentWake = wakes;
      }
    }
    return told.length > 1 ? Buffer.concat(told) : told[0];
  }
}

function headOf({ markUs, resetReason }: StreamStart, serviceVersion: string): Uint8Array {
  const updatedAt = formatTimeUs(markUs);
  const parts = [
    `retry: ${RETRY_MS}\n\n`,
    eventHead(markUs, "ready"),
    JSON.stringify({ updated_at: updatedAt, service_version: serviceVersion }),
    "\n\n",
  ];
  if (resetReason !== undefined) {
    const data = JSON.stringify({ updated_at: updatedAt, reason: resetReason });
    parts.push(eventHead(markUs, "reset"), data, "\n\n");
  }
  return Buffer.from(parts.join(""));
}
