import { isTerminal } from "../../core/run/run-state.js";
import type { View } from "../../storage/view/view.js";
import type { RunDocuments } from "../documents/run-documents.js";
import type { ThreadSlices } from "../documents/thread-slices.js";
import type { LiveSocket, MessagePart } from "../replies/reply.js";
import type { LiveClient } from "./live-clients.js";

/** Pause between two messages: at most ten a second. */
const MESSAGE_PAUSE_MS = 100;

const MESSAGE_START = Buffer.from('{"type":"run","run":');
const MESSAGE_END = Buffer.from("}");
/**
 * A client that reads nothing costs no more than this and the socket's own buffers. uWebSockets.js writes frames of 16 KiB and more in another way:
 * when the socket is full, it can then lose the rest of a frame, or forget to go on.
 */
export const MESSAGE_PART_BYTES = 12 * 1024;

export interface RunSocketOptions {
  client: LiveClient;
  view: View;
  documents: RunDocuments;
  slices: ThreadSlices;
  /** The id of an existing run. */
  runId: string;
  baseUrl: string;
}

/** The states of one run as messages, up to its terminal one. */
export class RunSocket implements LiveSocket {
  ending = { code: 1001, reason: "the service is stopping, or an API key was removed" };
  readonly #options: RunSocketOptions;
  #sentUpdateUs = -1;
  #sentMs = Number.NEGATIVE_INFINITY;
  #isOver = false;
  /** The document that is being sent, and what is left of its message. */
  #document: Uint8Array | undefined;
  #parts: Iterator<MessagePart, undefined> = [][Symbol.iterator]();

  constructor(options: RunSocketOptions) {
    this.#options = options;
  }

  get cut(): AbortSignal {
    return this.#options.client.gone;
  }

  release(): void {
    this.#letGo();
    this.#options.client.end();
  }

  async next(): Promise<MessagePart | undefined> {
    const { client, slices } = this.#options;
    for (;;) {
      const pause = slices.giveWay();
      if (pause !== undefined) await pause;
      if (client.hasEnded) return undefined;
      const { value } = this.#parts.next();
      if (value !== undefined) return value;
      this.#letGo();
      const document = await this.#nextDocument();
      if (document === undefined) return undefined;
      this.#document = document;
      this.#parts = partsOf(document);
      client.all.sent.add(document, this.#onTooSlow);
      client.countSent(1);
    }
  }

  /** Resolves when there is a state that was not sent. */
  async #nextDocument(): Promise<Uint8Array | undefined> {
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
      return document.body as Uint8Array;
    }
    return undefined;
  }

  #letGo(): void {
    if (this.#document !== undefined) this.#options.client.all.sent.remove(this.#document, this.#onTooSlow);
    this.#document = undefined;
    this.#parts = [][Symbol.iterator]();
  }

  readonly #onTooSlow = (): void => {
    this.ending = { code: 1013, reason: "the run has changed, and the message was not read in time" };
    this.release();
  };
}

function* partsOf(document: Uint8Array): Generator<MessagePart, undefined> {
  if (document.byteLength <= MESSAGE_PART_BYTES) {
    yield { bytes: Buffer.concat([MESSAGE_START, document, MESSAGE_END]), isLast: true };
    return;
  }
  yield { bytes: MESSAGE_START, isLast: false };
  for (let at = 0; at < document.byteLength; at += MESSAGE_PART_BYTES) {
    yield { bytes: document.subarray(at, at + MESSAGE_PART_BYTES), isLast: false };
  }
  yield { bytes: MESSAGE_END, isLast: true };
}

const NEVER = new AbortController().signal;

/** A WebSocket that is closed at once: so clients can see why. They cannot see it if the upgrade is refused. */
export function refusedSocket(reason: string): LiveSocket {
  return { ending: { code: 1013, reason }, cut: NEVER, next: async () => undefined, release() {} };
}
