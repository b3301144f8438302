import { isIP } from "node:net";
import { rootCertificates } from "node:tls";
import { buildConnector } from "undici";
import { LIMITS } from "../../../core/limits.js";
import { addressFault } from "../../../core/webhook/address-policy.js";
import { holdWriteErrors } from "./held-write-errors.js";
import type { LookupCallback } from "./name-lookups.js";
import { type ReceiverRanges, receiverPolicy } from "./receiver-policy.js";

/** The address is not one that deliveries may go to; nothing was sent. */
export class AddressRefusedError extends Error {
  override name = "AddressRefusedError";
}

export interface ReceiverConnectorOptions extends ReceiverRanges {
  extraCa: string | null;
  /** Null before the service serves. */
  ownPort(): number | null;
  /** Resolves a name. */
  lookUp(hostname: string, callback: LookupCallback): void;
}

/**
 * The name that TLS asks for and compares the certificate with. It has no dot for the root (RFC 6066, 3), and it is
 * empty for an address.
 *
 * Look-ups keep the dot, which says that no search domain is to be tried. The Host header keeps it too, because it
 * repeats the URL's authority unchanged (RFC 9110, 7.2).
 */
function serverName(hostname: string): string {
  return isIP(hostname) === 0 ? hostname.replace(/\.$/, "") : "";
}

/** Represents every port that is not the service's own. */
const ANOTHER_PORT = -1;

/**
 * Connects to receivers, and only to addresses that the policy allows. For each connection the name is resolved once
 * and each address is checked. The connection goes to one of those that passed. So it does not matter what the name
 * resolves to a moment later. The address of the connected socket is checked again before a byte of the event is sent.
 */
export function receiverConnector(options: ReceiverConnectorOptions): buildConnector.connector {
  const policy = (port: number) => receiverPolicy(options, options.ownPort(), port);
  const connectorTo = (isOwnPort: boolean): buildConnector.connector =>
    buildConnector({
      timeout: LIMITS.dispatchWindowMs,
      ...(options.extraCa !== null && { ca: [...rootCertificates, options.extraCa] }),
      lookup(hostname: string, { all }: { all?: boolean }, callback: (...results: unknown[]) => void): void {
        options.lookUp(hostname, (error, addresses) => {
          if (error !== null) return callback(error);
          const port = isOwnPort ? (options.ownPort() ?? ANOTHER_PORT) : ANOTHER_PORT;
          const current = policy(port);
          const faults = addresses.map(({ address }) => addressFault(address, port, current));
          const fine = addresses.filter((_, at) => faults[at] === undefined);
          const [first] = fine;
          if (first === undefined) return callback(new AddressRefusedError(faults[0] ?? `${hostname} has no address`));
          if (all === true) callback(null, fine);
          else callback(null, first.address, first.family);
        });
      },
    } as buildConnector.BuildOptions);
  // A look-up does not get the port. So the only port that matters, our own, has a connector of its own.
  const toOwnPort = connectorTo(true);
  const toOtherPorts = connectorTo(false);
  return (target, callback) => {
    const port = Number(target.port || (target.protocol === "https:" ? 443 : 80));
    const refuse = (fault: string): void => callback(new AddressRefusedError(fault), null);
    if (isIP(target.hostname) !== 0) {
      // Without a look-up the address must be checked here.
      const fault = addressFault(target.hostname, port, policy(port));
      if (fault !== undefined) return refuse(fault);
    }
    const connector = port === options.ownPort() ? toOwnPort : toOtherPorts;
    connector({ ...target, servername: serverName(target.hostname) }, (error, socket) => {
      if (error !== null) return callback(error, null);
      // The receiver has closed it already, so the socket does not know its address any more.
      if (socket.remoteAddress === undefined) {
        socket.destroy();
        return callback(new Error("the connection was closed as soon as it was made"), null);
      }
      const fault = addressFault(socket.remoteAddress, port, policy(port));
      if (fault !== undefined) {
        socket.destroy();
        return refuse(fault);
      }
      holdWriteErrors(socket);
      callback(null, socket);
    });
  };
}
