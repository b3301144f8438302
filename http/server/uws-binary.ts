import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The part of uWebSockets.js that the front uses, the same in all builds. The packages' own types cannot be used, as each package is optional. */
export interface UwsModule {
  App(): UwsApp;
  SSLApp(options: { cert_file_name: string; key_file_name: string; ssl_ciphers: string }): UwsApp;
  LIBUS_LISTEN_EXCLUSIVE_PORT: number;
  us_listen_socket_close(socket: UwsListenSocket): void;
  us_socket_local_port(socket: UwsListenSocket): number;
}

/** A pointer of the library's own. */
export type UwsListenSocket = { readonly __listens: true };

type UwsHandler = (response: UwsResponse, request: UwsRequest) => void;

export interface UwsApp {
  get(pattern: string, handler: UwsHandler): UwsApp;
  post(pattern: string, handler: UwsHandler): UwsApp;
  any(pattern: string, handler: UwsHandler): UwsApp;
  /** WebSockets at a path; other requests for it go to the other handlers. */
  ws(pattern: string, behavior: UwsSocketBehavior): UwsApp;
  listen(host: string, port: number, onListen: (socket: UwsListenSocket | false) => void): UwsApp;
  listen(host: string, port: number, options: number, onListen: (socket: UwsListenSocket | false) => void): UwsApp;
  /**
   * Calls back with 1 for each new connection, which may then be closed, and with -1 when a connection is gone. The build of 2023 lacks this
   * method.
   */
  filter?(onConnection: (response: UwsResponse, change: number) => void): UwsApp;
  /** Closes all sockets, including listening ones. */
  close(): UwsApp;
}

/** The library's own object for one upgrade. */
export type UwsContext = { readonly __upgrades: true };

export interface UwsSocketBehavior {
  maxPayloadLength: number;
  /** In seconds; 0: none. */
  idleTimeout: number;
  sendPingsAutomatically: boolean;
  upgrade(response: UwsResponse, request: UwsRequest, context: UwsContext): void;
  open(socket: UwsWebSocket): void;
  message(socket: UwsWebSocket, message: ArrayBuffer): void;
  pong(socket: UwsWebSocket): void;
  /** Called when a part of what was buffered is sent. */
  drain(socket: UwsWebSocket): void;
  close(socket: UwsWebSocket): void;
}

/** Invalid after its close handler. */
export interface UwsWebSocket {
  getUserData(): unknown;
  send(message: UwsText, isBinary: boolean): number;
  sendFirstFragment(part: UwsText, isBinary: boolean): number;
  sendFragment(part: UwsText): number;
  sendLastFragment(part: UwsText): number;
  getBufferedAmount(): number;
  ping(): number;
  /** Sends a close frame, and calls the close handler at once. */
  end(code: number, reason: string): void;
  /** Closes the connection without a close frame. */
  close(): void;
  cork(write: () => void): UwsWebSocket;
}

/** Valid only until its handler returns. */
export interface UwsRequest {
  /** As sent: the build of 2023 accepts some upper-case methods only, later builds any. */
  getCaseSensitiveMethod(): string;
  getUrl(): string;
  getQuery(): string | undefined;
  /** All header lines, in their order; names in lower case. */
  forEach(onLine: (name: string, value: string) => void): void;
}

type UwsText = string | Uint8Array;

export interface UwsResponse {
  writeStatus(status: string): UwsResponse;
  writeHeader(name: string, value: UwsText): UwsResponse;
  end(body?: UwsText, closeConnection?: boolean): UwsResponse;
  endWithoutBody(reportedContentLength?: number, closeConnection?: boolean): UwsResponse;
  tryEnd(chunk: UwsText, totalBytes: number): [accepted: boolean, finished: boolean];
  getWriteOffset(): number;
  /** Valid only until the request is answered or aborted. IPv6 in full length. */
  getRemoteAddressAsText(): ArrayBuffer;
  onWritable(offer: (offset: number) => boolean): UwsResponse;
  onAborted(listener: () => void): UwsResponse;
  onData(listener: (chunk: ArrayBuffer, isLast: boolean) => void): UwsResponse;
  /** A chunk of a body without Content-Length. False if the socket has not taken all that was written before. */
  write(chunk: UwsText): boolean;
  upgrade(data: unknown, key: string, protocols: string, extensions: string, context: UwsContext): void;
  /** Stops reading, and the time limit. */
  pause(): void;
  /** Reads again, with a new time limit. */
  resume(): void;
  cork(write: () => void): UwsResponse;
  close(): UwsResponse;
}

