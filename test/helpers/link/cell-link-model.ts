import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import type { Defect, QualityCheck } from "../../../core/run/quality.js";
import type { RunState } from "../../../core/run/run-state.js";

type Status = "pending" | "running" | "finalizing" | "completed" | "failed" | "cancelled";

export interface ModelRun {
  status: Status;
  serial: string | null;
  revision: number;
  steps: string[];
  checks: QualityCheck[];
  defects: Defect[];
  jobs: Map<string, string>;
  frames: Map<string, { status: string; lines: number; declared: number }>;
  ended: string[];
  series: Map<number, { channels: number; appends: number; whole: boolean }>;
  files: string[];
  events: string[];
  error: string | null;
}

const ALLOWED: Record<Status, string> = {
  pending: "run.start run.cancel run.fail event.add file.put",
  running:
    "step.start step.finish frame.begin frame.lines frame.end series.append check.add defect.add job.start job.finish " +
    "file.put event.add run.finish run.fail run.cancel",
  finalizing: "frame.lines frame.end job.finish file.put event.add run.fail",
  completed: "",
  failed: "",
  cancelled: "",
};

type CaptureMessage = Extract<CellMessage, { type: `frame.${string}` | "series.append" }>;

/** The cell link as plain maps and tables, written from the contract and from nothing else. */
export class CellLinkModel {
  readonly runs = new Map<string, ModelRun>();
  readonly programs = new Map<string, number>();
  readonly components = new Set<string>();
  readonly frames = new Map<string, string>();
  readonly serials = new Map<string, number>();

  /** Every reason to refuse the message; it is applied when there is none. */
  take(message: CellMessage, payloadBytes: number): string[] {
    const faults: string[] = [];
    const carries = ["frame.lines", "series.append", "file.put"].includes(message.type);
    if (!carries && payloadBytes > 0) faults.push("size_mismatch");
    let effect = (): void => {};
    const run = this.#runOf(message, faults);
    switch (message.type) {
      case "program.put":
        effect = () =>
          this.programs.set(message.program.id, message.program.steps.filter((s) => s.enabled !== false).length);
        break;
      case "program.delete":
        if (!this.programs.has(message.id)) faults.push("not_found");
        effect = () => this.programs.delete(message.id);
        break;
      case "component.put":
        if (message.key === "log") faults.push("name_taken");
        effect = () => this.components.add(message.key);
        break;
      case "component.delete":
        if (!this.components.has(message.key)) faults.push("not_found");
        effect = () => this.components.delete(message.key);
        break;
      case "run.create": {
        if (this.runs.has(message.id)) faults.push("already_exists");
        else if ([...this.runs.keys()].some((id) => id >= message.id)) faults.push("id_out_of_order");
        const enabled = this.programs.get(message.program_id);
        if (enabled === undefined) faults.push("not_found");
        const serial = message.serial_number ?? null;
        effect = () => {
          const revision = serial === null ? 1 : (this.serials.get(serial) ?? 0) + 1;
          if (serial !== null) this.serials.set(serial, revision);
          this.runs.set(message.id, {
            ...{ status: "pending", serial, revision, error: null },
            steps: Array(message.steps?.length ?? enabled).fill("pending"),
            ...{ checks: [], defects: [], jobs: new Map(), frames: new Map(), ended: [], series: new Map() },
            ...{ files: [], events: [] },
          });
        };
        break;
      }
      default:
        if (run !== undefined) effect = this.#takeAboutRun(run, message, payloadBytes, faults);
    }
    if (faults.length === 0) effect();
    return faults;
  }

