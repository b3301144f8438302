import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import { descriptorLimit, nodeFileSystem, otherWritersOf, readWholeFile } from "../../storage/disk/file-system.js";
import { poolSize } from "../../workers/artefacts/pool/artefact-pool.js";
import { onHangUp } from "../../workers/hang-up.js";
import { letHeapsGrow } from "../../workers/heap-growth.js";
import type { RecorderOptions } from "../../workers/recorder/recorder-messages.js";
import type { RoomAmount } from "../../workers/recorder/upkeep/disk-room.js";
import { unmarkStore } from "../demo/demo-store.js";
import { createServiceLog, type ServiceLog } from "../log/service-log.js";
import { standardOutput } from "../log/standard-error.js";
import { type AllowedHosts, knownHosts } from "../requests/allowed-hosts.js";
import { ApiKeys } from "../requests/api-keys.js";
import { CrossOrigin } from "../requests/cross-origin.js";
import { readKeyFile, watchKeys } from "../requests/key-file.js";
import { roomForConnections } from "../server/descriptor-room.js";
import { readPemFile } from "../server/pem-file.js";
import type { TlsFiles } from "../server/server-options.js";
import { type Service, startService } from "../service/service.js";
import { SERVICE_VERSION } from "../service/service-version.js";
import type { ServeOptions } from "./command-options.js";
import { UsageError } from "./resolve-options.js";

/** How long requests may take to end once a stop is asked for: with the commits behind it all is over within 10 s (decisions.md). */
const STOP_GRACE_MS = 7_000;

/** What a command does around the service. */
export interface ServingHooks {
  /** Of the options, for the log. */
  warnings: readonly string[];
  /** Takes a line for stdout. */
  say(line: string): void;
  /** Nobody reads stderr any more. */
  onLogGone?(): void;
  /** Called when the options are known to fit together, before the store is opened by these. */
  beforeOpening?(recorder: RecorderOptions): Promise<void>;
  /** Nothing is recorded any more, for so long that the process is to end (`--exit-after-failure`). Then `Service.stop` fails and says why. */
  onGivenUp(): void;
}

/** Once nothing can be recorded any more: says so, lets reads go on for so long, then has the process end. */
async function endAfterFailure(service: Service, log: ServiceLog, exitAfterMs: number, end: () => void): Promise<void> {
  const cause = await service.recordingEnded;
  if (exitAfterMs === 0) return;
  const message = `nothing is recorded any more: the service ends in ${exitAfterMs / 1000} s, for a supervisor to start it anew`;
  log.fatal({ cause }, message);
  // A service that is ended meanwhile need not wait for it.
  await setTimeout(exitAfterMs, undefined, { ref: false });
  end();
  // A disk that does not answer must not keep it from ending.
  await setTimeout(2 * STOP_GRACE_MS, undefined, { ref: false });
  process.exit(1);
}

/** Starts the service by its options and says where it listens. @throws UsageError for options that do not fit together */
export async function startServing(options: ServeOptions, hooks: ServingHooks): Promise<Service> {
  const log = createServiceLog(options["log-level"], SERVICE_VERSION, options["log-format"], hooks.onLogGone);
  for (const line of [...hooks.warnings, ...environmentWarnings()]) log.warn(line);
  const keysPath = options["api-keys"];
  if (!options.open && keysPath === null && !isLoopback(options.host)) {
    throw new UsageError(
      `--host ${options.host} can be reached from other machines: add --api-keys FILE (see keys add), or --open to serve whoever asks`,
    );
  }
  const keys = keysPath === null ? undefined : await readKeys(keysPath);
  letHeapsGrow();
  // A file at the process's own limit (ulimit -f) is a write without room, EFBIG, which waits; the signal would end the process.
  process.on("SIGXFSZ", () => {});
  // What the service makes is for its own account alone. Of the link's socket too, from the moment on that it can be connected to.
  process.umask(0o077);
  const recorder = await recorderOptions(options);
  const tls = tlsFiles(options);
  await hooks.beforeOpening?.(recorder);
  const service = await startService({
    recorder,
    host: options.host.replace(/^\[(.*)\]$/, "$1"),
    port: options.port,
    front: options.front,
    maxConnections: mostConnections(options["max-connections"], log),
    artefactThreads: options["artefact-threads"] ?? poolSize(availableParallelism(), descriptorLimit()),
    tls,
    baseUrl: options["base-url"],
    apiKeys: keys,
    crossOrigin: new CrossOrigin(options["cors-origin"]),
    allowedHosts: keys === undefined ? await allowedHosts(options) : undefined,
    log,
  });
  if (keys !== undefined && keysPath !== null) watchKeys(keysPath, keys, log);
  void endAfterFailure(service, log, options["exit-after-failure"], hooks.onGivenUp);
  await warnOfOtherWriters([options.data, dirname(service.cellSocketPath)], log);
  hooks.say(`listening on ${service.url} (front: ${service.front})`);
  return service;
}

/** Resolves when the process is asked to end, by a terminal that closes (SIGHUP) too; a second signal ends it at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    onHangUp(() => {
      asked = true;
      resolve("SIGHUP");
    });
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, () => {
        // Nothing acknowledged is lost by it: that is on the disk already.
        if (asked) process.exit(1);
        asked = true;
        resolve(signal);
      });
    }
  });
}

/** `serve`: until a signal asks it to end. It goes on where nobody reads what it says: a supervisor may close both streams. */
export async function serve(options: ServeOptions, warnings: readonly string[]): Promise<void> {
  let giveUp = (): void => {};
  const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
  const signal = untilSignal();
  const service = await startServing(options, {
    warnings,
    say: standardOutput(() => {}),
    // What is recorded from now on is not the demo's to remove.
    beforeOpening: () => unmarkStore(options.data),
    onGivenUp: giveUp,
  });
  await Promise.race([signal, givenUp]);
  await service.stop(STOP_GRACE_MS);
}

