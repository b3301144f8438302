import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { descriptorLimit, nodeFileSystem } from "../../storage/disk/file-system.js";
import type { StoreFile } from "../../storage/disk/file-system-interface.js";
import { closeLater } from "../../storage/disk/whole-files.js";
import { type ConnectionBounds, connectionBounds, openDescriptors } from "../service/descriptor-room.js";
import type { HttpServerOptions } from "./server-options.js";
import { hexAddress, openConnections } from "./unacknowledged-bytes.js";
import type { UwsApp, UwsListenSocket, UwsModule, UwsResponse } from "./uws-binary.js";

/** How often connections are counted by address, and in total if the build does not report each. */
const COUNT_MS = 1_000;
const LOOK_MS = 100;

/**
 * File descriptors kept from clients. They are released for the store when the port closes. The build accepts all waiting connections at once, so
 * many can arrive between two checks.
 */
const KEPT_DESCRIPTORS = 48;
/** The file that they open. Any file that exists will do. */
const THIS_FILE = fileURLToPath(import.meta.url);
/** Only Linux lists its connections. */
const KNOWS_CONNECTIONS = process.platform === "linux";

/**
 * Listens with uWebSockets.js and limits the connections. With a build that reports each connection, those above the limits are closed at once. The
 * build of 2023 reports none: there the open file descriptors are counted, and while there are too many, the port is closed, so that the system
 * refuses new connections. That limits all connections together, but not those of one address.
 */
export class UwsListening {
  readonly #app: UwsApp;
  readonly #uws: UwsModule;
  readonly #options: HttpServerOptions;
  /** The port; if 0 was asked for, the one that the system chose. */
  #port: number;
  /** Undefined while the port is closed. */
  #socket: UwsListenSocket | undefined;
  #isClosed = false;
  /** The port may close for a while, because the build does not report connections. */
  #isLookedAt = false;
  #timer: NodeJS.Timeout | undefined;
  #open = 0;
  /** Open connections by address: the last count and those that arrived since. */
  #ofAddress = new Map<string, number>();
  /** The descriptors that are kept now: at most `KEPT_DESCRIPTORS`. */
  #kept: StoreFile[] = [];

  private constructor(app: UwsApp, uws: UwsModule, options: HttpServerOptions) {
    this.#app = app;
    this.#uws = uws;
    this.#options = options;
    this.#port = options.port;
  }

  /** Undefined if it cannot listen on the address. */
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
    // A port that the system chose during listen cannot be opened again for a minute after its connections. So it is chosen before.
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
      // Files of the store come and go, so the port closes only because of connections.
      if (open < before + total) isOver = false;
      else {
        connections = sum((await openConnections(this.#port)).values());
        isOver = connections >= total || open >= (descriptorLimit() ?? Number.POSITIVE_INFINITY) - KEPT_DESCRIPTORS;
      }
    } catch {
      // No file descriptor is left to count with.
      isOver = true;
    }
    if (this.#isClosed) return;
    if (isOver && this.#socket !== undefined) {
      this.#stopListening();
      this.#giveUpKept();
      this.#options.pipeline.connectionRefused("", connections);
    } else if (!isOver && this.#socket === undefined) {
      await this.#keepDescriptors();
      // If the port is taken by now, or no file descriptor is left, the next check tries again.
      await this.#listen();
      if (this.#isClosed) this.close();
    }
  }

  async #keepDescriptors(): Promise<void> {
    try {
      while (this.#kept.length < KEPT_DESCRIPTORS) this.#kept.push(await nodeFileSystem.open(THIS_FILE, "read"));
    } catch {
      // No more descriptors are left: it keeps those that it has.
    }
  }

  #giveUpKept(): void {
    for (const file of this.#kept.splice(0)) closeLater(file);
  }
}

function sum(counts: Iterable<number>): number {
  return [...counts].reduce((total, count) => total + count, 0);
}

/** A free port; 0 if there is none. */
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
