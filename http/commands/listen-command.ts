import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { LIMITS } from "../../core/limits.js";
import { type VerifyWebhookOptions, verifyWebhook } from "../../core/webhook/verify-webhook.js";
import { ed25519PublicKey, isUsableSecret } from "../../core/webhook/webhook-signature.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { whyNotRead } from "../../storage/disk/file-system-error.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { standardOutput } from "../log/standard-error.js";
import type { ListenOptions } from "./command-options.js";
import { UsageError } from "./resolve-options.js";
import { untilSignal } from "./until-signal.js";

/** More than any event takes. */
const MOST_BODY_BYTES = 32 * 1024 * 1024;
const FORWARD_TIMEOUT_MS = 9_000;
/** They concern the connection to this receiver, and not the one behind it. */
const NOT_FORWARDED = new Set(["host", "connection", "content-length", "transfer-encoding", "keep-alive", "expect"]);

/** What verifies events; null: nothing does. */
type Verifier = Pick<VerifyWebhookOptions, "secret" | "publicKey"> | null;

/** One event that came. */
interface Incoming {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/**
 * `listen`: a receiver of webhooks for development. It verifies each event, prints one line about it and its body, and answers. It runs until a signal
 * asks it to end, or until nobody reads its output.
 *
 * @throws UsageError if it cannot listen there
 */
export async function listen(options: ListenOptions): Promise<void> {
  if (options.answer !== null && options.forward !== undefined) {
    throw new UsageError(
      "--answer and --forward cannot be given together: with --forward, its receiver's answer counts",
    );
  }
  const verifier = await verifierOf(options);
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  const stopped = Promise.race([untilSignal(), left]);
  const say = standardOutput(leave);
  const server = createServer((request, response) => {
    void answerTo(request, options, verifier, say).then(
      (status) => response.writeHead(status).end(),
      // The sender has gone, so there is nobody to answer.
      () => response.destroy(),
    );
  });
  const host = options.host.replace(/^\[(.*)\]$/, "$1");
  server.listen(options.port, host);
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    const why = error.code === "EADDRINUSE" ? "the port is in use" : error.message;
    throw new UsageError(`cannot listen on ${options.host} port ${options.port}: ${why}`);
  });
  const { port } = server.address() as AddressInfo;
  say(`listening on http://${host.includes(":") ? `[${host}]` : host}:${port}`);
  if (verifier === null) say("signatures are not verified: give --secret or --public-key to verify them");
  await stopped;
  server.close();
  server.closeAllConnections();
}

async function verifierOf({ secret, "public-key": path }: ListenOptions): Promise<Verifier> {
  if (secret !== null && path !== null) {
    throw new UsageError("--secret and --public-key cannot be given together: one of them verifies all events");
  }
  if (path !== null) return { publicKey: await publicKeyIn(path) };
  if (secret === null) return null;
  if (secret.length > LIMITS.webhookSecretCharacters || !isUsableSecret(secret)) {
    // The secret itself is not shown.
    throw new UsageError(
      `--secret must have at most ${LIMITS.webhookSecretCharacters} characters, with base64 after whsec_`,
    );
  }
  return { secret };
}

/** In PEM. The file has just that, or the JSON that has it. @throws UsageError */
async function publicKeyIn(path: string): Promise<string> {
  let text: string;
  try {
    text = Buffer.from(await readWholeFile(nodeFileSystem, path)).toString();
  } catch (error) {
    throw new UsageError(`--public-key: ${whyNotRead(error)}`);
  }
  const pem = pemOf(text);
  if (ed25519PublicKey(pem) !== undefined) return pem;
  throw new UsageError(
    `--public-key: ${path} must have the answer of GET /webhooks/signing-key, or an Ed25519 public key in PEM`,
  );
}

function pemOf(text: string): string {
  try {
    return String((JSON.parse(text) as { public_key_pem?: unknown } | null)?.public_key_pem);
  } catch {
    return text;
  }
}

/** Takes a request, says what it was, and gives the status of the answer. Rejects when the sender has gone. */
async function answerTo(
  request: IncomingMessage,
  options: ListenOptions,
  verifier: Verifier,
  say: (line: string) => void,
): Promise<number> {
  const body = await wholeBody(request);
  if (body === undefined) {
    say(`${new Date().toISOString()}  refused with 413: more than ${MOST_BODY_BYTES} bytes`);
    return 413;
  }
  if (request.method !== "POST") {
    say(`${new Date().toISOString()}  ${request.method} ${request.url}: answered 405, as events come by POST`);
    return 405;
  }
  const incoming = { headers: request.headers, body };
  const fault = faultOf(incoming, verifier);
  const { status, note } = fault === null ? await answerOf(incoming, options) : { status: 401, note: "" };
  const verdict = verifier === null ? "not verified" : (fault ?? "verified");
  const { "x-service-event": event = "no event name", "webhook-id": id = "no id" } = request.headers;
  say(`${new Date().toISOString()}  ${event}  ${id}  ${verdict}  answered ${status}${note}`);
  say(body.toString());
  return status;
}

/** What is wrong with the signature; null if nothing is, or if nothing verifies it. */
function faultOf({ headers, body }: Incoming, verifier: Verifier): string | null {
  if (verifier === null) return null;
  try {
    verifyWebhook({ ...verifier, headers, body });
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

async function answerOf(
  incoming: Incoming,
  { answer, forward }: ListenOptions,
): Promise<{ status: number; note: string }> {
  if (forward === undefined) return { status: answer ?? 200, note: "" };
  const headers = Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] =>
    NOT_FORWARDED.has(name) || value === undefined ? [] : [[name, String(value)]],
  );
  try {
    const { status } = await fetch(forward, {
      ...{ method: "POST", headers, body: new Uint8Array(incoming.body), redirect: "manual" },
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
    });
    return { status, note: ` by ${forward}` };
  } catch (error) {
    const { message, cause } = error as Error;
    return { status: 502, note: `: ${forward} gave no answer (${cause instanceof Error ? cause.message : message})` };
  }
}

/** Undefined if it is too long. */
async function wholeBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