  #runOf(message: CellMessage, faults: string[]): ModelRun | undefined {
    if (/^(cell|component|program)/.test(message.type) || message.type === "run.create") return undefined;
    let id = ("run_id" in message ? message.run_id : (message as { id: string }).id) as string | undefined;
    if (message.type === "frame.lines" || message.type === "frame.end") id = this.frames.get(message.id);
    const run = id === undefined ? undefined : this.runs.get(id);
    if (run === undefined) faults.push("not_found");
    else if (!ALLOWED[run.status].split(" ").includes(message.type)) faults.push("illegal_transition");
    return run;
  }

  #takeAboutRun(run: ModelRun, message: CellMessage, payloadBytes: number, faults: string[]): () => void {
    switch (message.type) {
      case "run.start":
        return () => {
          run.status = "running";
        };
      case "run.finish":
        return () => {
          run.status = "finalizing";
          for (const series of run.series.values()) series.whole = true;
        };
      case "run.fail":
        return () => this.end(run, "failed", message.error_message);
      case "run.cancel":
        return () => this.end(run, "cancelled", message.error_message ?? null);
      case "step.start":
        this.#step(run, message.index, ["pending"], faults);
        return () => {
          run.steps[message.index - 1] = "running";
        };
      case "step.finish": {
        this.#step(run, message.index, [message.status === "skipped" ? "pending" : "running"], faults);
        const result = (message.result ?? {}) as { checks?: QualityCheck[]; defects?: Defect[] };
        return () => {
          run.steps[message.index - 1] = message.status;
          run.checks.push(...(result.checks ?? []));
          run.defects.push(...(result.defects ?? []));
          const series = run.series.get(message.index);
          if (series !== undefined) series.whole = true;
        };
      }
      case "frame.begin":
      case "frame.lines":
      case "frame.end":
      case "series.append":
        return this.#takeCapture(run, message, payloadBytes, faults);
      case "check.add":
        return () => run.checks.push(message.check);
      case "defect.add":
        return () => run.defects.push(message.defect);
      case "job.start":
        if (run.jobs.has(message.id)) faults.push("already_exists");
        return () => run.jobs.set(message.id, "running");
      case "job.finish":
        if (!run.jobs.has(message.id)) faults.push("not_found");
        else if (run.jobs.get(message.id) !== "running") faults.push("illegal_transition");
        return () => {
          run.jobs.set(message.id, message.status);
          if (message.status === "failed") return;
          run.checks.push(...(message.checks ?? []));
          run.defects.push(...(message.defects ?? []));
        };
      case "file.put":
        if (message.name.includes("/")) faults.push("invalid_message");
        if (run.files.includes(message.name) || message.name.endsWith("cl_sweep.csv")) faults.push("name_taken");
        if (message.step_index && run.steps[message.step_index - 1] === undefined) faults.push("not_found");
        return () => run.files.push(message.name);
      case "event.add":
        return () => run.events.push(message.event_type);
      default:
        throw new Error(`not about a run: ${message.type}`);
    }
  }

  #takeCapture(run: ModelRun, message: CaptureMessage, payloadBytes: number, faults: string[]): () => void {
    switch (message.type) {
      case "frame.begin":
        if (this.frames.has(message.id)) faults.push("already_exists");
        if (run.steps[message.step_index - 1] === undefined) faults.push("not_found");
        return () => {
          this.frames.set(message.id, message.run_id);
          run.frames.set(message.id, { status: "open", lines: 0, declared: message.height });
        };
      case "frame.lines": {
        const frame = run.frames.get(message.id);
        if (frame === undefined) return () => faults.push("not_found");
        if (frame.status !== "open") faults.push("illegal_transition");
        if (message.first_line !== frame.lines) faults.push("out_of_sequence");
        if (frame.declared > 0 && frame.lines + message.line_count > frame.declared) faults.push("too_large");
        // Three points of two bytes height and one byte luminance.
        if (payloadBytes !== message.line_count * 9) faults.push("size_mismatch");
        return () => {
          frame.lines += message.line_count;
        };
      }
      case "frame.end": {
        const frame = run.frames.get(message.id);
        if (frame === undefined) return () => faults.push("not_found");
        if (frame.status !== "open") faults.push("illegal_transition");
        if (frame.declared > 0 && frame.lines !== frame.declared) faults.push("size_mismatch");
        return () => {
          frame.status = "complete";
          run.ended.push(message.id);
        };
      }
      case "series.append": {
        this.#step(run, message.step_index, ["pending", "running"], faults);
        const series = run.series.get(message.step_index);
        if (series !== undefined && series.channels !== message.channels) faults.push("size_mismatch");
        if (payloadBytes === 0 || payloadBytes % (message.channels * 4) !== 0) faults.push("size_mismatch");
        return () => {
          if (series === undefined)
            run.series.set(message.step_index, { channels: message.channels, appends: 1, whole: false });
          else series.appends++;
        };
      }
    }
  }

  #step(run: ModelRun, index: number, from: string[], faults: string[]): void {
    const status = run.steps[index - 1];
    if (status === undefined) faults.push("not_found");
    else if (!from.includes(status)) faults.push("illegal_transition");
  }

  end(run: ModelRun, status: "completed" | "failed" | "cancelled", error: string | null): void {
    run.status = status;
    run.error = error;
    run.steps = run.steps.map((step) => {
      if (step === "running") return status === "failed" ? "failed" : "cancelled";
      return step === "pending" ? "cancelled" : step;
    });
    for (const [id, frame] of run.frames) {
      if (frame.status !== "open") continue;
      frame.status = "incomplete";
      run.ended.push(id);
    }
    for (const series of run.series.values()) series.whole = true;
  }
}

/** What of a run the model knows too. */
export function asModel(run: RunState): unknown {
  return {
    ...{ status: run.status, serial: run.serialNumber, revision: run.revision, error: run.errorMessage },
    steps: run.steps.map((step) => step.status),
    ...{ checks: run.checks, defects: run.defects },
    jobs: new Map(run.jobs.map((job) => [job.id, job.status])),
    frames: new Map(
      run.frames.map((frame) => [
        frame.id,
        { status: frame.status, lines: frame.lines, declared: frame.declaredLines },
      ]),
    ),
    ended: run.frameIds,
    series: new Map(
      run.series.map(({ stepIndex, channels, appends, completedAtUs }) => [
        stepIndex,
        { channels, appends: appends.length, whole: completedAtUs !== null },
      ]),
    ),
    files: run.files.map((file) => file.name),
    events: run.eventLog.map((entry) => entry.eventType),
  };
}