export function stopGracefully(service: Service): Promise<void> {
  return service.stop(STOP_GRACE_MS);
}

/** Only a warning: a volume of a container is often like this, and nobody else is in there. */
async function warnOfOtherWriters(folders: readonly string[], log: ServiceLog): Promise<void> {
  for (const folder of new Set(folders)) {
    const writers = await otherWritersOf(folder).catch(() => null);
    if (writers === null) continue;
    log.warn({ folder }, `${writers} may write in a folder of the service, and so replace what is in it: chmod go-w`);
  }
}

function environmentWarnings(): string[] {
  if (process.env.NODE_TLS_REJECT_UNAUTHORIZED !== "0") return [];
  return ["NODE_TLS_REJECT_UNAUTHORIZED=0: webhooks go to receivers whatever certificate they show; use --webhook-ca"];
}

function allowedHosts(options: ServeOptions): Promise<AllowedHosts> {
  return knownHosts({ host: options.host, baseUrl: options["base-url"], further: options["allowed-host"] });
}

/** What is asked for, or as many as there is room for. */
function mostConnections(wanted: number | null, log: ServiceLog): number {
  const limit = descriptorLimit();
  const room = roomForConnections(limit);
  if (limit === null || wanted === null || wanted <= room) return wanted ?? room;
  log.warn(
    { max_connections: wanted, descriptors: limit },
    `--max-connections: the limit of descriptors leaves ${room}`,
  );
  return room;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

async function readKeys(path: string): Promise<ApiKeys> {
  try {
    return new ApiKeys(await readKeyFile(path));
  } catch (error) {
    throw new UsageError(`--api-keys: ${(error as Error).message}`);
  }
}

function tlsFiles({ "tls-cert": certPath, "tls-key": keyPath }: ServeOptions): TlsFiles | undefined {
  if (certPath === null && keyPath === null) return undefined;
  if (certPath === null || keyPath === null) {
    throw new UsageError("--tls-cert and --tls-key belong together: a certificate and its private key");
  }
  return { certPath, keyPath };
}

async function recorderOptions(options: ServeOptions): Promise<RecorderOptions> {
  const tokenFile = options["cell-token-file"];
  const listen = options["cell-listen"];
  if (listen !== null && tokenFile === null) {
    throw new UsageError("--cell-listen needs --cell-token-file: producers over TCP prove themselves with its token");
  }
  const low = options["disk-low-bytes"];
  const critical = options["disk-critical-bytes"];
  if (low !== null && critical !== null && isMore(critical, low)) {
    throw new UsageError(
      "--disk-critical-bytes is above --disk-low-bytes: captures must wait before everything else does",
    );
  }
  return {
    dataDirectory: options.data.length > 1 ? options.data.replace(/\/+$/, "") : options.data,
    durability: options.durability,
    serviceVersion: SERVICE_VERSION,
    cellSocketPath: options["cell-socket"],
    cellListen: listen,
    cellToken: tokenFile === null ? null : await readToken(tokenFile),
    finalizeTimeoutMs: options["finalize-timeout"],
    orphanTimeoutMs: options["orphan-timeout"],
    diskRoom: { low, critical, ballastBytes: null },
    receivers: {
      allow: options["webhook-allow"],
      deny: options["webhook-deny"],
      extraCa: await extraAuthorities(options["webhook-ca"]),
    },
    retention: { days: options["retain-days"], bytes: options["retain-bytes"] },
  };
}

/** Of amounts that can be compared without knowing the disk. */
function isMore(left: RoomAmount, right: RoomAmount): boolean {
  if ("bytes" in left) return "bytes" in right && left.bytes > right.bytes;
  return "share" in right && left.share > right.share;
}

/** In PEM; null where those that Node trusts by itself are all. */
async function extraAuthorities(path: string | null): Promise<string | null> {
  if (path === null) return null;
  const added = await readCertificates(path);
  // A list of authorities replaces those that Node trusts by itself: `rootCertificates`, and what this variable names.
  const byNode = process.env.NODE_EXTRA_CA_CERTS;
  if (byNode === undefined || byNode === "") return added;
  try {
    // Behind the other: what is read of it ends where it is broken, of which Node has warned.
    return `${added}\n${new TextDecoder().decode(await readWholeFile(nodeFileSystem, byNode))}`;
  } catch {
    // Node has warned of it, and goes on without.
    return added;
  }
}

async function readCertificates(path: string): Promise<string> {
  let text: string;
  try {
    text = await readPemFile(path, "certificate");
    createSecureContext({ ca: text });
  } catch (error) {
    throw new UsageError(`--webhook-ca: ${(error as Error).message}`);
  }
  return text;
}

/** The file's text without the line's end. */
async function readToken(path: string): Promise<string> {
  let token: string;
  try {
    token = new TextDecoder().decode(await readWholeFile(nodeFileSystem, path)).trim();
  } catch (error) {
    throw new UsageError(`--cell-token-file: ${(error as Error).message}`);
  }
  // A copy that broke off, or a crash, may leave zeros in place of what was written.
  if (token === "" || /[\s\p{Cc}\ufffd]/u.test(token))
    throw new UsageError(`--cell-token-file: ${path} must hold one word in UTF-8, the token`);
  return token;
}
