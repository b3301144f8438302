import type { JsonObject } from "../json/json.js";

/** Codes of a `refuse` frame that answers a message and is stored as a record (workers/cell-link/README.md). Other codes close the connection. */
export const MESSAGE_REFUSAL_CODES = [
  "invalid_message",
  "not_found",
  "already_exists",
  "illegal_transition",
  "id_out_of_order",
  "name_taken",
  "out_of_sequence",
  "size_mismatch",
  "too_large",
] as const;

export type MessageRefusalCode = (typeof MESSAGE_REFUSAL_CODES)[number];

export interface Refusal<Code extends string = MessageRefusalCode> {
  code: Code;
  message: string;
  /** The field's `path`, the `value` sent and what is `allowed`, as far as they apply. */
  params: JsonObject;
}

/** Thrown while a message is decided, before anything of it is applied. It carries the refusal as data. */
export class RefusedError extends Error {
  readonly refusal: Refusal;

  constructor(code: MessageRefusalCode, message: string, params: JsonObject = {}) {
    super(message);
    this.name = "RefusedError";
    this.refusal = { code, message, params };
  }
}
