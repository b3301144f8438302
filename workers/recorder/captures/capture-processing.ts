import { type ArtefactSubject, failureMessage, openArtefacts } from "../../../core/capture/artefact.js";
import { LIMITS } from "../../../core/limits.js";
import type { Change } from "../../../core/link/change.js";
import { isTerminal, type RunState } from "../../../core/run/run-state.js";
import type { Timers } from "../../../core/timers.js";
import { withRelativePaths } from "../../../storage/relative-paths.js";
import { NO_THREAD, OUT_OF_MEMORY, RESOURCE_SHORTAGE } from "../../artefacts/pool/task-failures.js";
import type { ArtefactMaker } from "./artefact-maker.js";
import { type MadeArtefact, makeArtefact } from "./make-artefact.js";

/** Recording an artefact fails while too much is waiting for the log. The artefact is then made again after this time. */
const RETRY_MS = 1_000;
/**
 * Each artefact of an ended run makes the recorder record the whole run again. So artefacts are gathered and recorded
 * together: at least one for each `DOCUMENT_BYTES_PER_ARTEFACT` of the run's document, and at least `LEAST_GATHERED`
 * (those of one frame). They are recorded earlier if they have `GATHERED_BYTES`, or if no more are to come.
 */
const DOCUMENT_BYTES_PER_ARTEFACT = 64 * 1024;
const LEAST_GATHERED = 4;
const GATHERED_BYTES = 4 * 1024 * 1024;
/**
 * With these codes the service is stopping, or nobody waits. The captures are fine, and the next start makes the
 * artefact.
 */
const NO_FAILURES: ReadonlySet<string> = new Set(["closed", "cancelled"]);

/**
 * How often a failure that may pass is tried again, after 1, 2, 4 … 32 s. That is one minute if the disk does not give
 * the bytes, and one hour if there is no memory. Then the artefact is given up: runs that wait for artefacts hold
 * memory, and in the end they hold up captures.
 */
const MOST_ATTEMPTS: ReadonlyMap<string, number> = new Map([
  ["file_system_failed", 7],
  [OUT_OF_MEMORY, 117],
]);
const LONGEST_ROUNDS = 32;
/**
 * With these codes the service lacks a resource. The artefact is tried again after the same pauses until it succeeds.
 */
const SHORTAGES: ReadonlySet<string> = new Set([RESOURCE_SHORTAGE, NO_THREAD]);

export interface CaptureProcessingOptions {
  maker: ArtefactMaker;
  timers: Timers;
  /** The present state of an active run, or of an ended run that still has artefacts to be made. */
  run(id: string): RunState | undefined;
  /** The path of the run's capture file. */
  path(runId: string): string;
  /** This part is removed from paths in failure messages: whoever reads a run's event log may be on another machine. */
  dataDirectory: string;
  /** Resolves when everything that the run has stored so far can be read. Rejects if nothing is stored any more. */
  whenWritten(runId: string): Promise<void>;
  /** False: artefacts wait for room on the disk, as captures do. */
  hasRoom(): boolean;
  /** Stores and records artefacts. Throws if they cannot be recorded now. */
  record(run: RunState, made: readonly MadeArtefact[]): void;
  /** Total size of the documents of ended runs that still have artefacts to be made. */
  endedDocumentBytes(): number;
  /** Called when `isBehind` has changed. */
  onBehind(): void;
  /**
   * Called when something is put off and nothing was before. It is called once, whatever follows and however long it
   * lasts.
   */
  report(error: unknown): void;
  /** Called when nothing that was put off is left: all of it was made or given up. */
  caughtUp(): void;
  /** Above this sum of `endedDocumentBytes`, `isBehind` is true. */
  behindBytes?: number;
}

interface ProcessedRun {
  /** Keys of artefacts that wait, are being made, or are gathered. */
  readonly open: Set<string>;
  gathered: MadeArtefact[];
  gatheredBytes: number;
}

interface Item {
  runId: string;
  of: ArtefactSubject;
  /** How often it has failed. */
  failedAttempts?: number;
}

interface PostponedItem {
  item: Item;
  /** How many rounds of the retry timer are left until it is tried again. */
  rounds: number;
}

