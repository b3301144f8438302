import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { descriptorLimit, nodeFileSystem, type StoreFile } from "../../storage/disk/file-system.js";
import { type ConnectionBounds, connectionBounds, openDescriptors } from "./descriptor-room.js";
import type { HttpServerOptions } from "./server-options.js";
import { hexAddress, openConnections } from "./unacknowledged-bytes.js";
import type { UwsApp, UwsListenSocket, UwsModule, UwsResponse } from "./uws-binary.js";

/** How often connections are counted: by address, and all of them where the build does not tell of each. */
const COUNT_MS = 1_000;
const LOOK_MS = 100;

/**
 * Descriptors that are held back from clients. When the port closes, the store gets them. The build accepts all waiting connections at once, so
 * many can come between two looks.
 */
const KEPT_DESCRIPTORS = 48;
/** What they are of: a file that is there. */
const THIS_FILE = fileURLToPath(import.meta.url);
/** Only Linux tells which connections there are. */
const KNOWS_CONNECTIONS = process.platform === "linux";

/**
 * Where uWebSockets.js listens, within the bounds of connections. A build that tells of each connection has those beyond them closed at once. That
 * of 2023 does not tell, and takes what comes: there the process's descriptors are counted, and while there are too many nothing listens, so
 * that new connections are refused by the system. That keeps the bound of all connections, not that of one address.
 */
export class UwsListening {
  readonly #app: UwsApp;
  readonly #uws: UwsModule;
  readonly #options: HttpServerOptions;
  /** In place of 0, the one that was taken first. */
  #port: number;
  /** Undefined: nothing listens now. */
  #socket: UwsListenSocket | undefined;
  #isClosed = false;
  /** Nothing may listen for a while: the build does not tell of connections. */
  #isLookedAt = false;
  #timer: NodeJS.Timeout | undefined;
  #open = 0;
  /** Open connections by address, as they were last counted, and those that came since. */
  #ofAddress = new Map<string, number>();
  /** Of `KEPT_DESCRIPTORS`. */
  #kept: StoreFile[] = [];

  private constructor(app: UwsApp, uws: UwsModule, options: HttpServerOptions) {
    this.#app = app;
    this.#uws = uws;
    this.#options = options;
    this.#port = options.port;
  }

  /** Undefined when the address cannot be had. */
  static async start(app: UwsApp, uws: UwsModule, options: HttpServerOptions): Promise<UwsListening | undefined> {
    const { maxConnections } = options;
    const listening = new UwsListening(app, uws, options);
    if (maxConnections !== undefined) await listening.#bound(connectionBounds(maxConnections));
    if (await listening.#listen()) return listening;
    listening.close();
    return undefined;
  }

  get port(): number {
    return this.#port;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#stopListening();
    this.#giveUpKept();
  }

  async #listen(): Promise<boolean> {
    const { host } = this.#options;
    // One that the system chose cannot be listened on again while connections of it are remembered, for a minute.
    if (this.#isLookedAt && this.#port === 0) this.#port = await freePort(host);
    const socket = await new Promise<UwsListenSocket | false>((resolve) => {
      // Exclusive: without it a second service could share the port and take half of the requests.
      this.#app.listen(host, this.#port, this.#uws.LIBUS_LISTEN_EXCLUSIVE_PORT, resolve);
    });
    if (socket === false) return false;
    this.#port = this.#uws.us_socket_local_port(socket);
    this.#socket = socket;
    return true;
  }

  #stopListening(): void {
    if (this.#socket !== undefined) this.#uws.us_listen_socket_close(this.#socket);
    this.#socket = undefined;
  }

  async #bound(bounds: ConnectionBounds): Promise<void> {
    if (this.#app.filter !== undefined) {
      this.#app.filter((response, change) => this.#changed(response, change, bounds));
      if (KNOWS_CONNECTIONS) this.#later(COUNT_MS, () => this.#countByAddress());
      return;
    }
    const before = await openDescriptors();
    if (before === null) return;
    this.#isLookedAt = true;
    await this.#keepDescriptors();
    this.#later(LOOK_MS, () => this.#look(bounds.total, before + this.#kept.length));
  }

  #later(delayMs: number, work: () => Promise<void>): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void work().finally(() => this.#later(delayMs, work)), delayMs).unref();
  }

  #changed(response: UwsResponse, change: number, { total, ofOneAddress }: ConnectionBounds): void {
    this.#open += change;
    if (change < 0) return;
    const address = Buffer.from(response.getRemoteAddressAsText()).toString("latin1");
    const key = address === "" ? "" : hexAddress(address);
    const count = (this.#ofAddress.get(key) ?? 0) + 1;
    const hasRoom = !KNOWS_CONNECTIONS || this.#open <= ofOneAddress || count <= ofOneAddress;
    if (this.#open <= total && hasRoom) {
      this.#ofAddress.set(key, count);
      return;
    }
    this.#options.pipeline.connectionRefused(address, this.#open - 1);
    response.close();
  }

  async #countByAddress(): Promise<void> {
    this.#ofAddress = this.#open === 0 ? new Map() : await openConnections(this.#port);
  }

  /**
   * @param total connections at most
   * @param before descriptors that were open without any connection
   */
  async #look(total: number, before: number): Promise<void> {
    let isOver: boolean;
    let connections = total;
    try {
      const open = (await openDescriptors()) ?? 0;
      // Without the store's files, which come and go, and stay: only connections are reason to close.
      if (open < before + total) isOver = false;
      else {
        connections = sum((await openConnections(this.#port)).values());
        isOver = connections >= total || open >= (descriptorLimit() ?? Number.POSITIVE_INFINITY) - KEPT_DESCRIPTORS;
      }
    } catch {
      // None is left to look with.
      isOver = true;
    }
    if (this.#isClosed) return;
    if (isOver && this.#socket !== undefined) {
      this.#stopListening();
      this.#giveUpKept();
      this.#options.pipeline.connectionRefused("", connections);
    } else if (!isOver && this.#socket === undefined) {
      await this.#keepDescriptors();
      // The port may be another one's by now, or a descriptor missing: it is tried again.
      await this.#listen();
      if (this.#isClosed) this.close();
    }
  }

  async #keepDescriptors(): Promise<void> {
    try {
      while (this.#kept.length < KEPT_DESCRIPTORS) this.#kept.push(await nodeFileSystem.open(THIS_FILE, "read"));
    } catch {
      // As many as there are.
    }
  }

  #giveUpKept(): void {
    for (const file of this.#kept.splice(0)) void file.close();
  }
}

function sum(counts: Iterable<number>): number {
  return [...counts].reduce((total, count) => total + count, 0);
}

/** 0 when none can be had. */
async function freePort(host: string): Promise<number> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port: 0, exclusive: true }, resolve);
    });
    return (server.address() as AddressInfo).port;
  } catch {
    return 0;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}
