import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { BenchmarkContext } from "../../harness/benchmark.js";
import type { StreamAnswer, StreamCommand } from "./stream-process.js";

/** Streams of changed runs, read by another process as fast as they come. */
export class StreamClients {
  readonly #child: ChildProcess;
  readonly #url: string;

  static start(context: Pick<BenchmarkContext, "onClose">, url: string): StreamClients {
    const clients = new StreamClients(url);
    context.onClose(() => clients.#child.kill());
    return clients;
  }

  private constructor(url: string) {
    this.#url = url;
    this.#child = fork(new URL("./stream-process.js", import.meta.url));
  }

  async open(count: number): Promise<void> {
    await this.#send({ kind: "open", url: this.#url, count });
  }

  /** When each stream got its event of this number, counted from 1, in milliseconds since the Unix epoch. */
  eventAtAll(events: number): Promise<number[]> {
    return this.#send({ kind: "await", events });
  }

  async close(): Promise<void> {
    await this.#send({ kind: "close" });
  }

  async #send(command: StreamCommand): Promise<number[]> {
    const answered = once(this.#child, "message") as Promise<[StreamAnswer]>;
    this.#child.send(command);
    const [answer] = await answered;
    if ("error" in answer) throw new Error(answer.error);
    return answer.arrivalsMs;
  }
}
