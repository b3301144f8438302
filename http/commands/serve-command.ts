import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import { descriptorLimit, nodeFileSystem, otherWritersOf } from "../../storage/disk/file-system.js";
import { whyNotRead } from "../../storage/disk/file-system-error.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { poolSize } from "../../workers/artefacts/pool/artefact-pool.js";
import { letHeapsGrow } from "../../workers/heap-growth.js";
import type { RecorderOptions } from "../../workers/recorder/recorder-messages.js";
import type { RoomAmount } from "../../workers/recorder/upkeep/disk-room.js";
import { unmarkStore } from "../demo/demo-store.js";
import { createServiceLog, type ServiceLog } from "../log/service-log.js";
import { sayOnStandardError, standardOutput } from "../log/standard-error.js";
import { type AllowedHosts, knownHosts } from "../requests/allowed-hosts.js";
import type { ApiKeys } from "../requests/api-keys.js";
import { CrossOrigin } from "../requests/cross-origin.js";
import { readFirstKeys, watchKeys } from "../requests/key-file.js";
import { readPemFile } from "../server/pem-file.js";
import type { TlsFiles } from "../server/server-options.js";
import { roomForConnections } from "../service/descriptor-room.js";
import { type Service, type ServiceOptions, startService } from "../service/service.js";
import { SERVICE_VERSION } from "../service/service-version.js";
import type { ServeOptions } from "./command-options.js";
import { plantOptions } from "./plant-command.js";
import { UsageError } from "./resolve-options.js";
import { systemdNotices } from "./systemd-notices.js";
import { untilSignal } from "./until-signal.js";

/** How long requests may take to end after a stop is asked for. With the commits that follow, a stop ends within 10 s. */
const STOP_GRACE_MS = 7_000;

/** How `serve` and `demo` follow the service. */
export interface ServingHooks {
  /** About the options; they are written to the log. */
  warnings: readonly string[];
  /** Takes a line for stdout. */
  say(line: string): void;
  /** Nobody reads stderr any more. */
  onLogGone?(): void;
  /** Called when the options have been checked, before the service opens the store. */
  beforeOpening?(recorder: RecorderOptions): Promise<void>;
  /** Recording failed so long ago that the process is to end (`--exit-after-failure`). `Service.stop` then fails and says why. */
  onGivenUp(): void;
}

/** After recording has failed: says so in the log, lets reads go on for `exitAfterMs`, then has the process end. */
async function endAfterFailure(service: Service, log: ServiceLog, exitAfterMs: number, end: () => void): Promise<void> {
  const cause = await service.recordingEnded;
  if (exitAfterMs === 0) return;
  const message = `recording has failed: the service ends in ${exitAfterMs / 1000} s, so that a supervisor restarts it`;
  log.fatal({ cause }, message);
  // Unreferenced: a stop in the meantime need not wait for this timer.
  await setTimeout(exitAfterMs, undefined, { ref: false });
  end();
  // A disk that does not answer must not keep the process from ending.
  await setTimeout(2 * STOP_GRACE_MS, undefined, { ref: false });
  process.exit(1);
}

