import type { TaskInput, TaskName, TaskOutput } from "../../artefacts/pool/artefact-tasks.js";
import type { TaskAnswer } from "../../artefacts/pool/artefact-thread.js";
import type { TaskErrorData } from "../../artefacts/pool/task-failures.js";
import type { FrontToRecorder, RecorderToFront } from "../recorder-messages.js";

/** Computes artefacts for the recorder. The recorder only says what to compute, and stores the result. */
export interface ArtefactMaker {
  /** How many artefacts are made at a time. A height map is two tasks: the picture and its preview. */
  readonly concurrency: number;
  /** Never rejects: errors come as data, since they may come from another thread. */
  make<N extends TaskName>(name: N, input: TaskInput<N>): Promise<{ value: TaskOutput<N> } | { error: TaskErrorData }>;
}

/** Sends tasks to the front's pool by messages. */
export class FrontArtefactMaker implements ArtefactMaker {
  readonly concurrency: number;
  readonly #send: (message: RecorderToFront) => void;
  readonly #waiting = new Map<number, (answer: TaskAnswer) => void>();
  #asked = 0;

  constructor(concurrency: number, send: (message: RecorderToFront) => void) {
    this.concurrency = concurrency;
    this.#send = send;
  }

  make<N extends TaskName>(name: N, input: TaskInput<N>) {
    const id = ++this.#asked;
    return new Promise<{ value: TaskOutput<N> } | { error: TaskErrorData }>((resolve) => {
      this.#waiting.set(id, resolve as (answer: TaskAnswer) => void);
      this.#send({ kind: "artefact_wanted", id, task: { name, input } });
    });
  }

  answered({ id, answer }: Extract<FrontToRecorder, { kind: "artefact_made" }>): void {
    this.#waiting.get(id)?.(answer);
    this.#waiting.delete(id);
  }
}
