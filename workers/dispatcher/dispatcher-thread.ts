/** The dispatcher thread's entry: `workerData` is `DispatcherOptions`, the messages are those of dispatcher-messages.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { Agent } from "undici";
import { type AddressRange, parseAddressRange } from "../../core/address-policy.js";
import { LIMITS } from "../../core/limits.js";
import { sendDelivery } from "./delivery-request.js";
import { Dispatcher } from "./dispatcher.js";
import type {
  DeliveryReport,
  DispatcherOptions,
  DispatcherToRecorder,
  RecorderToDispatcher,
} from "./dispatcher-messages.js";
import { receiverConnector } from "./receiver-connector.js";

const port = parentPort;
if (port === null) throw new Error("dispatcher-thread is a worker's entry");
const options = workerData as DispatcherOptions;
const send = (message: DispatcherToRecorder): void => port.postMessage(message);

let ownPort: number | null = null;
const agent = new Agent({
  connect: receiverConnector({
    allow: options.allow.length === 0 ? null : options.allow.map(rangeOf),
    deny: options.deny.map(rangeOf),
    extraCa: options.extraCa,
    ownPort: () => ownPort,
  }),
  // As many connections as deliveries run; one request on each at a time.
  pipelining: 1,
  maxHeaderSize: LIMITS.answerHeaderMostBytes,
});

/** Reports of one turn of the event loop go together. */
let reports: DeliveryReport[] = [];
const dispatcher = new Dispatcher({
  timers: {
    set: (callback, delayMs) => setTimeout(callback, delayMs),
    clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
  },
  nowMs: () => performance.now(),
  wallUs: () => Date.now() * 1000,
  userAgent: `inspection-results-service/${options.serviceVersion}`,
  send: (request, onEnd) => sendDelivery(agent, request, onEnd),
  report(report) {
    if (reports.length === 0) setImmediate(flush);
    reports.push(report);
  },
});

function flush(): void {
  if (reports.length > 0) send({ kind: "reports", reports });
  reports = [];
}

function rangeOf(text: string): AddressRange {
  const range = parseAddressRange(text);
  if (range === undefined) throw new Error(`${text} is no address range`);
  return range;
}

port.on("message", (message: RecorderToDispatcher) => {
  switch (message.kind) {
    case "serving":
      ownPort = message.port;
      return;
    case "deliver":
      for (const job of message.jobs) dispatcher.deliver(job);
      return;
    case "release":
      dispatcher.release(message.deliveryId);
      return;
    case "stop":
      void stop(message.graceMs);
      return;
  }
});

async function stop(graceMs: number): Promise<void> {
  await dispatcher.stop(graceMs);
  flush();
  await agent.destroy();
  (port as NonNullable<typeof port>).close();
}
