import { isatty } from "node:tty";
import { closeDescriptor } from "../storage/file-system.js";

/**
 * Calls back when the process's terminal closes (SIGHUP), in place of the end that Node has for it. A closing terminal sends it twice, through
 * its shell too.
 */
export function onHangUp(callback: () => void): void {
  const terminals = [0, 1, 2].filter(isatty);
  process.on("SIGHUP", callback);
  process.once("SIGHUP", () => {
    // When it ends, Node puts the terminals back as they were at its start, and aborts where one is gone (ResetStdio in src/node.cc); those that
    // are closed it leaves. Not before the end: what is opened later would get their numbers.
    process.on("exit", () => terminals.forEach(closeDescriptor));
  });
}
