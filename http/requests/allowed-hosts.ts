import { isIP } from "node:net";
import { hostname } from "node:os";
import { ServiceError } from "../../core/service-errors.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";

const ALLOWED = "an IP address, localhost, this machine's name, the host of --base-url, or one of --allowed-host";

/**
 * The hosts that requests may name. A web page of another site can let its own host name point to this machine (DNS rebinding). The browser
 * then takes the service for that site and lets the page read and write. Only the Host header shows it.
 */
export class AllowedHosts {
  readonly #names: ReadonlySet<string>;

  /** @param names in addition to IP addresses and localhost, which are always allowed */
  constructor(names: Iterable<string>) {
    this.#names = new Set([...names].map(plainName));
  }

  /** @param host the request's Host, with or without a port. @throws ServiceError misdirected_request */
  check(host: string): void {
    const name = plainName(host.replace(/:\d+$/, ""));
    if (isAddress(name) || isLocalhost(name) || this.#names.has(name)) return;
    throw new ServiceError(
      "misdirected_request",
      `the service does not answer to the host ${name}: to allow it, start the service with --allowed-host ${name}`,
      { field: "host", in: "header", value: host, allowed: ALLOWED },
    );
  }
}

/** In lower case, without the trailing dot of a fully qualified name. */
function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** Whether it is an IP address. Clients send the plain notation only, even for addresses such as 0x7f.1. */
function isAddress(name: string): boolean {
  return isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0;
}

/** Also names that end in .localhost: by RFC 6761 they are loopback, and no name server is asked for them. */
function isLocalhost(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}

/**
 * The machine's names: its bare name, with the search domains, with `.local` (multicast DNS), and its aliases in the hosts file.
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

/** The names of the service as far as it knows them: those of its machine, and those that the options give. */
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
    // Not every system has this file. Names with a domain then need --allowed-host.
    return "";
  }
}
