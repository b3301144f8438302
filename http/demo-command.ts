import { once } from "node:events";
import type { DemoCellReport } from "../workers/demo-cell/demo-cell-messages.js";
import { startDemoCell } from "../workers/demo-cell/demo-cell-process.js";
import { startDemoReceiver } from "../workers/demo-cell/demo-receiver.js";
import type { DemoOptions } from "./command-options.js";
import { startServing, stopGracefully, untilSignal } from "./serve-command.js";

/** The demo cell could not go on. */
export class DemoCellError extends Error {
  override name = "DemoCellError";
}

/**
 * `demo`: the service, beside it a process that is a cell, over the real cell link, and a receiver of its webhooks. The service goes on
 * when the cell has made all its runs; a signal ends all.
 * @throws DemoCellError when the cell ended by an error, once the service has ended too
 */
export async function demo(options: DemoOptions): Promise<void> {
  const signal = untilSignal();
  const receiver = await startDemoReceiver();
  const service = await startServing(options).catch((error: unknown) => {
    receiver.close();
    throw error;
  });
  const webhookId = await registerReceiver(service.url, receiver.url);
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
        showUrls(service.url, report, webhookId);
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
    // Open, the receiver would keep the process from ending.
    await stopGracefully(service).finally(() => receiver.close());
  }
}

const RECEIVER_NAME = "demo receiver";

/**
 * Registers the receiver as a client does, in place of that of an earlier start. Gives the webhook's id; undefined where the interface
 * does not take it from here (API keys, a certificate of one's own): the demo goes on without.
 */
async function registerReceiver(base: string, url: string): Promise<string | undefined> {
  const send = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(base + path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
    });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}`);
    return response.json();
  };
  try {
    const webhooks = (await send("GET", "/webhooks")) as { id: string; name: string }[];
    const earlier = webhooks.find(({ name }) => name === RECEIVER_NAME);
    const events = ["ProgramStarted", "ProgramCompleted", "ProgramFailed", "ProgramCancelled"];
    const settings = { name: RECEIVER_NAME, url, subscribed_events: events };
    const webhook =
      earlier === undefined
        ? await send("POST", "/webhooks", settings)
        : await send("PATCH", `/webhooks/${earlier.id}`, settings);
    return (webhook as { id: string }).id;
  } catch (error) {
    console.log(`no receiver of webhooks is registered: ${(error as Error).message}`);
    return undefined;
  }
}

function showUrls(
  base: string,
  { runId, frameIds }: Extract<DemoCellReport, { kind: "run_ended" }>,
  webhookId: string | undefined,
): void {
  const [frameId] = frameIds;
  const urls = [
    `${base}/runs`,
    `${base}/runs/${runId}`,
    `${base}/runs/${runId}/quality-report`,
    `${base}/runs/${runId}/files`,
    ...(frameId === undefined
      ? []
      : [`${base}/sensor/frames/${frameId}/files`, `${base}/sensor/frames/${frameId}/file.npy`]),
    ...(webhookId === undefined ? [] : [`${base}/webhooks/${webhookId}/deliveries`]),
    `${base}/health`,
  ];
  console.log(`the first run is there; try:\n${urls.map((url) => `  curl ${url}`).join("\n")}`);
}