/** A package that carries binaries. Paths are relative to the module that its name leads to. */
interface UwsPackage {
  readonly name: string;
  /** The file that names its version. */
  readonly manifest: string;
  readonly binaries: string;
}

/**
 * In order of preference; http/README.md says where each comes from. The binaries are loaded directly: the packages' own modules only add
 * error messages and, in the last one, a JavaScript replacement that behaves differently.
 */
export const PACKAGES: readonly UwsPackage[] = [
  // The project's own release, for those who install it from its repository.
  { name: "uWebSockets.js", manifest: "package.json", binaries: "." },
  { name: "@btc-vision/uwebsockets.js", manifest: "package.json", binaries: "." },
  { name: "@trufflesuite/uws-js-unofficial", manifest: "../package.json", binaries: "../binaries" },
];

export interface UwsBuild {
  readonly uws: UwsModule;
  readonly packageName: string;
  readonly version: string;
  /** The packages that come before it in the order of preference, and do not load. */
  readonly misses: readonly UwsMiss[];
}

/** A package without a build that loads here, and the reason. */
export interface UwsMiss {
  readonly packageName: string;
  /** Undefined: it is not installed. */
  readonly version: string | undefined;
  readonly reason: string;
}

const require = createRequire(import.meta.url);

/**
 * The first build that loads on this machine and Node, or why none does.
 * @param only the package to take it from, for tests and benchmarks; default: that of the environment variable UWS_PACKAGE, or any
 */
export function findUws(only = process.env.UWS_PACKAGE): UwsBuild | readonly UwsMiss[] {
  const misses: UwsMiss[] = [];
  const packages = only === undefined || only === "" ? PACKAGES : PACKAGES.filter(({ name }) => name === only);
  if (packages.length === 0)
    return [{ packageName: String(only), version: undefined, reason: "no such package is known" }];
  for (const one of packages) {
    const tried = load(one);
    if ("uws" in tried) return { ...tried, misses };
    misses.push(tried);
  }
  return misses;
}

/** Why the newest installed build does not load, in a few words. */
export function shortReason(misses: readonly UwsMiss[]): string {
  return newestMiss(misses)?.reason ?? "it is not installed";
}

/** Which build serves, and why not a newer one that is installed, for people. */
export function buildLabel({ version, misses }: UwsBuild): string {
  const newer = newestMiss(misses);
  return `uWebSockets.js ${version}${newer === undefined ? "" : `; not ${newer.version}: ${newer.reason}`}`;
}

function newestMiss(misses: readonly UwsMiss[]): UwsMiss | undefined {
  return misses.find(({ version }) => version !== undefined);
}

/** Why each package does not load, in one line. */
export function fullReason(misses: readonly UwsMiss[]): string {
  return misses
    .map(({ packageName, version, reason }) => `${[packageName, version].join(" ").trim()}: ${reason}`)
    .join("; ");
}

function load({ name, manifest, binaries }: UwsPackage): Omit<UwsBuild, "misses"> | UwsMiss {
  let version: string | undefined;
  try {
    const folder = dirname(require.resolve(name));
    version = String((require(join(folder, manifest)) as { version?: unknown }).version);
    const file = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
    return { uws: require(join(folder, binaries, file)) as UwsModule, packageName: name, version };
  } catch (error) {
    return { packageName: name, version, reason: version === undefined ? "not installed" : reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "MODULE_NOT_FOUND") {
    return `it has no binary for Node ${process.versions.node.split(".")[0]} on ${process.platform} ${process.arch}`;
  }
  const glibc = /version [`']GLIBC_([\d.]+)' not found/.exec(message)?.[1];
  if (glibc !== undefined) return `it needs glibc ${glibc}, this system has ${glibcVersion()}`;
  return message.split("\n")[0] as string;
}

function glibcVersion(): string {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime ?? "another C library";
}
