import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { forkProgram } from "../fork-program.js";
import type { DemoCellOptions, DemoCellReport } from "./demo-cell-messages.js";

export interface DemoCellProcess {
  readonly child: ChildProcess;
  /** Resolves with the exit code; null if a signal ended it. */
  readonly exited: Promise<number | null>;
  /**
   * Asks the process to cancel its run and end, and kills it if it does not end within 5 s. Resolves when it is gone.
   * It can be called again.
   */
  stop(): Promise<void>;
}

const STOP_LIMIT_MS = 5_000;

/** Starts the demo cell in a process of its own. It ends by itself when this process does. */
export function startDemoCell(options: DemoCellOptions, onReport: (report: DemoCellReport) => void): DemoCellProcess {
  const main = fileURLToPath(new URL("./main.js", import.meta.url));
  // It needs no stdin and stdout. Errors that it cannot report go to stderr.
  const child = forkProgram(main, [JSON.stringify(options)], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  child.on("message", (report: DemoCellReport) => onReport(report));
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once("exit", (code) => resolve(code));
    child.once("error", reject);
  });
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
    await exited.finally(() => clearTimeout(timer));
  };
  return { child, exited, stop };
}
