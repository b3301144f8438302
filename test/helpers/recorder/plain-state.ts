import type { Extent } from "../../../core/capture/capture.js";
import type { ComponentRow } from "../../../core/health.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import type { CellIdentity, Change } from "../../../core/link/change.js";
import { decideMessage } from "../../../core/link/decide-message.js";
import type { DecisionContext } from "../../../core/link/decision-context.js";
import { type Refusal, RefusedError } from "../../../core/link/refusal.js";
import type { ProgramDocument } from "../../../core/run/program.js";
import { endRun } from "../../../core/run/run-end.js";
import { foldRun } from "../../../core/run/run-fold.js";
import { isTerminal, type RunState, type StoredKind } from "../../../core/run/run-state.js";

/** A message decided: its changes at its time, or a refusal. */
export type Decision = { changes: Change[]; timeUs: number } | { refusal: Refusal };

/** The state as plain maps: every accepted message applied at once, nothing durable. Time moves on by a second a message. */
export class PlainState implements DecisionContext {
  timeUs = 1_795_200_000_000_000;
  readonly runs = new Map<string, RunState>();
  readonly programs = new Map<string, ProgramDocument>();
  readonly components = new Map<string, ComponentRow>();
  readonly frames = new Map<string, string>();
  readonly revisions = new Map<string, number>();
  /** Bytes stored so far, per run and file. */
  readonly stored = new Map<string, number>();
  identity: CellIdentity = { kioskSerialNumber: null, unitSystem: "metric" };
  /** Stand in for a state with that many; what is in the maps comes on top. */
  moreActiveRuns = 0;
  morePrograms = 0;
  programBytes = 0;
  moreComponents = 0;

  cell(): CellIdentity {
    return this.identity;
  }
  hasComponent(key: string): boolean {
    return this.components.has(key);
  }
  get componentCount(): number {
    return this.components.size + this.moreComponents;
  }
  program(id: string): ProgramDocument | undefined {
    return this.programs.get(id);
  }
  get programCount(): number {
    return this.programs.size + this.morePrograms;
  }
  get lastRunId(): string | null {
    return [...this.runs.keys()].sort().at(-1) ?? null;
  }
  activeRun(id: string): RunState | undefined {
    const run = this.runs.get(id);
    return run === undefined || isTerminal(run.status) ? undefined : run;
  }
  get activeRunCount(): number {
    return [...this.runs.values()].filter((run) => !isTerminal(run.status)).length + this.moreActiveRuns;
  }
  runHasEnded(id: string): boolean {
    const run = this.runs.get(id);
    return run !== undefined && isTerminal(run.status);
  }
  runOfFrame(frameId: string): string | undefined {
    return this.frames.get(frameId);
  }
  nextRevision(serialNumber: string): number {
    return (this.revisions.get(serialNumber) ?? 0) + 1;
  }

  /** Decides a message and, when it is accepted, applies it. */
  send(message: CellMessage, payloadBytes = 0): Decision {
    this.timeUs += 1_000_000;
    let calls = 0;
    const store = (runId: string, file: StoredKind): Extent => {
      if (++calls > 1) throw new Error("a payload is stored at most once");
      const key = `${runId} ${file}`;
      const offset = this.stored.get(key) ?? 0;
      this.stored.set(key, offset + payloadBytes);
      return { offset, lengthBytes: payloadBytes, crc32: offset + 1 };
    };
    try {
      const changes = decideMessage(
        this,
        message,
        { lengthBytes: payloadBytes, crc32: (lengthBytes: number, start: number) => start + lengthBytes, store },
        this.timeUs,
      );
      this.apply(changes, this.timeUs);
      return { changes, timeUs: this.timeUs };
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      if (calls !== 0) throw new Error(`${message.type} was refused after its payload was stored`);
      return { refusal: error.refusal };
    }
  }

  /** What the service does by itself when finalizing is over. */
  complete(runId: string): Decision {
    this.timeUs += 1_000_000;
    const run = this.activeRun(runId);
    if (run === undefined) throw new Error(`${runId} is not active`);
    const ended = endRun(run, { status: "completed", errorMessage: null, notes: [] }, this.timeUs);
    const changes: Change[] = [{ kind: "run_ended", runId, run: ended }];
    this.apply(changes, this.timeUs);
    return { changes, timeUs: this.timeUs };
  }

  apply(changes: readonly Change[], timeUs: number): void {
    for (const change of changes) {
      switch (change.kind) {
        case "cell_put":
          this.identity = change.cell;
          break;
        case "component_put":
          this.components.set(change.row.key, change.row);
          break;
        case "component_deleted":
          this.components.delete(change.key);
          break;
        case "program_put":
          this.programs.set(change.program.id, change.program);
          break;
        case "program_deleted":
          this.programs.delete(change.id);
          break;
        case "producer_forgotten":
          break;
        default: {
          const run = foldRun(this.runs.get(change.runId), change, timeUs);
          this.runs.set(change.runId, run);
          if (change.kind === "frame_begun") this.frames.set(change.frame.id, run.id);
          if (change.kind === "run_created" && run.serialNumber !== null)
            this.revisions.set(run.serialNumber, run.revision);
        }
      }
    }
  }
}
