import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { DemoCellOptions, DemoCellReport, DemoCellStop } from "../workers/demo-cell/demo-cell-messages.js";
import type { DemoOptions } from "./command-options.js";
import { startServing, stopGracefully, untilSignal } from "./serve-command.js";
import type { Service } from "./service.js";

/** The demo cell could not go on. */
export class DemoCellError extends Error {
  override name = "DemoCellError";
}

/** `demo`: the service, and beside it a process that is a cell, over the real cell link. Ends by a signal. */
export async function demo(options: DemoOptions): Promise<void> {
  const signal = untilSignal();
  const service = await startServing(options);
  const cell = startCell(options, service);
  try {
    const failure = await Promise.race([signal.then(() => undefined), cell.failed]);
    if (failure !== undefined) throw new DemoCellError(failure);
  } finally {
    await cell.stop();
    await stopGracefully(service);
  }
}

interface DemoCell {
  /** Resolves with the reason when the cell ends with an error. */
  failed: Promise<string>;
  stop(): Promise<void>;
}

function startCell(options: DemoOptions, service: Service): DemoCell {
  const cellOptions: DemoCellOptions = {
    socketPath: service.cellSocketPath,
    seed: options.seed,
    runs: options.runs ?? 0,
    ...(options.captures !== null && { capturesDirectory: options.captures }),
  };
  const script = fileURLToPath(new URL("../workers/demo-cell/main.js", import.meta.url));
  // A terminal sends Ctrl-C to the whole group: the cell then ends by itself, as on the stop below. Its stdout is no business of ours.
  const child = fork(script, [JSON.stringify(cellOptions)], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const exited = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => resolve(code));
    child.once("error", () => resolve(null));
  });
  let reason = "";
  let stopping = false;
  let hasShownUrls = false;
  child.on("message", (report: DemoCellReport) => {
    if (report.kind === "failed") reason = report.message;
    if (report.kind === "run_ended" && report.ending === "finished" && !hasShownUrls) {
      hasShownUrls = true;
      showUrls(service.url, report);
    }
  });
  return {
    failed: new Promise((resolve) => {
      void exited.then((code) => {
        if (code !== 0 && !stopping) resolve(`the demo cell ended with ${code}${reason === "" ? "" : `: ${reason}`}`);
      });
    }),
    async stop() {
      stopping = true;
      askToStop(child);
      await exited;
    },
  };
}

function askToStop(child: ChildProcess): void {
  const stop: DemoCellStop = { kind: "stop" };
  if (child.connected) child.send(stop, () => {});
}

function showUrls(base: string, { runId, frameIds }: Extract<DemoCellReport, { kind: "run_ended" }>): void {
  const [frameId] = frameIds;
  const urls = [
    `${base}/runs`,
    `${base}/runs/${runId}`,
    `${base}/runs/${runId}/quality-report`,
    `${base}/runs/${runId}/files`,
    ...(frameId === undefined ? [] : [`${base}/sensor/frames/${frameId}/file.npy`]),
    `${base}/health`,
  ];
  console.log(`the first run is there; try:\n${urls.map((url) => `  curl ${url}`).join("\n")}`);
}
