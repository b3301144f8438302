import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { StorageError } from "../../../storage/storage-error.js";
import {
  artefactTasks,
  type TaskInput,
  type TaskName,
  type TaskOutput,
} from "../../../workers/artefacts/pool/artefact-tasks.js";
import type { TaskErrorData } from "../../../workers/artefacts/pool/task-failures.js";
import type { ArtefactMaker } from "../../../workers/recorder/captures/artefact-maker.js";

type Answer<N extends TaskName> = { value: TaskOutput<N> } | { error: TaskErrorData };

/** Computes in the test's own thread, one after the other, when the test lets it. */
export class NearMaker implements ArtefactMaker {
  readonly concurrency = 2;
  /** Names of the tasks that were asked for, in order. */
  readonly asked: TaskName[] = [];
  /** Tasks that have a result. */
  answered = 0;
  /** What it answers in place of a result. If this gives undefined, it answers the result. */
  answersWith: ((name: TaskName) => TaskErrorData | undefined) | undefined;
  /** Tasks that may be computed; the others wait. */
  #allowed = Number.POSITIVE_INFINITY;
  readonly #waiting: (() => void)[] = [];
  readonly #tasks = artefactTasks(nodeFileSystem);
  #last: Promise<unknown> = Promise.resolve();

  /** From now on nothing is computed that is not allowed. */
  hold(): void {
    this.#allowed = 0;
  }

  allow(count = Number.POSITIVE_INFINITY): void {
    this.#allowed += count;
    while (this.#allowed > 0 && this.#waiting.length > 0) {
      this.#allowed--;
      this.#waiting.shift()?.();
    }
  }

  /** Tasks that wait to be allowed. */
  get held(): number {
    return this.#waiting.length;
  }

  async make<N extends TaskName>(name: N, input: TaskInput<N>): Promise<Answer<N>> {
    this.asked.push(name);
    if (this.#allowed > 0) this.#allowed--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const error = this.answersWith?.(name);
    if (error !== undefined) return { error };
    const task = this.#tasks[name] as (input: TaskInput<N>) => Promise<TaskOutput<N>>;
    const made = this.#last.then(() => task(input));
    this.#last = made.catch(() => {});
    try {
      const value = await made;
      this.answered++;
      return { value };
    } catch (error) {
      const { message } = error as Error;
      return { error: { code: error instanceof StorageError ? error.code : "task_failed", message } };
    }
  }
}
