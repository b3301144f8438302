import { generateUuidV7 } from "../../../../core/identifiers.js";
import type { CellMessage } from "../../../../core/link/cell-message-schema.js";
import type { Random } from "../../../../core/random.js";
import { CellLinkModel, type ModelRun } from "../../link/cell-link-model.js";
import { frameBegin } from "../../link/cell-messages.js";
import type { SentMessage } from "../../link/simulated-producer.js";

const NO_PAYLOAD = new Uint8Array(0);
const DAY_MS = 86_400_000;
/** Bytes of a line of `frameBegin`. */
const LINE_BYTES = 9;
const MOST_ACTIVE_RUNS = 3;

/**
 * Random messages of a cell, mostly such as have an effect: runs with frames, series, files and jobs that several producers write to at
 * once, changes of the cell, and now and then what must be refused. Run ids go through the months.
 */
export class StoreWorkload {
  readonly #random: Random;
  /** How things stand if everything is taken in the order in which it was made. */
  readonly #intended = new CellLinkModel();
  #lastId: string | null = null;
  #idTimeMs = 1_790_000_000_000;
  #count = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** The producer's next message. Only the controller creates runs, so that their ids ascend. */
  next(isController: boolean): SentMessage {
    const [message, payloadBytes] = this.#message(isController);
    const payload = payloadBytes === 0 ? NO_PAYLOAD : this.#pattern(payloadBytes);
    this.#intended.take(message, payloadBytes);
    // The service ends a finalizing run at some time; to what is sent then it is as good as over.
    if (message.type === "run.finish") {
      const run = this.#intended.runs.get(message.id);
      if (run?.status === "finalizing" && this.#random.chance(0.7)) this.#intended.end(run, "completed", null);
    }
    return { message, payload };
  }

  /** Bytes that no other message has at any place. */
  #pattern(lengthBytes: number): Uint8Array {
    const bytes = new Uint8Array(lengthBytes);
    const start = ++this.#count * 2_654_435_761;
    for (let at = 0; at < lengthBytes; at++) bytes[at] = (start + at * 40_503) >>> 11;
    return bytes;
  }

  #id(): string {
    this.#idTimeMs += this.#random.integer(0, 3);
    this.#lastId = generateUuidV7(this.#idTimeMs, this.#random.bytes(10), this.#lastId);
    return this.#lastId;
  }

  #message(isController: boolean): [CellMessage, payloadBytes: number] {
    const random = this.#random;
    const { programs, runs } = this.#intended;
    if (programs.size === 0) return [this.#program(), 0];
    if (random.chance(0.06)) return [this.#cellMessage(), 0];
    const active = [...runs].filter(([, run]) => /pending|running|finalizing/.test(run.status));
    const mayCreate = isController && active.length < MOST_ACTIVE_RUNS;
    if (active.length === 0 ? isController : mayCreate && random.chance(0.08)) return [this.#create(), 0];
    // Also of a run that has ended: to be refused.
    const [runId, run] = active.length > 0 && !random.chance(0.03) ? random.pick(active) : ([...runs].at(-1) ?? []);
    if (runId === undefined || run === undefined) return [this.#cellMessage(), 0];
    if (run.status === "pending" && random.chance(0.8)) return [{ type: "run.start", id: runId }, 0];
    if (run.status === "finalizing") return this.#aboutFinalizing(runId, run);
    return this.#aboutRun(runId, run, isController);
  }

  /** What is open is closed, until nothing is. */
  #aboutFinalizing(run_id: string, run: ModelRun): [CellMessage, payloadBytes: number] {
    const [open] = [...run.frames].filter(([, frame]) => frame.status === "open");
    if (open !== undefined) return [{ type: "frame.end", id: open[0] }, 0];
    this.#intended.end(run, "completed", null);
    return [{ type: "event.add", run_id, event_type: `e${++this.#count}`, data: {} }, 0];
  }

  #program(): CellMessage {
    const steps = Array.from({ length: 3 }, () => ({ type: "wait" as const }));
    return { type: "program.put", program: { id: this.#id(), name: "P", status: "active", steps } };
  }

  #cellMessage(): CellMessage {
    const random = this.#random;
    const kind = random.integer(0, 5);
    if (kind === 0) return this.#program();
    if (kind === 1) return { type: "component.delete", key: random.pick(["plc", "r1"]) };
    if (kind === 2) return { type: "cell.put", kiosk_serial_number: random.pick([null, "K"]) };
    return { type: "component.put", key: random.pick(["plc", "r1", "log"]), status: "healthy" };
  }

  #create(): CellMessage {
    const random = this.#random;
    if (random.chance(0.3)) this.#idTimeMs += random.integer(1, 40) * DAY_MS;
    const program_id = random.pick([...this.#intended.programs.keys()]);
    const serial_number = random.pick([null, "A", "B", "C"]);
    return { type: "run.create", id: this.#id(), program_id, serial_number, metadata: { n: random.integer(1, 9) } };
  }

  #aboutRun(run_id: string, run: ModelRun, isController: boolean): [CellMessage, payloadBytes: number] {
    const random = this.#random;
    const frames = [...run.frames].filter(([, frame]) => frame.status === "open");
    const at = random.integer(0, 99);
    if (frames.length > 0 && at < 45) {
      const [id, frame] = random.pick(frames);
      const line_count = random.pick([1, 2, 7, 60, 200]);
      const isOff = random.chance(0.03);
      const first_line = frame.lines + (isOff ? 1 : 0);
      return [{ type: "frame.lines", id, first_line, line_count }, line_count * LINE_BYTES];
    }
    if (frames.length > 0 && at < 55) return [{ type: "frame.end", id: random.pick(frames)[0] }, 0];
    if (at < 62 && frames.length < 3)
      return [frameBegin({ id: this.#id(), run_id, step_index: random.integer(1, 3), height: 0 }), 0];
    if (at < 70) {
      const series = { step_index: random.integer(1, 3), channels: 2, dtype: "f32" as const };
      const times = { first_timestamp: "2026-11-20T19:07:00Z", sample_period_us: 100 };
      return [{ type: "series.append", run_id, ...series, ...times }, 8 * random.pick([1, 3, 100])];
    }
    if (at < 78) {
      const content_type = random.pick(["image/png", "application/pdf"]);
      // Now and then a name that is taken.
      const name = `f${random.chance(0.1) ? 1 : ++this.#count}`;
      return [{ type: "file.put", run_id, name, content_type }, random.pick([0, 9, 700, 1_500])];
    }
    if (at < 82) return [{ type: "step.start", run_id, index: random.integer(1, 4) }, 0];
    if (at < 85) return [{ type: "step.finish", run_id, index: random.integer(1, 3), status: "completed" }, 0];
    if (at < 87)
      return [{ type: "check.add", run_id, check: { name: "c", status: "passed", value: random.next() } }, 0];
    if (at < 90 || !isController) {
      return [{ type: "event.add", run_id, event_type: `e${++this.#count}`, data: { text: "x".repeat(at) } }, 0];
    }
    if (at < 98) return [{ type: "run.finish", id: run_id }, 0];
    if (at === 98) return [{ type: "run.fail", id: run_id, error_message: "collision" }, 0];
    return [{ type: "run.cancel", id: run_id }, 0];
  }
}
