import { once } from "node:events";
import type { DemoCellReport } from "../workers/demo-cell/demo-cell-messages.js";
import { startDemoCell } from "../workers/demo-cell/demo-cell-process.js";
import type { DemoOptions } from "./command-options.js";
import { startServing, stopGracefully, untilSignal } from "./serve-command.js";

/** The demo cell could not go on. */
export class DemoCellError extends Error {
  override name = "DemoCellError";
}

/**
 * `demo`: the service, and beside it a process that is a cell, over the real cell link. The service goes on when the cell has made
 * all its runs; a signal ends both.
 * @throws DemoCellError when the cell ended by an error, once the service has ended too
 */
export async function demo(options: DemoOptions): Promise<void> {
  const signal = untilSignal();
  const service = await startServing(options);
  let reason = "";
  let hasShownUrls = false;
  const cell = startDemoCell(
    {
      socketPath: service.cellSocketPath,
      seed: options.seed,
      runs: options.runs ?? 0,
      ...(options.captures !== null && { capturesDirectory: options.captures }),
    },
    (report) => {
      if (report.kind === "failed") reason = `: ${report.message}`;
      if (report.kind === "run_ended" && report.ending === "finished" && !hasShownUrls) {
        hasShownUrls = true;
        showUrls(service.url, report);
      }
    },
  );
  try {
    const code = await Promise.race([signal, cell.exited]);
    // Its last words may still be on their way when it has ended.
    if (typeof code === "number" && cell.child.connected) await once(cell.child, "disconnect");
    // A terminal's Ctrl-C goes to the cell as well: it can be gone before our own signal is here.
    if (code === 0) await signal;
    else if (typeof code === "number") throw new DemoCellError(`the demo cell ended with ${code}${reason}`);
    else if (code === null) throw new DemoCellError(`the demo cell was killed${reason}`);
  } finally {
    await cell.stop();
    await stopGracefully(service);
  }
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
