/** Requests to the interface, with the key and with errors as they are meant for people. */
import type { components } from "../../client/interface-types.js";
import { apiKey, isKeyWanted, isReadOnly } from "./session.js";
import { noteServiceTime } from "./times.js";

type Schemas = components["schemas"];
export type Run = Schemas["ProgramRunResponse"];
export type RunSummary = Schemas["ProgramRunSummaryResponse"];
export type RunList = Schemas["ProgramRunSummaryListResponse"];
export type ActiveRun = Schemas["ActiveRunResponse"];
export type Step = Schemas["StepStatusResponse"];
export type Check = Schemas["QualityCheckModel"];
export type Report = Schemas["QualityReportResponse"];
export type Defect = Schemas["DefectModel"];
export type RunFile = Schemas["FileMetadata"];
export type Program = Schemas["ProgramResponse"];
export type Statistics = Schemas["ProgramStatisticsResponse"];
export type ProgramList = Schemas["ProgramListResponse"];
export type Webhook = Schemas["WebhookResponse"];
export type WebhookRequest = Schemas["CreateWebhookRequest"];
export type Delivery = Schemas["WebhookDeliveryResponse"];
export type DeliveryDetail = Schemas["WebhookDeliveryDetailResponse"];
export type DeliverySummary = Schemas["WebhookDeliverySummary"];
export type StartedResend = Schemas["ResendResponse"];
export type Resend = Schemas["ResendStateResponse"];
export type SigningKey = Schemas["SigningKeyResponse"];
export type TestResult = Schemas["TestWebhookResponse"];
export type Health = Schemas["SystemStateResponse"];
export type Frame = Schemas["CapturedFrameResponse"];
type ErrorEnvelope = Schemas["ErrorResponse"];

/** What the interface answered instead of a result, or why no answer came (`status` 0). */
export class ApiError extends Error {
  override name = "ApiError";
  readonly status: number;
  /** `unreachable` if no answer came. */
  readonly code: ErrorEnvelope["code"] | "unreachable";
  readonly params: Partial<ErrorEnvelope["params"]>;
  /** Whether the same request may succeed later. */
  readonly isRetryable: boolean;

  constructor(
    status: number,
    code: ApiError["code"],
    message: string,
    params: ApiError["params"] = {},
    isRetryable = false,
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.params = params;
    this.isRetryable = isRetryable;
  }

  /** True if what the service has stored is damaged. Any other failure of the service may pass. */
  get isDamage(): boolean {
    return this.params.cause !== undefined;
  }
}

/** The URL of a path of the interface, which starts with a slash. */
export function apiUrl(path: string): string {
  return new URL(`..${path}`, document.baseURI).href;
}

/**
 * Asks the interface, with the key if there is one. It resolves with any answer.
 * @throws ApiError if none came; DOMException if `init.signal` aborts it
 */
export async function ask(path: string, init: RequestInit): Promise<Response> {
  const key = apiKey.value;
  const headers = new Headers(init.headers);
  if (key !== undefined) headers.set("Authorization", `Bearer ${key}`);
  let response: Response;
  try {
    // no-cache: what the browser has is shown only if the service says that nothing has changed.
    response = await fetch(apiUrl(path), { cache: "no-cache", ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "The service does not answer.", {}, true);
  }
  noteServiceTime(response.headers.get("Date"));
  // An answer to a request with an earlier key says nothing about this one.
  if (response.status === 401 && apiKey.value === key) isKeyWanted.value = true;
  return response;
}

/** As `ask`, but it resolves with a 2xx answer only. @throws ApiError for every other answer */
export async function apiFetch(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await ask(path, init);
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.code === "forbidden" && error.params.needed === "manage") isReadOnly.value = true;
  throw error;
}

async function errorOf(response: Response): Promise<ApiError> {
  try {
    const { code, message, params, retryable } = (await response.json()) as ErrorEnvelope;
    return new ApiError(response.status, code, message, params, retryable);
  } catch {
    return new ApiError(response.status, "internal_error", `The service answered ${response.status}.`);
  }
}

export async function getJson<Shape>(path: string, signal?: AbortSignal): Promise<Shape> {
  return (await (await apiFetch(path, { signal: signal ?? null })).json()) as Shape;
}

/** Writes. Resolves with the answer, or undefined if it has no body. */
export async function sendJson<Shape>(
  method: "POST" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
): Promise<Shape> {
  const response = await apiFetch(path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
  return (response.status === 204 ? undefined : await response.json()) as Shape;
}

/** The health, also where it is bad enough for 503. */
export async function getHealth(signal?: AbortSignal): Promise<Health> {
  const response = await ask("/health", { signal: signal ?? null });
  const body = (await response
    .clone()
    .json()
    .catch(() => ({}))) as Partial<Health>;
  if (body.components === undefined) throw await errorOf(response);
  return body as Health;
}

/** A query string with its question mark, without the values that are empty. */
export function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
