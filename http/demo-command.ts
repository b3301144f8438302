import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { FRAME_FORMATS, frameFileName, sweepFileName } from "../core/manifest.js";
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
  let shown: Promise<void> | undefined;
  const ending = new AbortController();
  const cell = startDemoCell(
    {
      socketPath: service.cellSocketPath,
      seed: options.seed,
      runs: options.runs ?? 0,
      ...(options.captures !== null && { capturesDirectory: options.captures }),
    },
    (report) => {
      if (report.kind === "failed") reason = `: ${report.message}`;
      if (report.kind === "run_ended" && report.ending === "finished") {
        shown ??= showUrls(service.url, report, webhookId, ending.signal);
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
    ending.abort();
    await cell.stop();
    await shown;
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

/** Between two looks at whether the first run's formats are made. */
const LOOK_MS = 100;

interface ListedFile {
  name: string;
  step_index: number | null;
}

/**
 * What is listed of the run once it has ended: every format of its captures, and all of them answer then. Undefined where the interface does not
 * answer from here (API keys, a certificate of one's own), or the demo ends.
 */
async function listedFiles(base: string, runId: string, signal: AbortSignal): Promise<ListedFile[] | undefined> {
  const read = async (path: string): Promise<unknown> => {
    const response = await fetch(base + path, { signal });
    if (!response.ok) throw new Error(`GET ${path} answered ${response.status}`);
    return response.json();
  };
  try {
    // The front may show a run as running still whose end the cell has been told of.
    while (/^(running|finalizing)$/.test(((await read(`/runs/${runId}`)) as { status: string }).status)) {
      await pause(LOOK_MS, undefined, { signal });
    }
    return (await read(`/runs/${runId}/files`)) as ListedFile[];
  } catch {
    return undefined;
  }
}

/** Prints URLs of the first run as soon as all of them answer; none any more once the demo ends. Never rejects. */
async function showUrls(
  base: string,
  { runId, frameIds }: Extract<DemoCellReport, { kind: "run_ended" }>,
  webhookId: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const [frameId] = frameIds;
  const listed = await listedFiles(base, runId, signal);
  if (signal.aborted) return;
  const names = new Set(listed?.map(({ name }) => name));
  const formats = FRAME_FORMATS.filter((format) =>
    // What needs no processing is there in any case.
    listed === undefined ? format === "npy" : names.has(frameFileName(String(frameId), format)),
  );
  const sweeps = (listed ?? []).filter(({ name, step_index: step }) => step !== null && name === sweepFileName(step));
  const pages = [
    "/runs",
    `/runs/${runId}`,
    `/runs/${runId}/quality-report`,
    `/runs/${runId}/files`,
    ...(frameId === undefined ? [] : [`/sensor/frames/${frameId}/files`]),
    ...(webhookId === undefined ? [] : [`/webhooks/${webhookId}/deliveries`]),
    "/health",
  ];
  const downloads = [
    ...(frameId === undefined ? [] : formats.map((format) => `/sensor/frames/${frameId}/file.${format}`)),
    ...sweeps.map(({ step_index: step }) => `/runs/${runId}/steps/${step}/cl_sweep.csv`),
    ...[...names].map((name) => `/runs/${runId}/files/${encodeURIComponent(name)}`),
  ];
  // Under their own names: most are nothing for a terminal.
  const lines = [...pages.map((path) => `curl ${base}${path}`), ...downloads.map((path) => `curl -OJ ${base}${path}`)];
  console.log(`the first run is there; try:\n${lines.map((line) => `  ${line}`).join("\n")}`);
}
