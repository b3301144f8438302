import { isatty } from "node:tty";
import { closeDescriptor } from "../storage/disk/file-system.js";

/**
 * Calls back when the process's terminal closes (SIGHUP), instead of ending the process. The call may come twice: the
 * terminal sends the signal, and its shell sends it again.
 */
export function onHangUp(callback: () => void): void {
  const terminals = [0, 1, 2].filter(isatty);
  process.on("SIGHUP", callback);
  process.once("SIGHUP", () => {
    // At exit Node resets the terminals and aborts if one is gone (ResetStdio in src/node.cc), but skips closed descriptors. They are closed
    // only at exit: earlier, another file would get their numbers.
    process.on("exit", () => terminals.forEach(closeDescriptor));
  });
}
