import { isTerminal } from "../../core/run/run-state.js";
import type { View } from "../../storage/view/view.js";
import type { RunDocuments } from "../documents/run-documents.js";
import type { LiveSocket } from "../replies/reply.js";
import type { LiveClient } from "./live-clients.js";

/** Pause between two messages: at most ten a second. */
const MESSAGE_PAUSE_MS = 100;

const MESSAGE_START = Buffer.from('{"type":"run","run":');
const MESSAGE_END = Buffer.from("}");

export interface RunSocketOptions {
  client: LiveClient;
  view: View;
  documents: RunDocuments;
  /** Of a run that there is. */
  runId: string;
  baseUrl: string;
}

/** The states of one run as messages, up to its terminal one. */
export class RunSocket implements LiveSocket {
  ending = { code: 1001, reason: "the service is stopping" };
  readonly #options: RunSocketOptions;
  #sentUpdateUs = -1;
  #sentMs = Number.NEGATIVE_INFINITY;
  #isOver = false;

  constructor(options: RunSocketOptions) {
    this.#options = options;
  }

  get cut(): AbortSignal {
    return this.#options.client.all.cut;
  }

  release(): void {
    this.#options.client.end();
  }

  async next(): Promise<Uint8Array | undefined> {
    const { client, view, documents, runId, baseUrl } = this.#options;
    while (!this.#isOver && !client.hasEnded) {
      const head = view.runHead(runId);
      if (head === undefined || head.updatedAtUs === this.#sentUpdateUs) {
        await client.wait();
        continue;
      }
      const pauseMs = this.#sentMs + MESSAGE_PAUSE_MS - performance.now();
      if (pauseMs > 0) {
        await client.wait(pauseMs);
        continue;
      }
      const document = await documents.get(runId, baseUrl, { gone: () => client.gone });
      if (document === undefined) continue;
      // The document may be newer than this. Then its state is sent once more.
      this.#sentUpdateUs = head.updatedAtUs;
      this.#sentMs = performance.now();
      if (isTerminal(head.status)) {
        this.#isOver = true;
        this.ending = { code: 1000, reason: head.status };
      }
      client.countSent(1);
      return Buffer.concat([MESSAGE_START, document.body as Uint8Array, MESSAGE_END]);
    }
    return undefined;
  }
}

const NEVER = new AbortController().signal;

/** A WebSocket that is closed at once: clients can tell why, which they cannot of a refused upgrade. */
export function refusedSocket(reason: string): LiveSocket {
  return { ending: { code: 1013, reason }, cut: NEVER, next: async () => undefined, release() {} };
}
