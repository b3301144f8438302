import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface PlainPosts {
  /** Posts `each` bodies to every receiver, one after the other to each receiver, to all receivers at the same time. Resolves with the seconds it took. */
  post(body: string, each: number): Promise<number>;
  close(): Promise<void>;
}

export interface PostCommand {
  body: string;
  each: number;
}

/** The peer of the webhook benchmarks: a thread with undici and a loop that posts the same bytes to the same receivers, and nothing else. */
export function startPlainPosts(urls: readonly string[]): PlainPosts {
  const worker = new Worker(new URL("./plain-posts-thread.js", import.meta.url), { workerData: urls });
  return {
    async post(body, each) {
      const answered = once(worker, "message");
      worker.postMessage({ body, each } satisfies PostCommand);
      const [seconds] = (await answered) as [number];
      return seconds;
    },
    async close() {
      await worker.terminate();
    },
  };
}
