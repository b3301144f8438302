/** The process of `ReadSlices`: it is sent `ReadCommand`s, and answers each with `ReadFigures` or what went wrong. */
import { Agent, get } from "node:http";
import { type LatencyData, LatencyHistogram } from "../../harness/latency-histogram.js";
import { runOpenLoop } from "../../harness/open-loop.js";

export interface ReadCommand {
  url: string;
  /** Of runs whose details are read in turn. */
  ids: readonly string[];
  count: number;
  ratePerSecond: number;
}

export interface ReadFigures {
  seconds: number;
  lateSends: number;
  /** From the intended instants: of all reads, of lists and of details. */
  all: LatencyData;
  lists: LatencyData;
  details: LatencyData;
  /** From when they were sent indeed: without what the reader itself waited for a core. */
  sent: LatencyData;
}

export type ReadAnswer = ReadFigures | { error: string };

const answer = (message: ReadAnswer): void => {
  process.send?.(message);
};

// The benchmark has ended, however it did: nobody waits for what is still being read.
process.on("disconnect", () => process.exit());

/** Reads the whole answer; only 200 counts. */
function read(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`GET ${url} answered ${response.statusCode}`));
      });
      response.resume();
    }).on("error", reject);
  });
}

async function readAll({ url, ids, count, ratePerSecond }: ReadCommand): Promise<ReadFigures> {
  const all = new LatencyHistogram();
  const lists = new LatencyHistogram();
  const details = new LatencyHistogram();
  const sent = new LatencyHistogram();
  const agent = new Agent({ keepAlive: true });
  try {
    const { seconds, lateSends } = await runOpenLoop({
      ratePerSecond,
      count,
      latency: all,
      send: async (index, intendedMs) => {
        const isList = index % 2 === 0;
        const sentMs = performance.now();
        await read(isList ? `${url}/runs?limit=50` : `${url}/runs/${ids[index % ids.length]}`, agent);
        const endMs = performance.now();
        (isList ? lists : details).record((endMs - intendedMs) * 1e6);
        sent.record((endMs - sentMs) * 1e6);
      },
    });
    const data = { all: all.toData(), lists: lists.toData(), details: details.toData(), sent: sent.toData() };
    return { seconds, lateSends, ...data };
  } finally {
    agent.destroy();
  }
}

process.on("message", (command: ReadCommand) => {
  readAll(command).then(answer, (error: Error) => answer({ error: error.message }));
});
