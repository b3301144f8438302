import { LIMITS } from "../../../core/limits.js";

/** Whether a connection came over the Unix socket or over TCP. */
export type Transport = "socket" | "tcp";

/** Most connections at a time over one transport. */
export interface TransportLimits {
  /** Connections that have said hello. */
  producers: number;
  /** Connections that have not said hello. */
  pending: number;
}

export type ConnectionLimits = Readonly<Record<Transport, TransportLimits>>;

/**
 * How many connections may be open. Each transport has its own limit, and a separate one for connections that have not
 * said hello. So none of them takes another's place. If the process may open few descriptors the limits are lower, a
 * quarter of the descriptors in all: the store's files come first.
 *
 * @param descriptorLimit of the process; null if it is not known
 */
export function connectionLimits(descriptorLimit: number | null): ConnectionLimits {
  const part = (most: number, share: number): number =>
    descriptorLimit === null ? most : Math.max(1, Math.min(most, Math.floor(descriptorLimit * share)));
  const { socket, tcp } = LIMITS.linkConnections;
  return {
    socket: { producers: part(socket.producers, 1 / 8), pending: part(socket.pending, 1 / 32) },
    tcp: { producers: part(tcp.producers, 1 / 16), pending: part(tcp.pending, 1 / 32) },
  };
}

/** The connections of one transport that have not said hello, in the order in which they came. */
export class PendingConnections<Session> {
  readonly #most: number;
  /** Each session, with the address that it comes from. */
  readonly #addresses = new Map<Session, string>();

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Adds a connection. If there is no place left, one must go: the oldest connection of the address that has the most.
   * So an address that keeps many connections open and says nothing loses them, and others have time to say hello.
   *
   * @returns the session that must be closed, if one must
   */
  add(session: Session, address: string): Session | undefined {
    this.#addresses.set(session, address);
    if (this.#addresses.size <= this.#most) return undefined;
    const counts = new Map<string, number>();
    for (const one of this.#addresses.values()) counts.set(one, (counts.get(one) ?? 0) + 1);
    const most = Math.max(...counts.values());
    for (const [oldest, from] of this.#addresses) {
      if (oldest === session || counts.get(from) !== most) continue;
      this.#addresses.delete(oldest);
      return oldest;
    }
    // There is only one place for all connections, so the new one goes.
    this.#addresses.delete(session);
    return session;
  }

  /** The session has said hello, or is gone. */
  remove(session: Session): void {
    this.#addresses.delete(session);
  }
}
