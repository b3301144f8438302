/**
 * Which addresses deliveries may go to. The factory's own network and loopback are the normal case. Link-local, cloud metadata, multicast,
 * unspecified and broadcast addresses are never allowed. Neither are the service's own addresses on its own port. An IPv6 address that carries an
 * IPv4 one is denied if either is. An allow list treats it as the IPv4 one only if packets to both reach the same host.
 *
 * | form | prefix | where the IPv4 address is | source |
 * |---|---|---|---|
 * | IPv4-mapped (the same host) | ::ffff:0:0/96 | last 32 bits | RFC 4291, 2.5.5.2 |
 * | IPv4-compatible | ::/96 | last 32 bits | RFC 4291, 2.5.5.1 |
 * | IPv4-translated | ::ffff:0:0:0/96 | last 32 bits | RFC 2765, 2.1 |
 * | NAT64 (the same host) | 64:ff9b::/96 | last 32 bits | RFC 6052, 2.1 |
 * | NAT64, local use | 64:ff9b:1::/48 | last 32 bits of a /96 of it, or after the /48 as RFC 6052, 2.2 says | RFC 8215 |
 * | 6to4 | 2002::/16 | bits 16 to 47 | RFC 3056, 2 |
 * | Teredo | 2001::/32 | server in bits 32 to 63, client inverted in the last 32 bits | RFC 4380, 4 |
 * | ISATAP | any, interface id 0:5efe or 200:5efe | last 32 bits | RFC 5214, 6.1 |
 */
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

export type AddressRange = readonly [address: Address, prefixBits: number];

export interface AddressPolicy {
  /** Only these addresses are allowed; null means all that are not denied. */
  readonly allow: readonly AddressRange[] | null;
  readonly deny: readonly AddressRange[];
  /** Addresses of this machine at which the service could be reached. Loopback always counts too. */
  readonly own: readonly string[];
  /** The port that the service listens on; null before it serves. */
  readonly ownPort: number | null;
}

const FORBIDDEN_IPV4: readonly (readonly [range: string, reason: string])[] = [
  ["169.254.0.0/16", "link-local, where cloud metadata is served"],
  ["100.100.100.200/32", "cloud metadata"],
  ["168.63.129.16/32", "cloud metadata"],
  ["192.0.0.192/32", "cloud metadata"],
  ["0.0.0.0/8", "unspecified"],
  ["224.0.0.0/4", "multicast"],
  ["255.255.255.255/32", "broadcast"],
];
const FORBIDDEN_IPV6: readonly (readonly [range: string, reason: string])[] = [
  ["fe80::/10", "link-local"],
  // AWS, Google, Oracle, Scaleway, Akamai, Alibaba.
  ["fd00:ec2::/32", "cloud metadata"],
  ["fd20:ce::254/128", "cloud metadata"],
  ["fd00:c1::a9fe:a9fe/128", "cloud metadata"],
  ["fd00:42::42/128", "cloud metadata"],
  ["fd00:a9fe:a9fe::1/128", "cloud metadata"],
  ["fd00:100::100:200/128", "cloud metadata"],
  ["::/128", "unspecified"],
  ["ff00::/8", "multicast"],
];

const forbidden = [...FORBIDDEN_IPV4, ...FORBIDDEN_IPV6].map(
  ([range, reason]) => [ipaddr.parseCIDR(range), reason] as const,
);
const [LOOPBACK_IPV4, LOOPBACK_IPV6] = [ipaddr.parseCIDR("127.0.0.0/8"), ipaddr.parseCIDR("::1/128")];

/** Reads `10.0.0.0/8`, `fd00::/8` or a single address; undefined when it is neither. */
export function parseAddressRange(text: string): AddressRange | undefined {
  try {
    if (text.includes("/")) return ipaddr.parseCIDR(text);
    // ipaddr.js would also read 10.1 and 0x7f000001.
    if (!text.includes(":") && !ipaddr.IPv4.isValidFourPartDecimal(text)) return undefined;
    const address = ipaddr.parse(text);
    return [address, address.kind() === "ipv4" ? 32 : 128];
  } catch {
    return undefined;
  }
}

/** Why no connection to this resolved IP address may be made; undefined when it may. */
export function addressFault(address: string, port: number, policy: AddressPolicy): string | undefined {
  // A zone (fe80::1%eth0) names the interface, not the host.
  const plain = address.split("%")[0] as string;
  if (!ipaddr.isValid(plain)) return `${address} is not an IP address`;
  const { forms, sameHost } = formsOf(parsed(plain));
  for (const form of forms) {
    const reason = forbidden.find(([range]) => isWithin(form, range))?.[1];
    if (reason !== undefined) return `${address} is never allowed: ${reason}`;
    if (port === policy.ownPort && isOwn(form, policy.own)) return `${address} port ${port} is the service itself`;
  }
  const isDenied = policy.deny.some((range) => forms.some((form) => isWithin(form, range)));
  if (isDenied) return `${address} is denied by --webhook-deny`;
  const { allow } = policy;
  // Not every form counts: a tunnel's address carries a relay's address or one that its owner chose, and packets go to another host.
  if (allow !== null && !allow.some((range) => sameHost.some((form) => isWithin(form, range)))) {
    return `${address} is not allowed by --webhook-allow`;
  }
  return undefined;
}

