/** The process of `StreamClients`: it is sent `StreamCommand`s, and answers each. */
import { get, type IncomingMessage } from "node:http";

export type StreamCommand =
  | { kind: "open"; url: string; count: number }
  /** Is answered when every stream has got this many run events. */
  | { kind: "await"; events: number }
  | { kind: "close" };

/** For `await`: when each stream got the last of these events, in milliseconds since the Unix epoch. Otherwise empty. */
export type StreamAnswer = { arrivalsMs: number[] } | { error: string };

const EVENT_MARK = "\nevent: run\n";

/** Counts events only: to parse them would make the clients slower than the service. */
class StreamCounter {
  events = 0;
  lastMs = 0;
  readonly response: IncomingMessage;
  #rest = "";

  constructor(response: IncomingMessage, onEvents: () => void) {
    this.response = response;
    response.setEncoding("latin1");
    response.on("data", (text: string) => {
      const all = this.#rest + text;
      let at = 0;
      for (let found = all.indexOf(EVENT_MARK); found >= 0; found = all.indexOf(EVENT_MARK, at)) {
        this.events++;
        at = found + EVENT_MARK.length;
      }
      this.#rest = all.slice(Math.max(at, all.length - EVENT_MARK.length + 1));
      if (at === 0) return;
      this.lastMs = performance.timeOrigin + performance.now();
      onEvents();
    });
    response.on("error", () => {});
  }
}

let streams: StreamCounter[] = [];
let look: () => void = () => {};

function openOne(url: string): Promise<StreamCounter> {
  return new Promise((resolve, reject) => {
    get(`${url}/runs/changes`, { agent: false }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`a stream was answered with ${response.statusCode}`));
      const stream = new StreamCounter(response, () => look());
      // The head: from now on the stream tells every change.
      response.once("data", () => resolve(stream));
    }).on("error", reject);
  });
}

async function carryOut(command: StreamCommand): Promise<number[]> {
  if (command.kind === "open") {
    streams = await Promise.all(Array.from({ length: command.count }, () => openOne(command.url)));
  } else if (command.kind === "close") {
    for (const { response } of streams.splice(0)) response.destroy();
  } else {
    await new Promise<void>((resolve) => {
      look = () => streams.every(({ events }) => events >= command.events) && resolve();
      look();
    });
    return streams.map(({ lastMs }) => lastMs);
  }
  return [];
}

const answer = (message: StreamAnswer): void => {
  process.send?.(message);
};

// The benchmark has ended or failed.
process.on("disconnect", () => process.exit());
process.on("message", (command: StreamCommand) => {
  carryOut(command).then(
    (arrivalsMs) => answer({ arrivalsMs }),
    (error: Error) => answer({ error: error.message }),
  );
});
