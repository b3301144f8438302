import type { ServerResponse } from "node:http";
import { CHUNK_BYTES } from "../replies/stream-chunks.js";
import { type StallClock, StalledClients } from "./stalled-clients.js";
import { UnacknowledgedBytes } from "./unacknowledged-bytes.js";

/** Only clients that wait longer than this cost a look into the system's table of connections. */
const PATIENCE_MS = 20_000;

/** Writes answers of node:http in chunks, and cuts off clients that read nothing for too long. */
export class NodeWriter {
  readonly #stalled: StalledClients;
  readonly #unacknowledged = new UnacknowledgedBytes();
  /** Whether the table was read for this check: with an older figure, the next one would look like progress. */
  #isFresh = false;
  /** Answers that node:http considers finished but that are not sent yet. */
  endingCount = 0;

  constructor(clock: StallClock | undefined) {
    this.#stalled = new StalledClients(clock, (waitingMs) => {
      this.#isFresh = waitingMs >= PATIENCE_MS;
      return this.#isFresh ? this.#unacknowledged.refresh() : undefined;
    });
  }

  /** Nothing is written any more. */
  close(): void {
    this.#stalled.close();
  }

  /** Resolves when the system has accepted the bytes or the client is gone. */
  async write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
    // In chunks, because node:net reports only whole writes, and a client may need minutes for all bytes.
    for (let at = 0; at < bytes.byteLength && !response.closed; at += CHUNK_BYTES) {
      const chunk = bytes.subarray(at, at + CHUNK_BYTES);
      await this.#watched(response, (taken) => response.write(chunk, taken));
    }
  }

  /** Writes the rest and ends the response. Resolves when everything is sent or the client is gone. */
  async end(response: ServerResponse, rest: Uint8Array | null): Promise<void> {
    let last = rest;
    if (rest !== null && rest.byteLength > CHUNK_BYTES) {
      await this.write(response, rest.subarray(0, -CHUNK_BYTES));
      last = rest.subarray(-CHUNK_BYTES);
    }
    this.endingCount++;
    try {
      await this.#watched(response, (taken) => {
        response.once("finish", taken);
        if (last === null) response.end();
        else response.end(last);
      });
    } finally {
      this.endingCount--;
    }
  }

  #watched(response: ServerResponse, send: (taken: () => void) => void): Promise<void> {
    // A closed response emits no further event.
    if (response.closed || response.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const { socket } = response;
      const client = {
        offer: () => (socket === null || !this.#isFresh ? undefined : this.#unacknowledged.of(socket)),
        cut: () => socket?.destroy(),
      };
      const done = () => {
        this.#stalled.remove(client);
        response.off("close", done);
        resolve();
      };
      response.on("close", done);
      this.#stalled.add(client, undefined);
      send(done);
    });
  }
}
