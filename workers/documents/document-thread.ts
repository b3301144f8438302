/** The thread that makes large documents of ended runs. Decoding one can take a second, and no other reader should wait for it. */
import { hash } from "node:crypto";
import { serialize } from "node:v8";
import type { RunState } from "../../core/run/run-state.js";
import type { EmittedEvent } from "../../core/webhook/emitted-event.js";
import type { NamedDelivery } from "../../core/webhook/webhook-response.js";
import { decodeChanges, decodeEmitted } from "../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../storage/records/record-index.js";
import { moved, threadTask } from "../artefacts/pool/piscina-threads.js";
import { type RunDocumentKind, runDocument, withoutFindings } from "./run-documents.js";

/** Events as `deliveriesOfRun` needs them: without their payloads. */
export type BegunEvents = Omit<EmittedEvent, "payload">[];

/** What the view shows of the run: at a hub this is not what its record says. */
export interface ShownHead {
  updatedAtUs: number;
  /** Undefined in the store of a cell. */
  cell: string | undefined;
}

/** `body` is the body of the run's consolidated record. Its memory moves to the thread. */
export type DocumentTask =
  /** Lists the run's events with their deliveries. */
  | { name: "events"; body: Uint8Array }
  | {
      name: "document";
      body: Uint8Array;
      head: ShownHead;
      kind: RunDocumentKind;
      baseUrl: string;
      deliveries: readonly NamedDelivery[];
    }
  /** Gives the part of the run that its files are served from. */
  | { name: "run"; body: Uint8Array; head: ShownHead };

export type DocumentAnswer =
  | { name: "events"; events: BegunEvents; body: Uint8Array }
  /** JSON, and its SHA-1 in base64url. */
  | { name: "document"; json: Uint8Array; sha1: string }
  /** `withoutFindings`, as v8.serialize writes it. */
  | { name: "run"; run: Uint8Array };

export default threadTask(async (task: DocumentTask): Promise<DocumentAnswer> => {
  switch (task.name) {
    case "events": {
      const events = decodeEmitted(task.body).map(({ payload: _, ...event }) => event);
      return moved({ name: "events", events, body: task.body }, [task.body.buffer as ArrayBuffer]);
    }
    case "document": {
      const document = runDocument(task.kind, runOf(task), task.baseUrl, task.deliveries);
      const json = inOwnMemory(Buffer.from(JSON.stringify(document)));
      return moved({ name: "document", json, sha1: hash("sha1", json, "base64url") }, [json.buffer]);
    }
    case "run": {
      const run = inOwnMemory(serialize(withoutFindings(runOf(task))));
      return moved({ name: "run", run }, [run.buffer]);
    }
  }
});

function runOf({ body, head: { cell, updatedAtUs } }: { body: Uint8Array; head: ShownHead }): RunState {
  const [change] = decodeChanges(RECORD_TYPE.runEnded, body);
  if (change?.kind !== "run_ended")
    throw new Error("the record that was read for a run's document is not the end of a run");
  return cell === undefined ? change.run : { ...change.run, cell, updatedAtUs };
}

/** Copies bytes that share their buffer with others, as small ones do: a whole buffer moves to the other thread. */
function inOwnMemory(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const isOwn = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
  return isOwn ? new Uint8Array(bytes.buffer as ArrayBuffer) : new Uint8Array(bytes);
}
