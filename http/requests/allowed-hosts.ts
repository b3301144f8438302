import { isIP } from "node:net";
import { hostname } from "node:os";
import { ServiceError } from "../../core/service-errors.js";
import { nodeFileSystem, readWholeFile } from "../../storage/disk/file-system.js";

const ALLOWED = "an address, localhost, this machine's name, the host of --base-url, or one of --allowed-host";

/**
 * The hosts that requests may be meant for. A page of another site can have its own name resolve to this machine (DNS rebinding): the browser
 * then takes the service for that site, and lets the page read and write. Only the Host that it sends tells.
 */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>;

  /** @param names beside addresses and localhost, which are always allowed */
  constructor(names: Iterable<string>) {
    this.#names = new Set([...names].map(plainName));
  }

  /** @param host the request's Host, with or without a port. @throws ServiceError misdirected_request */
  check(host: string): void {
    const name = plainName(host.replace(/:\d+$/, ""));
    if (isAddress(name) || isLocalhost(name) || this.#names.has(name)) return;
    throw new ServiceError(
      "misdirected_request",
      `no request is taken for the host ${name}: if this service should answer to it, start it with --allowed-host ${name}`,
      { field: "host", in: "header", value: host, allowed: ALLOWED },
    );
  }
}

/** In lower case, without the dot that stands for the root of all names. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** In the notation that clients send: they write all others, such as 0x7f.1, in this one. */
function isAddress(name: string): boolean {
  return isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
}

/** Names below it too: they are loopback by RFC 6761, and no name server is asked for them. */
function isLocalhost(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}

/**
 * The machine's names: alone, with the domains that it completes names with, with that of multicast DNS, and as the hosts file calls it.
 * @param resolverConfiguration text of resolv.conf
 * @param hostsFile text of the hosts file
 */
export function machineNames(hostName: string, resolverConfiguration: string, hostsFile: string): string[] {
  const [label = ""] = hostName.split(".");
  if (label === "") return [];
  const domains = [...resolverConfiguration.matchAll(/^[ \t]*(?:search|domain)[ \t]+(.*)$/gm)]
    .flatMap(([, names = ""]) => names.trim().split(/[ \t]+/))
    .filter((domain) => /^[A-Za-z0-9_-]/.test(domain));
  const aliases = hostsFile
    .split("\n")
    .map((line) =>
      line
        .replace(/#.*/, "")
        .trim()
        .split(/[ \t]+/)
        .slice(1),
    )
    .filter((names) => names.includes(hostName) || names.includes(label))
    .flat();
  return [hostName, label, ...[...domains, "local"].map((domain) => `${label}.${domain}`), ...aliases];
}

/** The names that the service is reached by, as far as it knows: its machine's, and those that it was started with. */
export async function knownHosts(options: {
  host: string;
  baseUrl: string | undefined;
  further: readonly string[];
}): Promise<AllowedHosts> {
  const { host, baseUrl, further } = options;
  const base = baseUrl === undefined ? [] : [new URL(baseUrl).hostname];
  return new AllowedHosts([host, ...base, ...further, ...(await ownNames())]);
}

async function ownNames(): Promise<string[]> {
  return machineNames(hostname(), await systemText("/etc/resolv.conf"), await systemText("/etc/hosts"));
}

async function systemText(path: string): Promise<string> {
  try {
    return new TextDecoder().decode(await readWholeFile(nodeFileSystem, path));
  } catch {
    // Not on every system: names with a domain are then given by --allowed-host.
    return "";
  }
}
