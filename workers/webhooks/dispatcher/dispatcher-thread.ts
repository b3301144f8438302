/** The dispatcher thread's entry: `workerData` is `DispatcherOptions`, the messages are those of dispatcher-messages.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { createFollowingClock, monotonicMs, wallClockUs } from "../../../core/service-clock.js";
import { SYSTEM_TIMERS } from "../../../core/timers.js";
import { sendDelivery } from "./delivery-request.js";
import { Dispatcher } from "./dispatcher.js";
import type {
  DeliveryReport,
  DispatcherOptions,
  DispatcherToRecorder,
  RecorderToDispatcher,
} from "./dispatcher-messages.js";
import { NameLookups } from "./name-lookups.js";
import { ReceiverConnections } from "./receiver-connections.js";
import { receiverConnector } from "./receiver-connector.js";
import { receiverRanges } from "./receiver-policy.js";
import { startLookupProcess } from "./start-lookup-process.js";

const port = parentPort;
if (port === null) throw new Error("dispatcher-thread is a worker's entry");
const options = workerData as DispatcherOptions;
const send = (message: DispatcherToRecorder): void => port.postMessage(message);

const clock = createFollowingClock(monotonicMs);
const lookups = new NameLookups({ start: startLookupProcess, timers: SYSTEM_TIMERS, nowMs: monotonicMs });
let ownPort: number | null = null;
const connections = new ReceiverConnections(
  receiverConnector({
    ...receiverRanges(options),
    extraCa: options.extraCa,
    ownPort: () => ownPort,
    lookUp: (hostname, callback) => lookups.lookUp(hostname, callback),
  }),
);

/** Reports of one turn of the event loop are sent together. */
let reports: DeliveryReport[] = [];
const dispatcher = new Dispatcher({
  timers: SYSTEM_TIMERS,
  tick: () => clock.tick(),
  wallUs: wallClockUs,
  userAgent: `inspection-results-service/${options.serviceVersion}`,
  send: (request, onEnd) => sendDelivery(connections, request, onEnd),
  report(report) {
    if (reports.length === 0) setImmediate(flush);
    reports.push(report);
  },
});

function flush(): void {
  if (reports.length > 0) send({ kind: "reports", reports });
  reports = [];
}

port.on("message", (message: RecorderToDispatcher) => {
  switch (message.kind) {
    case "serving":
      ownPort = message.port;
      return;
    case "deliver":
      clock.follow(message.now);
      for (const job of message.jobs) dispatcher.deliver(job);
      return;
    case "stop":
      void stop(message.graceMs);
      return;
  }
});

send({ kind: "loaded" });

async function stop(graceMs: number): Promise<void> {
  await dispatcher.stop(graceMs);
  flush();
  lookups.close();
  await connections.destroy();
  (port as NonNullable<typeof port>).close();
}
