import { setTimeout as pause } from "node:timers/promises";
import { frameFileName } from "../../core/run/manifest.js";
import type { DemoCellReport } from "../../workers/demo-cell/demo-cell-messages.js";
import type { DemoWebhookIds } from "./demo-webhooks.js";

export type EndedRun = Extract<DemoCellReport, { kind: "run_ended" }>;

/** Pause between two checks whether the things that the guide names exist. */
const LOOK_MS = 100;
/** How many of the oldest runs are searched for a removed capture. */
const OLDEST_RUNS = 20;

/** One line about what the cell did with one part. */
export function runLine({ number, serialNumber, ending, outcome, placedDefects }: EndedRun): string {
  const words = {
    passed: "passed",
    failed: "failed the inspection",
    indeterminate: "indeterminate: not all could be measured",
  };
  const result = outcome === null ? `the run ${ending === "failed" ? "failed" : "was cancelled"}` : words[outcome];
  const defects = placedDefects === 0 ? "" : `, ${placedDefects} defect${placedDefects === 1 ? "" : "s"} found`;
  return `run ${String(number).padStart(2)}  ${serialNumber}  ${result}${outcome === null ? "" : defects}`;
}

interface Delivery {
  id: string;
  program_run_id: string | null;
  status: string;
  attempts: number;
  payload: { data: { qc_checks?: { unit: string | null }[] } };
}

interface ManifestFile {
  name: string;
  frame_id: string | null;
  deleted_at: string | null;
}

interface RunList {
  runs: { id: string }[];
  total: number;
}

/** A GET of the service's interface. Rejects with an Error unless the answer is 2xx. */
type Get = <Shape>(path: string) => Promise<Shape>;

/**
 * What to look at, as lines with URLs, once these runs are complete and their webhooks delivered: every URL then answers. If the interface does not
 * answer (API keys, a private certificate), only what the cell itself knows is listed.
 * @returns undefined if the demo ends first
 */
export async function guide(
  base: string,
  runs: readonly EndedRun[],
  webhooks: DemoWebhookIds | undefined,
  signal: AbortSignal,
): Promise<string[] | undefined> {
  const get: Get = async <Shape>(path: string): Promise<Shape> => {
    const response = await fetch(base + path, { signal });
    if (!response.ok) throw new Error(`GET ${path} answered ${response.status}`);
    return (await response.json()) as Shape;
  };
  const entries: [what: string, path: string | undefined][] = [
    ["all runs, newest first", "/runs"],
    ...runEntries(runs),
  ];
  try {
    for (const { runId } of runs) await untilEnded(get, runId, signal);
    entries.push(["its picture", await picture(get, runs)]);
    if (webhooks !== undefined) {
      const runIds = new Set(runs.map(({ runId }) => runId));
      entries.push(...(await deliveryEntries(get, webhooks, runIds, signal)));
    }
    entries.push(["a capture that retention removed (410)", await removedCapture(get)]);
  } catch {
    if (signal.aborted) return undefined;
  }
  entries.push(["the cell's health", "/health"]);
  const shown = entries.filter(([, path]) => path !== undefined);
  const width = Math.max(...shown.map(([what]) => what.length));
  return shown.map(([what, path]) => `  ${what.padEnd(width)}  ${base}${path}`);
}

