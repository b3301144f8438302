import type { components } from "./interface-types.js";

type ErrorResponse = components["schemas"]["ErrorResponse"];

/** The service has answered with an error. */
export class ServiceRequestError extends Error {
  override name = "ServiceRequestError";
  readonly status: number;
  /** The error's JSON, if the answer had one. */
  readonly error: ErrorResponse | undefined;

  constructor(status: number, error: ErrorResponse | undefined) {
    super(error?.message ?? `the service answered with status ${status}`);
    this.status = status;
    this.error = error;
  }
}

/** Request Timeout and Too Many Requests: below 500, but a proxy's answer that passes by itself. */
const PASSING = new Set([408, 429]);

/** Whether the same request can succeed later. */
export function isPassing(status: number): boolean {
  return status >= 500 || PASSING.has(status);
}

/** The error of an answer that is not 2xx. It reads the body. */
export async function refusalOf(response: Response): Promise<ServiceRequestError> {
  const body = (await response.json().catch(() => undefined)) as ErrorResponse | undefined;
  return new ServiceRequestError(response.status, body);
}

/** Resolves after the time, or when the signal is aborted. */
export function pause(timeMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, timeMs);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}
