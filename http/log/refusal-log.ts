import ipaddr from "ipaddr.js";
import { RepeatedLogLines } from "../../core/repeated-log-lines.js";
import { type Timers, UNREFERENCED_TIMERS } from "../../core/timers.js";
import type { ServiceLog } from "./service-log.js";

export interface RefusalLine {
  level: "info" | "warn" | "error";
  /** Lines of the same kind are counted together; the kind is a status, for example. */
  kind: string;
  /** Address of the client; empty if unknown. */
  address: string;
  message: string;
  /** Called only for a line that is written. */
  fields(): Record<string, unknown>;
}

/** Log lines that anybody can cause with a request, counted by kind and address. */
export class RefusalLog {
  readonly #lines: RepeatedLogLines<Omit<RefusalLine, "fields"> & { fields: Record<string, unknown> }>;

  constructor(log: ServiceLog, timers: Timers = UNREFERENCED_TIMERS) {
    this.#lines = new RepeatedLogLines(timers, ({ level, address, message, fields }, count) => {
      const counted = count === undefined ? {} : { count };
      const from = address === "" ? {} : { remote_address: shownAddress(address) };
      log[level]({ ...fields, ...counted, ...from }, message);
    });
  }

  write(line: RefusalLine): void {
    const { kind, address } = line;
    this.#lines.write(kind, address, (isToldApart) => ({
      ...line,
      address: isToldApart ? address : "",
      fields: line.fields(),
    }));
  }

  /** Writes the counts so far. */
  flush(): void {
    this.#lines.flush();
  }
}

/** The address in its shortest form; as IPv4 if it is an IPv4 address in IPv6 form. */
function shownAddress(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}
