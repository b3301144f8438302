/**
 * The states of the runs that have not ended, folded from their records' bodies.
 *
 * While a store is being opened, bodies are only kept. Most of these runs end a little later in the log. Their consolidated record then replaces the
 * bodies, and none has to be decoded. From `foldEagerly` on, and when somebody asks for a run, bodies are folded.
 */
import type { RunChange } from "../../core/link/change.js";
import { type QualityCheck, type ReportStatus, reportStatus, worseStatus } from "../../core/run/quality.js";
import { foldRun } from "../../core/run/run-fold.js";
import type { RunState } from "../../core/run/run-state.js";
import type { LogRecord } from "../log/committed-batch.js";
import { decodeChanges } from "../records/change-record.js";

/** What a hub shows of a run instead of what its records say. */
export type HubFields = Required<Pick<RunState, "cell" | "updatedAtUs">>;

type RunRecord = Pick<LogRecord, "type" | "timeUs" | "body"> & { hub?: HubFields | undefined };

interface ActiveRun {
  /** Undefined until the first record, run_created, is folded. */
  state: RunState | undefined;
  pending: RunRecord[];
  /** The status over the first `judgedChecks` checks. It is kept because a run may have thousands of checks, each with a record of its own. */
  qualityStatus: ReportStatus | null;
  judgedChecks: number;
}

function newRun(pending: RunRecord[]): ActiveRun {
  return { state: undefined, pending, qualityStatus: null, judgedChecks: 0 };
}

export class ActiveRuns {
  readonly #runs = new Map<string, ActiveRun>();
  #eager = false;

  create(id: string, record: RunRecord, hub?: HubFields): void {
    this.#runs.set(id, newRun([]));
    this.add(id, record, hub);
  }

  /** Takes the next record of a run, unless it was not created. The body is copied if it is not folded at once. */
  add(id: string, { type, timeUs, body }: RunRecord, hub?: HubFields): void {
    const run = this.#runs.get(id);
    if (run === undefined) return;
    if (this.#eager) {
      this.#fold(run, { type, timeUs, body, hub });
    } else {
      run.pending.push({ type, timeUs, body: body.slice(), hub });
    }
  }

  delete(id: string): void {
    this.#runs.delete(id);
  }

  /**
   * The state as of the last record. It changes in place with the next one.
   *
   * @throws Error for a run that was not created, or was deleted
   */
  state(id: string): RunState {
    const run = this.#runs.get(id);
    if (run !== undefined) this.#foldPending(run);
    if (run?.state === undefined) throw new Error(`run ${id} is not active`);
    return run.state;
  }

  /** Status of the run's quality report as of the last folded record; null without a report, and for an unknown run. */
  qualityStatus(id: string): ReportStatus | null {
    return this.#runs.get(id)?.qualityStatus ?? null;
  }

  ids(): Iterable<string> {
    return this.#runs.keys();
  }

  /** Folds the kept records. From now on records are folded as they come. */
  foldEagerly(): void {
    this.#eager = true;
    for (const run of this.#runs.values()) this.#foldPending(run);
  }

  #foldPending(run: ActiveRun): void {
    const { pending } = run;
    run.pending = [];
    for (const record of pending) this.#fold(run, record);
  }

  #fold(run: ActiveRun, record: RunRecord): void {
    for (const change of decodeChanges(record.type, record.body)) {
      try {
        run.state = foldRun(run.state, change as RunChange, record.timeUs);
        judge(run, run.state.checks);
      } catch {
        // What the change needs is missing. Only a damaged log has such records, and recovery reports its damage: what is left of the run is shown.
      }
    }
    if (run.state !== undefined) Object.assign(run.state, record.hub);
  }
}

function judge(run: ActiveRun, checks: readonly QualityCheck[]): void {
  const added = checks.slice(run.judgedChecks);
  if (added.length === 0) return;
  run.judgedChecks = checks.length;
  run.qualityStatus = worseStatus(run.qualityStatus, reportStatus(added));
}
