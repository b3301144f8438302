import t from "tap";
import {
  type AddressPolicy,
  type AddressRange,
  addressFault,
  parseAddressRange,
} from "../../../core/webhook/address-policy.js";

const OPEN: AddressPolicy = { allow: null, deny: [], own: ["192.168.1.5", "fe80::1%eth0", "fd12::5"], ownPort: 8000 };

const ranges = (...texts: string[]): AddressRange[] => texts.map((text) => parseAddressRange(text) as AddressRange);

/** Every way of writing an IPv4 address within an IPv6 one. */
function embedded(ipv4: string): Record<string, string> {
  const [a, b, c, d] = ipv4.split(".").map(Number) as [number, number, number, number];
  const word = (high: number, low: number): string => ((high << 8) | low).toString(16);
  const inverted = `${word(a ^ 255, b ^ 255)}:${word(c ^ 255, d ^ 255)}`;
  return {
    mapped: `::ffff:${ipv4}`,
    "mapped, in hex": `::ffff:${word(a, b)}:${word(c, d)}`,
    compatible: `::${word(a, b)}:${word(c, d)}`,
    "compatible, with dots": `::${ipv4}`,
    translated: `::ffff:0:${word(a, b)}:${word(c, d)}`,
    NAT64: `64:ff9b::${word(a, b)}:${word(c, d)}`,
    "NAT64 of a local /96": `64:ff9b:1:2:3:4:${word(a, b)}:${word(c, d)}`,
    "NAT64 of the local /48": `64:ff9b:1:${word(a, b)}:${word(0, c)}:${word(d, 0)}::`,
    "NAT64 of a local /64": `64:ff9b:1:2:${word(0, a)}:${word(b, c)}:${word(d, 0)}:0`,
    "6to4": `2002:${word(a, b)}:${word(c, d)}::1`,
    "Teredo client": `2001:0:4136:e378:8000:63bf:${inverted}`,
    "Teredo server": `2001:0:${word(a, b)}:${word(c, d)}:8000:63bf:3fff:fdd2`,
    ISATAP: `2001:db8::5efe:${word(a, b)}:${word(c, d)}`,
    "ISATAP, universal": `2001:db8::200:5efe:${word(a, b)}:${word(c, d)}`,
  };
}

t.test("the factory's network, loopback and the internet are allowed", async (t) => {
  const fine = ["10.0.0.7", "192.168.1.9", "172.16.0.1", "127.0.0.1", "127.9.9.9", "8.8.8.8", "100.64.0.1", "::1"];
  for (const address of [...fine, "fd00::7", "2a00:1450::1", "2001:db8::1", "64:ff9b:1::10.0.0.5"]) {
    t.equal(addressFault(address, 80, OPEN), undefined, address);
  }
  for (const [form, address] of Object.entries(embedded("10.0.0.7"))) {
    t.equal(addressFault(address, 80, OPEN), undefined, form);
  }
});

t.test("never allowed, in every form that carries an IPv4 address", async (t) => {
  const never = ["169.254.169.254", "169.254.0.1", "224.0.0.1", "239.255.255.255", "255.255.255.255"];
  for (const ipv4 of [...never, "100.100.100.200", "168.63.129.16", "192.0.0.192"]) {
    t.match(addressFault(ipv4, 80, OPEN), /never allowed/, ipv4);
    for (const [form, address] of Object.entries(embedded(ipv4))) {
      t.match(addressFault(address, 80, OPEN), /never allowed/, `${ipv4}, ${form}: ${address}`);
    }
  }
  for (const address of ["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "64:ff9b::", "2002::1"]) {
    t.match(addressFault(address, 80, OPEN), /unspecified/, address);
  }
  for (const address of ["fe80::1", "fe80::1%eth0", "febf::1", "ff02::1", "ff0e::1"]) {
    t.match(addressFault(address, 80, OPEN), /never allowed/, address);
  }
  const metadata = ["fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1"];
  for (const address of [...metadata, "fd00:100::100:200"]) {
    t.match(addressFault(address, 80, OPEN), /cloud metadata/, address);
  }
  t.equal(addressFault("fd00:42::43", 80, OPEN), undefined, "a neighbour of one, in a factory's own range");
  t.match(addressFault("not an address", 80, OPEN), /not an IP address/);
});

t.test("the service's own addresses on its own port", async (t) => {
  for (const address of [
    "127.0.0.1",
    "127.1.2.3",
    "::1",
    "192.168.1.5",
    "fd12::5",
    ...Object.values(embedded("127.0.0.1")),
  ]) {
    t.match(addressFault(address, 8000, OPEN), /the service itself/, address);
    t.equal(addressFault(address, 8001, OPEN), undefined, `${address} on another port`);
  }
  t.equal(addressFault("192.168.1.6", 8000, OPEN), undefined, "another machine's port of the same number");
  t.equal(addressFault("127.0.0.1", 8000, { ...OPEN, ownPort: null }), undefined, "before it serves");
});

t.test("lists narrow it, deny over allow, and never widen it", async (t) => {
  const policy = { ...OPEN, allow: ranges("10.0.0.0/8", "fd00::/8", "169.254.0.0/16"), deny: ranges("10.9.0.0/16") };
  t.equal(addressFault("10.1.2.3", 80, policy), undefined);
  t.equal(addressFault("::ffff:10.1.2.3", 80, policy), undefined, "an allowed address in another form");
  t.equal(addressFault("64:ff9b::10.1.2.3", 80, policy), undefined, "by the network's translator");
  t.equal(addressFault("fd00::1", 80, policy), undefined);
  const narrow = { ...OPEN, allow: ranges("10.0.0.0/8") };
  for (const [form, address] of Object.entries(embedded("10.1.2.3"))) {
    const isSameHost = form.startsWith("mapped") || form === "NAT64";
    t.equal(
      addressFault(address, 80, narrow) === undefined,
      isSameHost,
      `${form}, ${address}: allowed as its host only`,
    );
  }
  t.match(addressFault("10.9.0.1", 80, policy), /--webhook-deny/);
  t.match(addressFault("::ffff:10.9.0.1", 80, policy), /--webhook-deny/);
  t.match(addressFault("192.168.0.1", 80, policy), /--webhook-allow/);
  t.match(addressFault("127.0.0.1", 80, policy), /--webhook-allow/);
  t.match(addressFault("169.254.1.1", 80, policy), /never allowed/);
});

t.test("ranges are read as they are written", async (t) => {
  for (const text of ["10.0.0.0/8", "10.1.2.3", "::/0", "fd00::1", "0.0.0.0/0"]) t.ok(parseAddressRange(text), text);
  for (const text of [
    "",
    "10",
    "10.1",
    "0x7f.1",
    "10.0.0.0/33",
    "fd00::/129",
    "example.com",
    "10.0.0.0/",
    "/8",
    "01.2.3.4",
  ]) {
    t.equal(parseAddressRange(text), undefined, text);
  }
});
