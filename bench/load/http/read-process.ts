/** The process of `ReadSlices`: it is sent `ReadCommand`s, and answers each with `ReadFigures` or what went wrong. */
import { type LatencyData, LatencyHistogram } from "../../harness/latency-histogram.js";
import { runOpenLoop } from "../../harness/open-loop.js";
import { HttpConnection } from "./http-connection.js";

export interface ReadCommand {
  url: string;
  /** Ids of the runs whose details are read in turn. */
  ids: readonly string[];
  count: number;
  ratePerSecond: number;
}

export interface ReadFigures {
  seconds: number;
  lateSends: number;
  /** Latencies from the intended times of sending: all reads, lists, and details. */
  all: LatencyData;
  lists: LatencyData;
  details: LatencyData;
  /** Latencies from the real time of sending: without the time for which the reader itself waited for a core. */
  sent: LatencyData;
}

export type ReadAnswer = ReadFigures | { error: string };

const answer = (message: ReadAnswer): void => {
  process.send?.(message);
};

// The benchmark has ended or failed: nobody waits for the reads that are left.
process.on("disconnect", () => process.exit());

async function readAll({ url, ids, count, ratePerSecond }: ReadCommand): Promise<ReadFigures> {
  const [all, lists, details, sent] = Array.from({ length: 4 }, () => new LatencyHistogram()) as [
    LatencyHistogram,
    LatencyHistogram,
    LatencyHistogram,
    LatencyHistogram,
  ];
  const open: HttpConnection[] = [];
  const idle: HttpConnection[] = [];
  const connect = async (): Promise<HttpConnection> => {
    const connection = await HttpConnection.open(url);
    open.push(connection);
    return connection;
  };
  try {
    const { seconds, lateSends } = await runOpenLoop({
      ratePerSecond,
      count,
      latency: all,
      send: async (index, intendedMs) => {
        const isList = index % 2 === 0;
        const sentMs = performance.now();
        const connection = idle.pop() ?? (await connect());
        await connection.get(isList ? "/runs?limit=50" : `/runs/${ids[index % ids.length]}`);
        idle.push(connection);
        const endMs = performance.now();
        (isList ? lists : details).record((endMs - intendedMs) * 1e6);
        sent.record((endMs - sentMs) * 1e6);
      },
    });
    const data = { all: all.toData(), lists: lists.toData(), details: details.toData(), sent: sent.toData() };
    return { seconds, lateSends, ...data };
  } finally {
    for (const connection of open) connection.close();
  }
}

process.on("message", (command: ReadCommand) => {
  readAll(command).then(answer, (error: Error) => answer({ error: error.message }));
});
