import { type ArtefactSubject, failureMessage, openArtefacts } from "../../../core/capture/artefact.js";
import { LIMITS } from "../../../core/limits.js";
import type { Change } from "../../../core/link/change.js";
import { isTerminal, type RunState } from "../../../core/run/run-state.js";
import type { Timers } from "../../../core/timers.js";
import { withRelativePaths } from "../../../storage/relative-paths.js";
import { NO_THREAD, OUT_OF_MEMORY, RESOURCE_SHORTAGE } from "../../artefacts/pool/task-failures.js";
import type { ArtefactMaker } from "./artefact-maker.js";
import { type MadeArtefact, makeArtefact } from "./make-artefact.js";

/** When what was made could not be recorded (more is waiting than the log may hold), it is made again. */
const RETRY_MS = 1_000;
/**
 * A run that has ended is recorded as a whole once more for what was made since. So its artefacts are gathered: one for each so many bytes
 * of its document, four at least (one frame's), until they are bytes of their own to speak of, or nothing more is to come.
 */
const DOCUMENT_BYTES_PER_ARTEFACT = 64 * 1024;
const LEAST_GATHERED = 4;
const GATHERED_BYTES = 4 * 1024 * 1024;
/** The service is ending, or nobody waits: nothing is wrong with the captures, and the next start makes it. */
const NO_FAILURES: ReadonlySet<string> = new Set(["closed", "cancelled"]);

/**
 * May pass, and is tried again after 1, 2, 4 … 32 s, so often at most: for a minute what the disk does not give, for an hour what there is no memory
 * for. Then the artefact is given up like one that cannot be made: runs that wait for theirs hold memory, and in the end captures.
 */
const MOST_ATTEMPTS: ReadonlyMap<string, number> = new Map([
  ["file_system_failed", 7],
  [OUT_OF_MEMORY, 117],
]);
const LONGEST_ROUNDS = 32;
/** The service lacks what it takes, and the bytes are not to blame: tried again at the same distances until it succeeds. */
const SHORTAGES: ReadonlySet<string> = new Set([RESOURCE_SHORTAGE, NO_THREAD]);

export interface CaptureProcessingOptions {
  maker: ArtefactMaker;
  timers: Timers;
  /** A run that goes on, or one that has ended with something left to be made; as it is now. */
  run(id: string): RunState | undefined;
  /** The path of the run's capture file. */
  path(runId: string): string;
  /** Failures are told without it: whoever reads a run's event log may be elsewhere. */
  dataDirectory: string;
  /** Resolves when everything that the run has stored so far can be read; rejects when nothing is stored any more. */
  whenWritten(runId: string): Promise<void>;
  /** False: what is to be made waits, as captures do. */
  hasRoom(): boolean;
  /** Stores and records it. Throws when it cannot be recorded now. */
  record(run: RunState, made: readonly MadeArtefact[]): void;
  /** The documents of all ended runs that something is left to be made of. */
  endedDocumentBytes(): number;
  /** Called when `isBehind` has changed. */
  onBehind(): void;
  /** Something is put off, and nothing was before: told once, however much follows and however long it lasts. */
  report(error: unknown): void;
  /** Nothing of that is left: it was made, or given up. */
  caughtUp(): void;
  /** Documents of ended runs beyond which it is behind. */
  behindBytes?: number;
}

interface ProcessedRun {
  /** Keys of what is to be made, waits, or is gathered. */
  readonly open: Set<string>;
  gathered: MadeArtefact[];
  gatheredBytes: number;
}

interface Item {
  runId: string;
  of: ArtefactSubject;
  /** How often it could not be made for something that may pass. */
  failedAttempts?: number;
}

interface PostponedItem {
  item: Item;
  /** Of the timer, until it is tried again. */
  rounds: number;
}

/**
 * Has made what belongs to the captures of runs: every format of a frame once it is whole, the CSV of a series once it is. It decides what, the
 * maker computes, the recorder stores. What is to be made follows from the runs alone, so nothing of it is kept but the order in which they came.
 */
export class CaptureProcessing {
  readonly #options: CaptureProcessingOptions;
  readonly #behindBytes: number;
  readonly #runs = new Map<string, ProcessedRun>();
  #queue: Item[] = [];
  /** Where the queue begins. */
  #next = 0;
  #underWay = 0;
  /** Until they are tried again. */
  #postponed: PostponedItem[] = [];
  #retry: unknown = null;
  /** Keys of what was put off and has not come to an end since. */
  readonly #late = new Set<string>();
  #isBehind = false;
  #isResumed = false;
  #isStopped = false;

  constructor(options: CaptureProcessingOptions) {
    this.#options = options;
    this.#behindBytes = options.behindBytes ?? LIMITS.processedRunBytes;
  }

  /** True when ended runs have gathered that are not processed: captures are to wait. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** Artefacts that are to be made, or being made. */
  get open(): number {
    return this.#queue.length - this.#next + this.#underWay + this.#postponed.length;
  }

  /** At start: what earlier processes left. */
  resume(runs: Iterable<RunState>): void {
    for (const run of runs) this.#takeUp(run);
    this.#isResumed = true;
    this.proceed();
  }

  /** These changes were taken in, and so may have made a frame or a series whole, ended a run, or removed its captures. */
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
    this.#judge();
    this.proceed();
  }

  /** Has as much made as may be under way; there may be room again. */
  proceed(): void {
    while (this.#underWay < this.#options.maker.concurrency && this.#mayWork && this.#options.hasRoom()) {
      const item = this.#queue[this.#next];
      if (item === undefined) return;
      this.#next++;
      if (this.#next >= 1_024 && this.#next * 2 >= this.#queue.length) {
        this.#queue = this.#queue.slice(this.#next);
        this.#next = 0;
      }
      // Of a run whose captures retention has removed meanwhile.
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

  /** Records what has been made; what comes back later is dropped, and made again at the next start. */
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
      // Whatever it is, the captures are not to blame.
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
      this.#judge();
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

  #judge(): void {
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
