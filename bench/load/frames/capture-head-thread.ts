/** The thread of `startCaptureHead`: `workerData` is `CaptureHeadOptions`, its messages are `HeadCommand` and `HeadAnswer`. */
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { LIMITS } from "../../../core/limits.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { CapturedAmount, CaptureHeadOptions, HeadAnswer, HeadCommand, HeadPace } from "./capture-head.js";
import { BATCH_BYTES, BATCH_LINES, beginCapture, HEAD_BATCHES_PER_SECOND, surfaceBatch } from "./capture-sender.js";

const IN_FLIGHT = 16;
const MAXIMUM_BATCHES = LIMITS.frameLines / BATCH_LINES;

const port = parentPort;
if (port === null) throw new Error("capture-head-thread is a worker's entry");
const { socketPath, program, seed } = workerData as CaptureHeadOptions;
const batch = surfaceBatch(seed);
const client = new ProducerClient({
  address: { path: socketPath },
  producer: "bench-head",
  onRefused: ({ code, message }) => {
    throw new Error(`the service refused a message of the head: ${code}: ${message}`);
  },
});
const answer = (message: HeadAnswer): void => port.postMessage(message);

let isEnding = false;
let capturing: Promise<CapturedAmount> | undefined;

async function capture(pace: HeadPace): Promise<CapturedAmount> {
  // It is not known yet how many there will be.
  const capture = await beginCapture(client, program, batch, 0);
  answer({ kind: "begun" });
  const startMs = performance.now();
  let sent = 0;
  const send = async (): Promise<void> => {
    sent++;
    const { acknowledged } = await capture.sendBatch();
    await acknowledged;
  };
  if (pace === "head") {
    const answers: Promise<void>[] = [];
    while (!isEnding && sent < MAXIMUM_BATCHES) {
      // A timer may be a millisecond early or late, as a real head is. On the whole the pace is right.
      const waitMs = startMs + (sent * 1000) / HEAD_BATCHES_PER_SECOND - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      answers.push(send());
    }
    await Promise.all(answers);
  } else {
    const slot = async (): Promise<void> => {
      while (!isEnding && sent < MAXIMUM_BATCHES) await send();
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, slot));
  }
  const seconds = (performance.now() - startMs) / 1000;
  await capture.end();
  return { megabytes: (sent * BATCH_BYTES) / 1e6, seconds };
}

async function receive(command: HeadCommand): Promise<void> {
  if (command.kind === "begin") {
    isEnding = false;
    capturing = capture(command.pace);
  } else if (command.kind === "end") {
    if (capturing === undefined) throw new Error("the head was not begun");
    isEnding = true;
    answer({ kind: "ended", amount: await capturing });
  } else {
    isEnding = true;
    await capturing?.catch(() => {});
    await client.close();
    port?.close();
  }
}

await client.welcomed();
port.on("message", (command: HeadCommand) => {
  // An error that nobody catches ends the thread. Whoever waits for an answer then gets it.
  receive(command).catch((error: unknown) => setImmediate(() => Promise.reject(error)));
});
