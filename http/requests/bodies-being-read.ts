/** Limit of all request bodies that are being read: 512 of the largest. */
const LIMIT_BYTES = 32 * 1024 * 1024;

/** A body that is being read. */
export interface BodyPlace {
  readonly lengthBytes: number;
  readonly oust: () => void;
  /** It had to make room. */
  isOusted: boolean;
}

/**
 * Bounds the memory of request bodies that have not arrived whole. If there is no room left, the oldest body has to go: a body
 * is small and arrives at once, so one that takes long is slow or stalled. So clients that send only a part do not lock others out. An honest
 * body loses its place only if bodies that are announced after it need all the room before it has arrived.
 */
export class BodiesBeingRead {
  readonly #limitBytes: number;
  /** Oldest first. */
  readonly #places = new Set<BodyPlace>();
  #bytes = 0;

  constructor(limitBytes = LIMIT_BYTES) {
    this.#limitBytes = limitBytes;
  }

  /** @param oust ends the request when its body has to go */
  enter(lengthBytes: number, oust: () => void): BodyPlace {
    for (const oldest of this.#places) {
      if (this.#bytes + lengthBytes <= this.#limitBytes) break;
      oldest.isOusted = true;
      this.leave(oldest);
      oldest.oust();
    }
    const place = { lengthBytes, oust, isOusted: false };
    this.#places.add(place);
    this.#bytes += lengthBytes;
    return place;
  }

  /** The body is whole, or its request has ended. */
  leave(place: BodyPlace): void {
    if (this.#places.delete(place)) this.#bytes -= place.lengthBytes;
  }
}
