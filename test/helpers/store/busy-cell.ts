import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { frameBegin, frameLines, LINE_BYTES, nextId, PROGRAM_ID, programPut } from "../link/link-messages.js";

/** A producer that plays one run with captures after the other, without a pause, through any restart of the service. */
export class BusyCell {
  /** Runs of which every message was acknowledged, in order. */
  readonly acknowledgedRuns: string[] = [];
  readonly #producer: ProducerClient;
  #isOver = false;
  #running: Promise<void> | undefined;
  #onRun = (): void => {};

  constructor(socketPath: string) {
    this.#producer = new ProducerClient({
      address: { path: socketPath },
      producer: "busy",
      reconnectFirstMs: 2,
      reconnectLongestMs: 20,
    });
  }

  begin(): void {
    this.#running = this.#play();
  }

  /** Resolves when so many more runs were acknowledged. */
  async untilMore(runs: number): Promise<void> {
    const target = this.acknowledgedRuns.length + runs;
    await new Promise<void>((resolve) => {
      this.#onRun = () => {
        if (this.acknowledgedRuns.length >= target) resolve();
      };
    });
  }

  /** Ends the run that it plays. `begin` goes on. */
  async rest(): Promise<void> {
    this.#isOver = true;
    await this.#running;
    this.#isOver = false;
  }

  async stop(): Promise<void> {
    await this.rest();
    await this.#producer.close();
  }

  /** Ends it in any case. */
  destroy(): void {
    this.#isOver = true;
    this.#producer.destroy();
  }

  async #play(): Promise<void> {
    await this.#producer.deliver(programPut());
    while (!this.#isOver) {
      const id = nextId();
      const frame = nextId();
      const messages: [object, Uint8Array?][] = [
        [{ type: "run.create", id, program_id: PROGRAM_ID }],
        [{ type: "run.start", id }],
        [frameBegin(frame, id)],
        [frameLines(frame, 0, 20), new Uint8Array(20 * LINE_BYTES).fill(7)],
        [{ type: "frame.end", id: frame }],
        [{ type: "file.put", run_id: id, name: "report.pdf", content_type: "application/pdf" }, Buffer.from("%PDF")],
        [{ type: "run.finish", id }],
      ];
      await Promise.all(messages.map(([body, payload]) => this.#producer.deliver(body, payload)));
      this.acknowledgedRuns.push(id);
      this.#onRun();
    }
  }
}
