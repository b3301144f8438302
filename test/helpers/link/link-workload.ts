import { readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Test } from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { Random } from "../../../core/random.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import type { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import type { RecorderHarness } from "../recorder/recorder-harness.js";
import { frameBegin, frameLines, LINE_BYTES, nextId } from "./link-messages.js";

/**
 * A producer that fills one run with numbered events and one frame with seeded lines, and keeps a list: what it sent, and what was
 * acknowledged. What the service has at the end must be exactly what was sent, each once and in order.
 */
export class LinkWorkload {
  readonly runId: string;
  readonly #client: ProducerClient;
  readonly #random: Random;
  readonly #frameId = nextId();
  readonly #lines: Uint8Array[] = [];
  #lineCount = 0;
  #events = 0;
  /** Event numbers that were acknowledged. */
  readonly acknowledged = new Set<number>();
  messages = 0;
  onAcknowledged: () => void = () => {};

  constructor(client: ProducerClient, runId: string, random: Random) {
    this.#client = client;
    this.runId = runId;
    this.#random = random;
  }

  async begin(): Promise<void> {
    await this.#client.deliver({ type: "run.start", id: this.runId });
    await this.#client.deliver({ type: "step.start", run_id: this.runId, index: 1 });
    await this.#client.deliver(frameBegin(this.#frameId, this.runId));
    this.messages += 3;
  }

  /** Sends one more message; resolves when the client has taken it. */
  async step(): Promise<void> {
    this.messages++;
    const count = this.#random.integer(1, 400);
    if (this.#random.chance(0.7) || this.#lineCount + count > LIMITS.frameLines) {
      const n = this.#events++;
      const padding = "x".repeat(this.#random.integer(0, 300));
      const message = await this.#client.send({
        type: "event.add",
        run_id: this.runId,
        event_type: "n",
        data: { n, padding },
      });
      void message.acknowledged.then(() => {
        this.acknowledged.add(n);
        this.onAcknowledged();
      });
      return;
    }
    const bytes = this.#random.bytes(count * LINE_BYTES);
    await this.#client.send(frameLines(this.#frameId, this.#lineCount, count), bytes);
    this.#lines.push(bytes);
    this.#lineCount += count;
  }

  async end(): Promise<void> {
    await this.#client.deliver({ type: "frame.end", id: this.#frameId });
    await this.#client.deliver({ type: "run.finish", id: this.runId });
    this.messages += 2;
  }

  /** Compares with what the log and the capture file hold; counts what was lost and what was doubled. */
  verify(t: Test, recorder: RecorderHarness): { lost: number; doubled: number } {
    const run = recorder.run(this.runId);
    const numbers = run.eventLog.map((entry) => entry.data.n as number);
    const doubled = numbers.length - new Set(numbers).size;
    const present = new Set(numbers);
    let lost = 0;
    for (const n of this.acknowledged) if (!present.has(n)) lost++;
    t.strictSame(numbers, [...Array(this.#events).keys()], "every event once, in order");
    t.equal(this.acknowledged.size, this.#events, "all of them acknowledged");
    t.equal(run.status, "completed");
    const frame = run.frames[0];
    t.match(frame, { status: "complete", lines: this.#lineCount });
    const batches = frame?.batches ?? [];
    // A run that ended before its first line has no file.
    const path = join(recorder.directory, "captures", capturePath(this.runId, "capture"));
    const file = batches.length === 0 ? Buffer.alloc(0) : readFileSync(path);
    let mismatches = 0;
    const stored = batches.map(({ offset, lengthBytes, crc32: crc }) => {
      const bytes = file.subarray(offset, offset + lengthBytes);
      if (crc32(bytes) !== crc) mismatches++;
      return bytes;
    });
    t.equal(mismatches, 0, "every extent has its CRC");
    t.ok(Buffer.concat(stored).equals(Buffer.concat(this.#lines)), "every line once, in order, byte for byte");
    return { lost, doubled };
  }
}
