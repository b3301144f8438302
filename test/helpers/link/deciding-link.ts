import type { Extent } from "../../../core/capture/capture.js";
import type { JsonObject } from "../../../core/json/json.js";
import type { Change } from "../../../core/link/change.js";
import { decideMessage } from "../../../core/link/decide-message.js";
import { parseCellMessage } from "../../../core/link/parse-cell-message.js";
import { type Refusal, RefusedError } from "../../../core/link/refusal.js";
import type { World } from "../../../core/link/world.js";
import type { ProgramDocument } from "../../../core/run/program.js";
import { endRun } from "../../../core/run/run-end.js";
import { foldRun } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { LinkMessage } from "./fake-link-server.js";

/** Decides messages by the domain's own rules over a world in memory, as the recorder does; finalizing ends at once. */
export class DecidingLink {
  readonly runs = new Map<string, RunState>();
  readonly programs = new Map<string, ProgramDocument>();
  readonly components = new Map<string, string>();
  /** What was stored, by run and file, in order. */
  readonly payloads = new Map<string, Uint8Array[]>();
  #frameRuns = new Map<string, string>();
  #revisions = new Map<string, number>();
  #lastRunId: string | null = null;
  #timeUs = 1_000_000;

  readonly decide = (message: LinkMessage): Refusal<string> | undefined => {
    try {
      const parsed = parseCellMessage(message.body);
      const store = (runId: string, file: string): Extent => {
        const key = `${runId}/${file}`;
        const kept = this.payloads.get(key) ?? [];
        this.payloads.set(key, [...kept, message.payload]);
        const offset = kept.reduce((sum, bytes) => sum + bytes.length, 0);
        return { offset, lengthBytes: message.payload.length, crc32: 0 };
      };
      const payload = { lengthBytes: message.payload.length, crc32: () => 0, store };
      for (const change of decideMessage(this.#world(), parsed, payload, ++this.#timeUs)) this.#apply(change);
      return undefined;
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      return error.refusal;
    }
  };

  /** The bytes of a frame, batch by batch. */
  frameBatches(runId: string, frameId: string): Uint8Array[] {
    const frame = this.runs.get(runId)?.frames.find((one) => one.id === frameId);
    const all = Buffer.concat(this.payloads.get(`${runId}/captures`) ?? []);
    return (frame?.batches ?? []).map(({ offset, lengthBytes }) => all.subarray(offset, offset + lengthBytes));
  }

  #world(): World {
    const active = [...this.runs.values()].filter((run) => run.completedAtUs === null);
    return {
      cell: () => ({ kioskSerialNumber: null, unitSystem: "metric" }),
      hasComponent: (key) => this.components.has(key),
      componentCount: this.components.size,
      program: (id) => this.programs.get(id),
      programCount: this.programs.size,
      programBytes: 0,
      lastRunId: this.#lastRunId,
      activeRun: (id) => active.find((run) => run.id === id),
      activeRunCount: active.length,
      runHasEnded: (id) => (this.runs.get(id)?.completedAtUs ?? null) !== null,
      runOfFrame: (id) => this.#frameRuns.get(id),
      nextRevision: (serialNumber) => (this.#revisions.get(serialNumber) ?? 0) + 1,
    };
  }

  #apply(change: Change): void {
    if (change.kind === "cell_put") return;
    if (change.kind === "component_put") this.components.set(change.row.key, change.row.status);
    else if (change.kind === "program_put") this.programs.set(change.program.id, change.program);
    else if (
      change.kind === "component_deleted" ||
      change.kind === "program_deleted" ||
      change.kind === "producer_forgotten"
    )
      throw new Error(change.kind);
    else {
      if (change.kind === "run_created") this.#lastRunId = change.runId;
      if (change.kind === "run_created" && change.serialNumber !== null) {
        this.#revisions.set(change.serialNumber, change.revision);
      }
      if (change.kind === "frame_begun") this.#frameRuns.set(change.frame.id, change.runId);
      let run = foldRun(this.runs.get(change.runId), change, this.#timeUs);
      if (run.status === "finalizing") {
        run = endRun(run, { status: "completed", errorMessage: null, notes: [] }, ++this.#timeUs);
      }
      this.runs.set(change.runId, run);
    }
  }

  /** Contents of the messages, without ids and times: what the same seed must repeat. */
  static contentOf(messages: readonly LinkMessage[]): JsonObject[] {
    const text = JSON.stringify(
      messages.map(({ body, payload }) => ({
        ...body,
        payload: Buffer.from(payload).toString("base64").slice(0, 200),
      })),
    );
    const ids = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g;
    const times = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g;
    const traces = /"trace_id":"[0-9a-f]{32}"/g;
    return JSON.parse(text.replace(ids, "id").replace(times, "time").replace(traces, '"trace_id":"t"'));
  }
}