/**
 * Why nothing may be delivered to a URL whose host is an IP address; undefined when it may. A host name gives undefined too: its addresses are
 * checked when a delivery connects. The URL parser has turned other notations (0x7f.1, 2130706433) into the usual one.
 *
 * @param policyOf gives the policy for a port
 */
export function urlAddressFault(url: URL, policyOf: (port: number) => AddressPolicy): string | undefined {
  const { hostname, protocol } = url;
  const address = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  // The URL parser reads a name that ends in a number as an address.
  if (!/^[\d.]+$/.test(address) && !address.includes(":")) return undefined;
  const port = Number(url.port || (protocol === "https:" ? 443 : 80));
  return addressFault(address, port, policyOf(port));
}

/** Parses an address. ipaddr.js reads an IPv4-compatible address with dots as an IPv4-mapped one, so that form is handled here. */
function parsed(text: string): Address {
  const [, ipv4] = /^::(\d+\.\d+\.\d+\.\d+)$/.exec(text) ?? [];
  if (ipv4 === undefined) return ipaddr.parse(text);
  return new ipaddr.IPv6([...new Array<number>(12).fill(0), ...ipaddr.IPv4.parse(ipv4).toByteArray()]);
}

function isOwn(form: Address, own: readonly string[]): boolean {
  if (isWithin(form, LOOPBACK_IPV4) || isWithin(form, LOOPBACK_IPV6)) return true;
  return own.some((address) => {
    const plain = address.split("%")[0] as string;
    return ipaddr.isValid(plain) && ipaddr.parse(plain).toNormalizedString() === form.toNormalizedString();
  });
}

function isWithin(address: Address, [network, prefixBits]: AddressRange): boolean {
  // match() throws for an address and a range of different kinds.
  if (address.kind() === "ipv4")
    return network.kind() === "ipv4" && (address as ipaddr.IPv4).match(network as ipaddr.IPv4, prefixBits);
  return network.kind() === "ipv6" && (address as ipaddr.IPv6).match(network as ipaddr.IPv6, prefixBits);
}

const LAST_PLACES = [12, 13, 14, 15] as const;
/** Byte positions of the IPv4 address after a prefix of 48, 56 and 64 bits (RFC 6052, 2.2, which skips byte 8). */
const NAT64_PLACES = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
] as const;

/** The address with every IPv4 address that it carries (`forms`), and those of them that are the same host (`sameHost`). */
function formsOf(address: Address): { forms: Address[]; sameHost: Address[] } {
  if (address.kind() === "ipv4") return { forms: [address], sameHost: [address] };
  const bytes = address.toByteArray();
  const forms: Address[] = [address];
  const carries = (...ipv4: (number | undefined)[]): void => {
    forms.push(new ipaddr.IPv4(ipv4 as number[]));
  };
  const starts = (...words: number[]): boolean =>
    words.every((word, at) => bytes[2 * at] === word >> 8 && bytes[2 * at + 1] === (word & 0xff));
  const last = bytes.slice(12);
  const isMapped = starts(0, 0, 0, 0, 0, 0xffff);
  const isCompatible =
    starts(0, 0, 0, 0, 0, 0) && last.some((byte) => byte !== 0) && address.toNormalizedString() !== "0:0:0:0:0:0:0:1";
  const isTranslated = starts(0, 0, 0, 0, 0xffff, 0);
  const isNat64 = starts(0x64, 0xff9b, 0, 0, 0, 0);
  if (isMapped || isCompatible || isTranslated || isNat64) carries(...last);
  const sameHost = isMapped || isNat64 ? [...forms] : [address];
  if (starts(0x64, 0xff9b, 1)) {
    // The prefix may have any length from 48 bits, and the address does not say which. A candidate that begins with 0 is padding.
    for (const places of [LAST_PLACES, ...NAT64_PLACES])
      if (bytes[places[0]] !== 0) carries(...places.map((at) => bytes[at]));
  }
  if (starts(0x2002)) carries(...bytes.slice(2, 6));
  if (starts(0x2001, 0)) {
    carries(...bytes.slice(4, 8));
    carries(...last.map((byte) => byte ^ 0xff));
  }
  const isIsatap = (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
  if (isIsatap) carries(...last);
  return { forms, sameHost };
}
