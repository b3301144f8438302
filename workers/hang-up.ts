import { isatty } from "node:tty";
import { closeDescriptor } from "../storage/disk/file-system.js";

/**
 * Calls back when the process's terminal closes (SIGHUP), in place of the end that Node has for it. A closing terminal sends it twice, through
 * its shell too.
 */
export function onHangUp(callback: () => void): void {
  const terminals = [0, 1, 2].filter(isatty);
  process.on("SIGHUP", callback);
  process.once("SIGHUP", () => {
    // At its end Node resets the terminals, and aborts if one is gone (ResetStdio in src/node.cc); it skips closed descriptors. They are
    // closed only then: earlier, another file would get their numbers.
    process.on("exit", () => terminals.forEach(closeDescriptor));
  });
}
