import type { FrontToRecorder, RecorderToFront } from "../recorder/recorder-messages.js";
import { SnapshotUnreadError } from "./snapshot-opening.js";

/** Asks the front to take the view from a snapshot. There is one question at a time. */
export class SnapshotQuestion {
  readonly #send: (message: RecorderToFront) => void;
  #onAnswer: ((refusal: Error | null) => void) | null = null;

  constructor(send: (message: RecorderToFront) => void) {
    this.#send = send;
  }

  /** Resolves when the front has taken the snapshot. Rejects when it has refused it: with a `SnapshotUnreadError` if it could not read it. */
  ask(path: string, sequence: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onAnswer = (refusal) => (refusal === null ? resolve() : reject(refusal));
      this.#send({ kind: "snapshot", path, sequence });
    });
  }

  answered(message: Extract<FrontToRecorder, { kind: "snapshot_taken" | "snapshot_refused" }>): void {
    if (message.kind === "snapshot_taken") this.#onAnswer?.(null);
    else this.#onAnswer?.(new (message.isUnread ? SnapshotUnreadError : Error)(message.reason));
  }
}
