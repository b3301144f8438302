import ipaddr from "ipaddr.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { readToEnd } from "../../storage/disk/whole-files.js";

/** One end of a connection as node:net names it. */
export interface Peer {
  localPort?: number | undefined;
  remoteAddress?: string | undefined;
  remotePort?: number | undefined;
}

const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];

// Slot, local address and port, remote address and port, state, bytes written but not acknowledged (proc(5), /proc/net/tcp).
const LINE = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) ([0-9A-F]+):([0-9A-F]{4}) ([0-9A-F]{2}) ([0-9A-F]{8}):/gm;

const ESTABLISHED = "01";

/**
 * The bytes written but not acknowledged of each TCP connection on this machine. They show progress that a socket reports only when a third of its
 * buffer is free, which takes a client of 20 KB/s over a minute. Linux only; elsewhere nothing is known.
 */
export class UnacknowledgedBytes {
  #table = new Map<string, number>();

  async refresh(): Promise<void> {
    const table = new Map<string, number>();
    for (const path of TABLES) {
      for (const [, localPort, address, port, , queued] of (await readTable(path)).matchAll(LINE)) {
        table.set(`${localPort} ${address} ${port}`, Number.parseInt(queued as string, 16));
      }
    }
    this.#table = table;
  }

  /** As of the last refresh; undefined if the connection was not in the table. */
  of({ localPort, remoteAddress, remotePort }: Peer): number | undefined {
    if (localPort === undefined || remotePort === undefined || remoteAddress === undefined) return undefined;
    return this.#table.get(`${hexPort(localPort)} ${hexAddress(remoteAddress)} ${hexPort(remotePort)}`);
  }
}

/** The number of open connections to a local port, by remote address as `hexAddress` writes it. */
export async function openConnections(localPort: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const path of TABLES) {
    for (const [, port, address, , state] of (await readTable(path)).matchAll(LINE)) {
      if (state !== ESTABLISHED || port !== hexPort(localPort)) continue;
      counts.set(address as string, (counts.get(address as string) ?? 0) + 1);
    }
  }
  return counts;
}

/** Empty if there is no such table: not on Linux, or without IPv6. */
async function readTable(path: string): Promise<string> {
  try {
    return Buffer.from(await readToEnd(nodeFileSystem, path)).toString("latin1");
  } catch {
    return "";
  }
}

function hexPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}

/** The address in words of 32 bits. The table has them in the machine's byte order; here they are little-endian, so on s390x nothing is found. */
export function hexAddress(address: string): string {
  const bytes = Buffer.from(ipaddr.parse(address.replace(/%.*$/, "")).toByteArray());
  return bytes.swap32().toString("hex").toUpperCase();
}
