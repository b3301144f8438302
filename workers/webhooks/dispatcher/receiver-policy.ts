import { networkInterfaces } from "node:os";
import { type AddressPolicy, type AddressRange, parseAddressRange } from "../../../core/webhook/address-policy.js";

export interface ReceiverRanges {
  /** Null: all that are not forbidden. */
  allow: readonly AddressRange[] | null;
  deny: readonly AddressRange[];
}

/** Parses the lists of `--webhook-allow` and `--webhook-deny`. An empty allow list allows everything that is not forbidden. */
export function receiverRanges(lists?: { allow: readonly string[]; deny: readonly string[] }): ReceiverRanges {
  const { allow = [], deny = [] } = lists ?? {};
  return { allow: allow.length === 0 ? null : allow.map(rangeOf), deny: deny.map(rangeOf) };
}

function rangeOf(text: string): AddressRange {
  const range = parseAddressRange(text);
  if (range === undefined) throw new Error(`${text} must be an IP address or a CIDR range`);
  return range;
}

/**
 * Which addresses deliveries may go to at a port, at this moment.
 *
 * @param ownPort the service's own port; null before it serves
 */
export function receiverPolicy({ allow, deny }: ReceiverRanges, ownPort: number | null, port: number): AddressPolicy {
  // The machine's addresses come and go, so they are read for each connection to our own port. For other ports they do not matter.
  const interfaces = port === ownPort ? Object.values(networkInterfaces()) : [];
  const own = interfaces.flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
  return { allow, deny, own, ownPort };
}
