import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { ProducedProgram } from "../run-producer.js";

/** `head`: 51 MB/s, as a real one delivers; `flat-out`: as fast as the service takes it. */
export type HeadPace = "head" | "flat-out";

export interface CaptureHeadOptions {
  socketPath: string;
  program: ProducedProgram;
  seed: number;
}

/** What was acknowledged between `begin` and `end`. */
export interface CapturedAmount {
  megabytes: number;
  seconds: number;
}

export type HeadCommand = { kind: "begin"; pace: HeadPace } | { kind: "end" } | { kind: "close" };
export type HeadAnswer = { kind: "begun" } | { kind: "ended"; amount: CapturedAmount };

/** A producer of captures with an event loop of its own, so that its work delays no other clock of the benchmark. */
export interface CaptureHead {
  /** Resolves when lines are on their way. */
  begin(pace: HeadPace): Promise<void>;
  /** Resolves when the last batch is acknowledged and the run has been finished. */
  end(): Promise<CapturedAmount>;
  close(): Promise<void>;
}

export async function startCaptureHead(options: CaptureHeadOptions): Promise<CaptureHead> {
  const worker = new Worker(new URL("./capture-head-thread.js", import.meta.url), { workerData: options });
  const exited = new Promise<void>((resolve) => worker.on("exit", () => resolve()));
  await once(worker, "online");
  // `once` rejects when the thread fails.
  const ask = async (command: HeadCommand): Promise<HeadAnswer> => {
    const answered = once(worker, "message");
    worker.postMessage(command);
    const [answer] = (await answered) as [HeadAnswer];
    return answer;
  };
  return {
    async begin(pace) {
      await ask({ kind: "begin", pace });
    },
    async end() {
      const answer = await ask({ kind: "end" });
      if (answer.kind !== "ended") throw new Error(`the capture head answered ${answer.kind}`);
      return answer.amount;
    },
    async close() {
      worker.postMessage({ kind: "close" } satisfies HeadCommand);
      await exited;
    },
  };
}
