import { networkInterfaces } from "node:os";
import { type AddressPolicy, type AddressRange, parseAddressRange } from "../../../core/webhook/address-policy.js";

export interface ReceiverRanges {
  /** Null: all that are not forbidden. */
  allow: readonly AddressRange[] | null;
  deny: readonly AddressRange[];
}

/** The lists of `--webhook-allow` and `--webhook-deny`; without an allow list all is allowed that is not forbidden. */
export function receiverRanges(lists?: { allow: readonly string[]; deny: readonly string[] }): ReceiverRanges {
  const { allow = [], deny = [] } = lists ?? {};
  return { allow: allow.length === 0 ? null : allow.map(rangeOf), deny: deny.map(rangeOf) };
}

function rangeOf(text: string): AddressRange {
  const range = parseAddressRange(text);
  if (range === undefined) throw new Error(`${text} is no address range`);
  return range;
}

/**
 * Which addresses may be delivered to at a port, as of now.
 * @param ownPort the service's own; null before it serves
 */
export function receiverPolicy({ allow, deny }: ReceiverRanges, ownPort: number | null, port: number): AddressPolicy {
  // Asked anew for each connection to that port: addresses come and go. For another port they do not matter.
  const interfaces = port === ownPort ? Object.values(networkInterfaces()) : [];
  const own = interfaces.flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
  return { allow, deny, own, ownPort };
}
