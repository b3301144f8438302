import type { RESPONSE_SCHEMAS } from "../../http/response-schemas.js";
import { type Assert, schemaFaults } from "./contract-client.js";

export interface JsonAnswer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: JSON as a client reads it
  json: any;
  text: string;
}

/** Speaks JSON with the service and holds what it answers against the contract. */
export class WebhookClient {
  readonly #base: string;
  readonly #t: Assert;

  constructor(t: Assert, port: number) {
    this.#t = t;
    this.#base = `http://127.0.0.1:${port}`;
  }

  async send(method: string, path: string, body?: unknown): Promise<JsonAnswer> {
    const response = await fetch(this.#base + path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
    });
    const text = await response.text();
    this.#t.match(response.headers.get("x-trace-id"), /^[0-9a-f]{32}$/, `${method} ${path}: X-Trace-ID`);
    return { status: response.status, headers: response.headers, json: text === "" ? null : JSON.parse(text), text };
  }

  /** The JSON of an answer of this status that fits the schema. */
  async expect(
    method: string,
    path: string,
    status: number,
    schema: keyof typeof RESPONSE_SCHEMAS,
    body?: unknown,
    // biome-ignore lint/suspicious/noExplicitAny: JSON as a client reads it
  ): Promise<any> {
    const answer = await this.send(method, path, body);
    const what = `${method} ${path}`;
    this.#t.equal(answer.status, status, `${what}: ${answer.text.slice(0, 300)}`);
    this.#t.equal(schemaFaults(schema, answer.json), "", `${what} fits ${schema}`);
    return answer.json;
  }

  /** Asks until the answer is as wanted. */
  // biome-ignore lint/suspicious/noExplicitAny: JSON as a client reads it
  async until(path: string, isWanted: (json: any) => boolean): Promise<any> {
    for (;;) {
      const { json } = await this.send("GET", path);
      if (isWanted(json)) return json;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
