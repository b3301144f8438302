/**
 * The demo cell's process: `node main.js '<DemoCellOptions as JSON>'`. The `demo` command starts it with an IPC
 * channel. By hand it can be started without one. It ends when its runs are done, at SIGTERM, SIGINT or SIGHUP, and
 * when its parent ends.
 */
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { ignoreDebugSignal } from "../debug-signal.js";
import { onHangUp } from "../hang-up.js";
import { runDemoCell } from "./demo-cell.js";
import type { DemoCellOptions, DemoCellReport } from "./demo-cell-messages.js";
import { demoPrograms } from "./demo-programs.js";

ignoreDebugSignal();

function report(message: DemoCellReport): void {
  if (process.send === undefined) process.stdout.write(`${JSON.stringify(message)}\n`);
  // The parent may have ended just now. Its end stops the cell through the event.
  else if (process.connected) process.send(message, undefined, undefined, () => {});
}

/** The error's own code, if it has one. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "internal_error";
}

const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => stop.abort());
onHangUp(() => stop.abort());
process.on("disconnect", () => stop.abort());

try {
  const options = JSON.parse(process.argv[2] ?? "{}") as DemoCellOptions;
  const readFile = (path: string): Promise<Uint8Array> => readWholeFile(nodeFileSystem, path);
  const programs = await demoPrograms(options.capturesDirectory, readFile);
  const runs = await runDemoCell(options, programs, stop.signal, report);
  report({ kind: "ended", runs });
} catch (error) {
  report({ kind: "failed", code: codeOf(error), message: error instanceof Error ? error.message : String(error) });
  process.exitCode = 1;
}
// Nothing else keeps the process alive. Once the channel is closed, it ends when its reports are out.
if (process.connected) process.disconnect();
