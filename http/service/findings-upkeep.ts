import type { TaskAnswer, TaskMessage } from "../../workers/artefacts/pool/artefact-thread.js";

export interface FindingsUpkeepOptions {
  dataDirectory: string;
  /** Runs a task of the pool that nobody waits for. Never rejects. */
  make(task: TaskMessage): Promise<TaskAnswer>;
}

/**
 * Makes the findings files that are missing, one at a time: at a start, and whenever the log begins a segment. So the first
 * statistics of a large store need not decode it. If something fails, they are made when they are needed.
 */
export class FindingsUpkeep {
  readonly #options: FindingsUpkeepOptions;
  #sealed = 0;
  #isMaking = false;

  constructor(options: FindingsUpkeepOptions) {
    this.#options = options;
  }

  /** @param count how many sealed segments there are */
  sealedSegments(count: number): void {
    if (count === this.#sealed) return;
    this.#sealed = count;
    if (this.#isMaking) return;
    this.#isMaking = true;
    void this.#makeMissing().finally(() => {
      this.#isMaking = false;
    });
  }

  async #makeMissing(): Promise<void> {
    const { dataDirectory, make } = this.#options;
    for (let seen = -1; seen !== this.#sealed; ) {
      const count = this.#sealed;
      const answer = await make({ name: "makeFindings", input: { dataDirectory, newestFirst: false } });
      if ("error" in answer) return;
      // As long as there are some, the next one is made.
      if (!("hasMade" in answer.value && answer.value.hasMade)) seen = count;
    }
  }
}