/**
 * Lets artefacts be made from the captures of runs: every format of a frame once the frame is whole, and the CSV of a
 * series once the series is whole. This class decides what to make, the maker computes it, and the recorder stores it.
 * The runs' state says what is left to make, so only the order is kept here.
 */
export class CaptureProcessing {
  readonly #options: CaptureProcessingOptions;
  readonly #behindBytes: number;
  readonly #runs = new Map<string, ProcessedRun>();
  #queue: Item[] = [];
  /** Index of the first item in `#queue`. */
  #next = 0;
  #underWay = 0;
  /** Items that wait to be tried again. */
  #postponed: PostponedItem[] = [];
  #retry: unknown = null;
  /** Keys of artefacts that were put off and have not been made or given up since. */
  readonly #late = new Set<string>();
  #isBehind = false;
  #isResumed = false;
  #isStopped = false;

  constructor(options: CaptureProcessingOptions) {
    this.#options = options;
    this.#behindBytes = options.behindBytes ?? LIMITS.processedRunBytes;
  }

  /** True if too many ended runs are not processed yet. New captures must wait then. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Artefacts that are to be made, or being made. */
  get open(): number {
    return this.#queue.length - this.#next + this.#underWay + this.#postponed.length;
  }

  /** Called at start with the runs that earlier processes left unfinished. */
  resume(runs: Iterable<RunState>): void {
    for (const run of runs) this.#takeUp(run);
    this.#isResumed = true;
    this.proceed();
  }

  /** Checks whether changes have completed a frame or a series, ended a run, or removed its captures. */
  changed(changes: readonly Change[]): void {
    for (const change of changes) {
      switch (change.kind) {
        case "frame_ended":
        case "step_finished":
        case "run_finalizing":
        case "run_ended": {
          const run = this.#options.run(change.runId);
          if (run === undefined) this.#runs.delete(change.runId);
          else this.#takeUp(run);
        }
      }
    }
    this.#updateBehind();
    this.proceed();
  }