/** Starts the service by its options and says where it listens. @throws UsageError for options that do not fit together */
export async function startServing(
  options: ServeOptions,
  hooks: ServingHooks,
  hub?: ServiceOptions["hub"],
): Promise<Service> {
  const log = createServiceLog(options["log-level"], SERVICE_VERSION, options["log-format"], hooks.onLogGone);
  for (const line of [...hooks.warnings, ...environmentWarnings()]) log.warn(line);
  const keysPath = options["api-keys"];
  if (!options.open && keysPath === null && !isLoopback(options.host)) {
    throw new UsageError(
      `--host ${options.host} is reachable from other machines: add --api-keys FILE (see \`keys add\`), or --open to serve without authentication`,
    );
  }
  const keys = keysPath === null ? undefined : await readKeys(keysPath, log);
  letHeapsGrow();
  // A file at the process's size limit (ulimit -f) counts as a full disk (EFBIG): the write waits. Unhandled, the signal would end the process.
  process.on("SIGXFSZ", () => {});
  // Everything that the service creates is for its own account alone, the cell link's socket included, from its first moment on.
  process.umask(0o077);
  const recorder = await recorderOptions(options);
  const tls = tlsFiles(options);
  const plant = await plantOptions(options);
  await hooks.beforeOpening?.(recorder);
  const service = await startService({
    recorder,
    plant,
    hub,
    host: options.host.replace(/^\[(.*)\]$/, "$1"),
    port: options.port,
    front: options.front,
    liveStreams: options["live-streams"],
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

/** `serve`: runs until a signal asks it to end. It also goes on when stdout and stderr are closed, as some supervisors do. */
export function serve(options: ServeOptions, warnings: readonly string[]): Promise<void> {
  return serveUntilSignal(options, warnings);
}

/** @param hub given: the service is a hub, with this plant */
export async function serveUntilSignal(
  options: ServeOptions,
  warnings: readonly string[],
  hub?: ServiceOptions["hub"],
): Promise<void> {
  let giveUp = (): void => {};
  const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
  const signal = untilSignal();
  const say = standardOutput(() => {});
  const systemd = systemdNotices(process.env, (line) => sayOnStandardError(`inspection-service: ${line}\n`));
  const hooks: ServingHooks = {
    warnings,
    say(line) {
      say(line);
      systemd.ready(line);
    },
    // The demo must not remove what is recorded from now on.
    beforeOpening: () => unmarkStore(options.data),
    onGivenUp: giveUp,
  };
  const service = await startServing(options, hooks, hub);
  await Promise.race([signal, givenUp]);
  systemd.stopping();
  await service.stop(STOP_GRACE_MS);
}

export function stopGracefully(service: Service): Promise<void> {
  return service.stop(STOP_GRACE_MS);
}

/** Only a warning: the volume of a container often looks like this, with nobody else in it. */
async function warnOfOtherWriters(folders: readonly string[], log: ServiceLog): Promise<void> {
  for (const folder of new Set(folders)) {
    const writers = await otherWritersOf(folder).catch(() => null);
    if (writers === null) continue;
    log.warn(
      { folder },
      `${writers} may write in a folder of the service and replace its files: run chmod go-w on the folder`,
    );
  }
}

function environmentWarnings(): string[] {
  if (process.env.NODE_TLS_REJECT_UNAUTHORIZED !== "0") return [];
  return [
    "NODE_TLS_REJECT_UNAUTHORIZED=0: the certificates of webhook receivers are not verified; unset it and use --webhook-ca",
  ];
}

function allowedHosts(options: ServeOptions): Promise<AllowedHosts> {
  return knownHosts({ host: options.host, baseUrl: options["base-url"], further: options["allowed-host"] });
}

/** The number asked for, but no more than the limit of open files allows. */
function mostConnections(requested: number | null, log: ServiceLog): number {
  const limit = descriptorLimit();
  const room = roomForConnections(limit);
  if (limit === null || requested === null || requested <= room) return requested ?? room;
  log.warn(
    { max_connections: requested, descriptors: limit },
    `--max-connections ${requested} is more than the limit of open files allows: ${room} is used`,
  );
  return room;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

async function readKeys(path: string, log: ServiceLog): Promise<ApiKeys> {
  try {
    return await readFirstKeys(path, log);
  } catch (error) {
    throw new UsageError(`--api-keys: ${whyNotRead(error)}`);
  }
}

function tlsFiles({ "tls-cert": certPath, "tls-key": keyPath }: ServeOptions): TlsFiles | undefined {
  if (certPath === null && keyPath === null) return undefined;
  if (certPath === null || keyPath === null) {
    throw new UsageError("--tls-cert and --tls-key must be given together: a certificate and its private key");
  }
  return { certPath, keyPath };
}

async function recorderOptions(options: ServeOptions): Promise<RecorderOptions> {
  const tokenFile = options["cell-token-file"];
  const listen = options["cell-listen"];
  if (listen !== null && tokenFile === null) {
    throw new UsageError("--cell-listen needs --cell-token-file: producers over TCP must send the token in that file");
  }
  const low = options["disk-low-bytes"];
  const critical = options["disk-critical-bytes"];
  if (low !== null && critical !== null && isMore(critical, low)) {
    throw new UsageError(
      "--disk-critical-bytes must not be above --disk-low-bytes: captures must wait before everything else does",
    );
  }
  return {
    dataDirectory: options.data.length > 1 ? options.data.replace(/\/+$/, "") : options.data,
    durability: options.durability,
    serviceVersion: SERVICE_VERSION,
    cellSocketPath: options["cell-socket"],
    cellSocketAccess: options["cell-socket-access"],
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
    retention: {
      days: options["retain-days"],
      bytes: options["retain-bytes"],
      afterShipping: options["retain-after-shipping"],
    },
  };
}

/** Compares two amounts of the same kind; false for bytes against a share, as the disk's size is not known here. */
function isMore(left: RoomAmount, right: RoomAmount): boolean {
  if ("bytes" in left) return "bytes" in right && left.bytes > right.bytes;
  return "share" in right && left.share > right.share;
}

/** Authorities in PEM to trust for receivers; null: only those that Node trusts by default. */
async function extraAuthorities(path: string | null): Promise<string | null> {
  if (path === null) return null;
  const added = await readCertificates(path);
  // Node applies this variable only to its default authorities, which the given list replaces: so its file is added here.
  const byNode = process.env.NODE_EXTRA_CA_CERTS;
  if (byNode === undefined || byNode === "") return added;
  try {
    // Last, because OpenSSL stops reading at a damaged certificate. Node has warned of such a file.
    return `${added}\n${new TextDecoder().decode(await readWholeFile(nodeFileSystem, byNode))}`;
  } catch {
    // Node has warned of the unreadable file and goes on without it.
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

/** The file's text without surrounding white space. @throws UsageError */
async function readToken(path: string): Promise<string> {
  let token: string;
  try {
    token = new TextDecoder().decode(await readWholeFile(nodeFileSystem, path)).trim();
  } catch (error) {
    throw new UsageError(`--cell-token-file: ${whyNotRead(error)}`);
  }
  // An interrupted copy, or a crash, may leave zeros in place of the text.
  if (token === "" || /[\s\p{Cc}\ufffd]/u.test(token))
    throw new UsageError(`--cell-token-file: ${path} must contain the token: one word in UTF-8`);
  return token;
}
