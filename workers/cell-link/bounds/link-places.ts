import { LIMITS } from "../../../core/limits.js";

/** How a connection came: over the Unix socket, or over TCP. */
export type Transport = "socket" | "tcp";

/** How many connections at a time. */
export interface PlaceCounts {
  /** Of those that have said who they are. */
  producers: number;
  /** Of those that have not. */
  strangers: number;
}

export type LinkPlaces = Readonly<Record<Transport, PlaceCounts>>;

/**
 * Each transport has places of its own, and so have those that have not said hello: they take nobody else's. Where a process may have few
 * descriptors there are fewer, a quarter of all together: the store's files come first.
 *
 * @param descriptorLimit of the process; null where it is not known
 */
export function linkPlaces(descriptorLimit: number | null): LinkPlaces {
  const part = (most: number, share: number): number =>
    descriptorLimit === null ? most : Math.max(1, Math.min(most, Math.floor(descriptorLimit * share)));
  const { socket, tcp } = LIMITS.linkConnections;
  return {
    socket: { producers: part(socket.producers, 1 / 8), strangers: part(socket.strangers, 1 / 32) },
    tcp: { producers: part(tcp.producers, 1 / 16), strangers: part(tcp.strangers, 1 / 32) },
  };
}

/** The connections of one transport that have not said who they are, in the order in which they came. */
export class Strangers<Session> {
  readonly #most: number;
  /** Each with the address that it comes from. */
  readonly #addresses = new Map<Session, string>();

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * One more has come. Gives the one that must go for it, where there is no place left: the oldest of the address that has the most. Whoever keeps
   * many open and says nothing loses them, and another's hello comes within moments.
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
    // Each address has one, and there is one place: the new one goes.
    this.#addresses.delete(session);
    return session;
  }

  /** It has said who it is, or is gone. */
  remove(session: Session): void {
    this.#addresses.delete(session);
  }
}