function runEntries(runs: readonly EndedRun[]): [string, string | undefined][] {
  const first = (is: (run: EndedRun) => boolean, path: (run: EndedRun) => string): string | undefined => {
    const run = runs.find(is);
    return run && path(run);
  };
  const report = ({ runId }: EndedRun): string => `/runs/${runId}/quality-report`;
  const isRepeated = (run: EndedRun): boolean =>
    runs.some(({ number, serialNumber }) => number < run.number && serialNumber === run.serialNumber);
  return [
    ["a failed inspection", first(({ outcome }) => outcome === "failed", report)],
    ["one that is indeterminate", first(({ outcome }) => outcome === "indeterminate", report)],
    ["a part that came twice", first(isRepeated, ({ serialNumber }) => `/runs?serial_number=${serialNumber}`)],
    [
      "a failed run",
      first(
        ({ ending }) => ending === "failed",
        ({ runId }) => `/runs/${runId}`,
      ),
    ],
    ["defects and where they lie", first(hasDefects, ({ runId }) => `/runs/${runId}/defects`)],
    ["the heights of a frame (NPY)", first(hasFrame, ({ frameIds }) => `/sensor/frames/${frameIds[0]}/file.npy`)],
  ];
}

const hasFrame = ({ ending, frameIds }: EndedRun): boolean => ending === "finished" && frameIds.length > 0;
const hasDefects = (run: EndedRun): boolean => hasFrame(run) && run.placedDefects > 0;

/** The view may still show a run as running when the cell already knows its end. */
async function untilEnded(get: Get, runId: string, signal: AbortSignal): Promise<void> {
  while (/^(running|finalizing)$/.test((await get<{ status: string }>(`/runs/${runId}`)).status)) {
    await pause(LOOK_MS, undefined, { signal });
  }
}

/** Path of the height map of the frame whose heights are listed; undefined if it could not be made. */
async function picture(get: Get, runs: readonly EndedRun[]): Promise<string | undefined> {
  const run = runs.find(hasFrame);
  if (run === undefined) return undefined;
  const [frameId] = run.frameIds as [string];
  const files = await get<ManifestFile[]>(`/runs/${run.runId}/files`);
  const isMade = files.some(({ name }) => name === frameFileName(frameId, "png"));
  return isMade ? `/sensor/frames/${frameId}/file.png` : undefined;
}

async function deliveryEntries(
  get: Get,
  webhooks: DemoWebhookIds,
  runIds: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<[string, string | undefined][]> {
  const path = (webhookId: string): string => `/webhooks/${webhookId}/deliveries`;
  const settled = async (webhookId: string): Promise<Delivery[]> => {
    for (;;) {
      const deliveries = await get<Delivery[]>(`${path(webhookId)}?limit=200`);
      const own = deliveries.filter(({ program_run_id: runId }) => runId !== null && runIds.has(runId));
      if (own.every(({ status }) => status !== "pending")) return own;
      await pause(LOOK_MS, undefined, { signal });
    }
  };
  const signed = await settled(webhooks.signed);
  const busy = await settled(webhooks.busy);
  const down = await settled(webhooks.down);
  const one = (deliveries: Delivery[], is: (delivery: Delivery) => boolean): string | undefined => {
    const found = deliveries.find(is);
    return found && `/webhook-deliveries/${found.id}`;
  };
  return [
    ["a signed webhook's deliveries", path(webhooks.signed)],
    [
      "an event in inches",
      one(signed, ({ payload: { data } }) => data.qc_checks?.some(({ unit }) => unit === "in") === true),
    ],
    ["a delivery that was retried", one(busy, ({ status, attempts }) => status === "delivered" && attempts > 1)],
    ["one that failed for good", one(down, ({ status }) => status === "failed")],
  ];
}

/** Path of a file whose bytes retention has removed. Retention starts with the oldest runs. */
async function removedCapture(get: Get): Promise<string | undefined> {
  const { total } = await get<RunList>("/runs?limit=1");
  const { runs } = await get<RunList>(`/runs?limit=${OLDEST_RUNS}&offset=${Math.max(0, total - OLDEST_RUNS)}`);
  for (const { id } of runs.reverse()) {
    const files = await get<ManifestFile[]>(`/runs/${id}/files`);
    const removed = files.find(({ frame_id, deleted_at }) => frame_id !== null && deleted_at !== null);
    if (removed !== undefined) return `/runs/${id}/files/${encodeURIComponent(removed.name)}`;
  }
  return undefined;
}