  /** Starts as many tasks as may run at a time. Call it when there may be room again. */
  proceed(): void {
    while (this.#underWay < this.#options.maker.concurrency && this.#mayWork && this.#options.hasRoom()) {
      const item = this.#queue[this.#next];
      if (item === undefined) return;
      this.#next++;
      if (this.#next >= 1_024 && this.#next * 2 >= this.#queue.length) {
        this.#queue = this.#queue.slice(this.#next);
        this.#next = 0;
      }
      // Retention may have removed the run's captures meanwhile.
      if (!this.#isOpen(item)) {
        this.#settled(item);
        continue;
      }
      this.#underWay++;
      void this.#make(item).finally(() => {
        this.#underWay--;
        this.proceed();
      });
    }
  }

  /** Records what has been made. Results that come later are dropped, and made again at the next start. */
  stop(): void {
    if (this.#isStopped) return;
    for (const [runId, { gathered }] of this.#runs) if (gathered.length > 0) this.#recordGathered(runId);
    this.abandon();
  }

  /** Nothing is recorded any more. */
  abandon(): void {
    this.#isStopped = true;
    this.#options.timers.clear(this.#retry);
  }

  get #mayWork(): boolean {
    return this.#isResumed && !this.#isStopped;
  }

  #takeUp(run: RunState): void {
    let known = this.#runs.get(run.id);
    for (const of of openArtefacts(run)) {
      if (known === undefined) {
        known = { open: new Set(), gathered: [], gatheredBytes: 0 };
        this.#runs.set(run.id, known);
      }
      const key = keyOf(of);
      if (known.open.has(key)) continue;
      known.open.add(key);
      this.#queue.push({ runId: run.id, of });
    }
  }

  #isOpen({ runId, of }: Item): boolean {
    return this.#runs.get(runId)?.open.has(keyOf(of)) === true;
  }

  /** Never rejects. */
  async #make(item: Item): Promise<void> {
    const { maker, run: runOf, path, whenWritten } = this.#options;
    const { runId, of } = item;
    try {
      await whenWritten(runId);
      const run = runOf(runId);
      if (this.#isStopped) return;
      if (run === undefined) return this.#settled(item);
      const made = await makeArtefact(maker, run, of, path(runId));
      if (this.#isStopped) return;
      if (made.kind === "failed") {
        if (NO_FAILURES.has(made.code)) return;
        const failedAttempts = (item.failedAttempts ?? 0) + 1;
        const isAgain = failedAttempts < (MOST_ATTEMPTS.get(made.code) ?? 0);
        if (isAgain || SHORTAGES.has(made.code)) {
          const error = new Error(`${made.code}: ${made.message}`);
          return this.#again([{ ...item, failedAttempts }], error, Math.min(2 ** (failedAttempts - 1), LONGEST_ROUNDS));
        }
      }
      this.#take(runId, made.kind === "failed" ? { ...made, message: this.#shown(made.message) } : made);
    } catch (error) {
      // The captures are not to blame for an error that was thrown.
      if (!this.#isStopped) this.#again([item], error);
    }
  }

  #shown(message: string): string {
    return failureMessage(withRelativePaths(message, this.#options.dataDirectory));
  }

  #take(runId: string, made: MadeArtefact): void {
    const processed = this.#runs.get(runId);
    const run = this.#options.run(runId);
    // Retention has removed its captures meanwhile.
    if (processed === undefined || run === undefined) {
      this.#settled({ runId, of: made.of });
      return;
    }
    processed.gathered.push(made);
    processed.gatheredBytes += made.kind === "failed" ? 0 : made.parts.reduce((sum, part) => sum + part.length, 0);
    const enough = Math.max(LEAST_GATHERED, Math.ceil(run.documentBytes / DOCUMENT_BYTES_PER_ARTEFACT));
    const { gathered, gatheredBytes, open } = processed;
    const isDue =
      !isTerminal(run.status) ||
      gathered.length >= enough ||
      gatheredBytes >= GATHERED_BYTES ||
      gathered.length === open.size;
    if (isDue) this.#recordGathered(runId);
  }

  #recordGathered(runId: string): void {
    const processed = this.#runs.get(runId);
    const run = this.#options.run(runId);
    if (processed === undefined || run === undefined) return;
    const { gathered, open } = processed;
    processed.gathered = [];
    processed.gatheredBytes = 0;
    try {
      this.#options.record(run, gathered);
      for (const { of } of gathered) {
        open.delete(keyOf(of));
        this.#settled({ runId, of });
      }
      if (open.size === 0) this.#runs.delete(runId);
      this.#updateBehind();
    } catch (error) {
      this.#again(
        gathered.map(({ of }) => ({ runId, of })),
        error,
      );
    }
  }

  #again(items: readonly Item[], error: unknown, rounds = 1): void {
    if (this.#late.size === 0) this.#options.report(error);
    for (const { runId, of } of items) this.#late.add(`${runId} ${keyOf(of)}`);
    if (this.#postponed.length === 0) this.#setRetry();
    this.#postponed.push(...items.map((item) => ({ item, rounds })));
  }

  #settled({ runId, of }: Item): void {
    if (this.#late.delete(`${runId} ${keyOf(of)}`) && this.#late.size === 0) this.#options.caughtUp();
  }

  #setRetry(): void {
    this.#retry = this.#options.timers.set(() => {
      for (const postponed of this.#postponed) postponed.rounds--;
      this.#queue.push(...this.#postponed.filter(({ rounds }) => rounds <= 0).map(({ item }) => item));
      this.#postponed = this.#postponed.filter(({ rounds }) => rounds > 0);
      if (this.#postponed.length > 0) this.#setRetry();
      this.proceed();
    }, RETRY_MS);
  }

  #updateBehind(): void {
    const bytes = this.#options.endedDocumentBytes();
    const isBehind = bytes > (this.#isBehind ? this.#behindBytes / 2 : this.#behindBytes);
    if (isBehind === this.#isBehind) return;
    this.#isBehind = isBehind;
    this.#options.onBehind();
  }
}

function keyOf(of: ArtefactSubject): string {
  return "stepIndex" in of ? String(of.stepIndex) : `${of.format} ${of.frameId}`;
}
