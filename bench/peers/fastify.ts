import { createRequire } from "node:module";
import { PEERS_PACKAGE } from "./sqlite.js";

/** What the benchmarks use of Fastify (https://fastify.dev/docs/latest/Reference/). */
export interface FastifyApp {
  get(
    path: string,
    options: { schema: object },
    handler: (request: FastifyRequest, reply: FastifyReply) => unknown,
  ): void;
  /** @returns the address, as `http://host:port` */
  listen(options: { host: string; port: number }): Promise<string>;
}

export interface FastifyRequest {
  params: Record<string, string>;
  query: Record<string, string | number | undefined>;
}

export interface FastifyReply {
  code(status: number): FastifyReply;
  type(contentType: string): FastifyReply;
  send(body: unknown): FastifyReply;
}

/** Fastify, or why it cannot be used here. */
export function loadFastify(): { fastify: () => FastifyApp } | { why: string } {
  try {
    return { fastify: createRequire(PEERS_PACKAGE)("fastify") as () => FastifyApp };
  } catch (error) {
    const [reason = ""] = (error as Error).message.split("\n");
    return { why: `Fastify cannot be loaded (${reason}); node .ci/setup-peers.mjs installs it where that is possible` };
  }
}
