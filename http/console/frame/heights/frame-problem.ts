/** Why a frame, or a part of it, cannot be shown. The message is a sentence for the page. */
export class FrameProblem extends Error {
  /** True if asking again may help: the format is still being made, or the service cannot answer now. */
  readonly isPassing: boolean;

  constructor(message: string, isPassing = false) {
    super(message);
    this.name = "FrameProblem";
    this.isPassing = isPassing;
  }
}

/** What the console's requests throw: an answer that is an error, or `status` 0 if no answer came. */
interface RequestError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly isRetryable: boolean;
  readonly isDamage: boolean;
}

const SENTENCES: Record<string, string> = {
  frame_not_found: "There is no frame with this id.",
  run_not_found: "There is no run with this id.",
  file_removed: "Retention removed this capture. The run's report stays.",
  unauthorized: "The service wants an API key.",
  unreachable: "The service does not answer.",
};

function isRequestError(error: unknown): error is RequestError {
  return error instanceof Error && "status" in error && "code" in error;
}

/** Why a request failed, as a sentence. `what` is what was asked for: "the heights". */
export function problemOf(error: unknown, what: string): FrameProblem {
  if (error instanceof FrameProblem) return error;
  // A body that breaks off. The service breaks an answer off when it finds damage in the middle of it.
  if (!isRequestError(error)) {
    return new FrameProblem(
      `The transfer of ${what} broke off: the connection was lost, or the stored data are damaged. Health and log tell more.`,
    );
  }
  if (error.code === "format_not_available") {
    const sentence = error.isRetryable
      ? `The service is still making ${what} of this frame.`
      : `This frame has no ${what.replace(/^the /, "")}: it was not finished, or it could not be made.`;
    return new FrameProblem(sentence, error.isRetryable);
  }
  // It may come, but by default it never does: the page does not ask again and again.
  if (error.code === "not_shipped") return new FrameProblem(`The hub cannot show ${what}: ${error.message}.`);
  if (error.isDamage) {
    return new FrameProblem(
      `The service could not read ${what}: the stored data are damaged. Health and log tell more.`,
    );
  }
  const sentence = SENTENCES[error.code] ?? `The service did not give ${what}: ${error.message}.`;
  return new FrameProblem(sentence, error.isRetryable || error.status === 503);
}
