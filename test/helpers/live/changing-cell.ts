import type { JsonObject } from "../../../core/json/json.js";
import { RecordedCell } from "../captures/recorded-cell.js";

export const PROGRAMS = ["019b76da-a800-7000-8000-000000000001", "019b76da-a800-7000-8000-000000000002"] as const;
const START_US = Date.UTC(2026, 0, 31, 12) * 1000;

/** A cell whose runs a test changes, each change at a later time. */
export class ChangingCell extends RecordedCell {
  timeUs = START_US;
  readonly active: string[] = [];
  #created = 0;

  tick(): number {
    this.timeUs += 1000;
    return this.timeUs;
  }

  create(programId: string = PROGRAMS[0], serialNumber: string | null = null, metadata: object | null = null): string {
    const runId = `019c13ec-${(this.#created++).toString(16).padStart(4, "0")}-7000-8000-000000000000`;
    const fields = { programName: "p", robotId: null, serialNumber, revision: 1, traceId: null, steps: [] };
    const change = { kind: "run_created", runId, programId, metadata: metadata as never, ...fields } as const;
    this.apply(this.tick(), change);
    this.active.push(runId);
    return runId;
  }

  start(runId: string): void {
    this.apply(this.tick(), { kind: "run_started", runId });
  }

  note(runId: string, data: JsonObject = {}): void {
    this.apply(this.tick(), { kind: "event_added", runId, entry: { eventType: "e", data, timestampUs: null } });
  }

  finish(runId: string): void {
    this.apply(this.tick(), { kind: "run_finalizing", runId, summary: null, results: null });
  }

  endAs(runId: string, status: "completed" | "failed" | "cancelled"): void {
    this.end(this.tick(), runId, { status, errorMessage: status === "failed" ? "x" : null, notes: [] });
    this.active.splice(this.active.indexOf(runId), 1);
  }
}
