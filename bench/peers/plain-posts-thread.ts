/** The thread of `startPlainPosts`: `workerData` is the receivers' addresses, its messages are `PostCommand` and seconds. */
import { parentPort, workerData } from "node:worker_threads";
import { Agent, request } from "undici";
import type { PostCommand } from "./plain-posts.js";

const port = parentPort;
if (port === null) throw new Error("plain-posts-thread is a worker's entry");
const urls = workerData as string[];
const dispatcher = new Agent({ pipelining: 1 });
const headers = { "Content-Type": "application/json" };

port.on("message", async ({ body, each }: PostCommand) => {
  const bytes = Buffer.from(body);
  const startMs = performance.now();
  const toReceiver = async (url: string): Promise<void> => {
    for (let i = 0; i < each; i++) {
      const answer = await request(url, { method: "POST", headers, body: bytes, dispatcher });
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`a receiver answered ${answer.statusCode}`);
    }
  };
  await Promise.all(urls.map(toReceiver));
  port.postMessage((performance.now() - startMs) / 1000);
});
