import type { BufferPool } from "../../buffer-pool.js";
import type { LinkBudget } from "../bounds/link-budget.js";
import type { MessageIntake, ProducerProgress } from "../message-intake.js";

/**
 * Where a session is:
 * - `hello`: no hello has come yet.
 * - `welcome`: waits until messages from an older connection of the name are committed.
 * - `open`: messages come and go.
 * - `closing`: the last frame was written. What still comes is discarded.
 */
export type SessionPhase = "hello" | "welcome" | "open" | "closing" | "closed";

/** What a session needs from the server that accepted it. */
export interface SessionHost<Session> {
  readonly intake: MessageIntake;
  readonly buffers: BufferPool;
  readonly budget: LinkBudget;
  /** False while messages with a payload must wait. */
  mayTakePayloads(): boolean;
  /** Whether there is room for a connection of this producer. */
  hasPlace(session: Session, name: string): boolean;
  /** A session has said who it is. Closes an older session of the same name. */
  entered(session: Session, producer: ProducerProgress): void;
  /** The session has something to send after this group of commits. */
  hasAnswers(session: Session): void;
  ended(session: Session): void;
  wrongToken(address: string): void;
  /** Reports an error of the service itself. */
  report(error: unknown, producer: string | null): void;
}
