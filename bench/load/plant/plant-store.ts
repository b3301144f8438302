import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError } from "../../../http/commands/resolve-options.js";
import { startNats } from "../../../http/demo/plant/nats-process.js";
import { pathsIn, viewDataDirectory } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { LogTail } from "../../../workers/plant/log-tail.js";
import { type PlantAddress, PlantClient } from "../../../workers/plant/plant-client.js";
import { Shipper, type ShipperStatus } from "../../../workers/plant/shipper.js";
import type { BenchmarkContext, OpenBenchmark } from "../../harness/benchmark.js";
import { getJson } from "../http/http-load.js";
import { type ServerProcess, startServer } from "../http/server-process.js";
import { waitUntil } from "../run-producer.js";
import { prepareCellStore, programsOf, type RunStore, serialNumbersOf } from "../run-store.js";

const PROGRAM = fileURLToPath(new URL("../../../http/main.js", import.meta.url));
const CELLS = { smoke: 4, full: 100 };
const RUNS_OF_CELL = { smoke: 100, full: 10_000 };
/** Raise it when the same arguments make another plant. */
const PLANT_VERSION = 1;
const CATCH_UP_MS = 600_000;

export interface NatsServer {
  url: string;
  stop(): Promise<void>;
}

/** Folders of a plant: `nats`, and that of a hub which has read all of it. */
export interface PlantFolders {
  path: string;
  store: RunStore;
}

/** Without a NATS server, the contestants are missing. */
export function missingWithoutNats(
  names: readonly string[],
  open: (context: BenchmarkContext) => Promise<OpenBenchmark>,
): typeof open {
  return async (context) => {
    try {
      return await open(context);
    } catch (error) {
      const why = whyNoPlant(error);
      return { runners: {}, missing: names.map((name) => ({ name, why })), notes: [] };
    }
  };
}

/** @throws the error, unless it says that there is no server */
export function whyNoPlant(error: unknown): string {
  if (error instanceof UsageError) return error.message;
  throw error;
}

/** Starts a server with the log stream; the end of the benchmark ends it. @throws UsageError if there is none */
export async function startNatsServer(
  context: Pick<BenchmarkContext, "onClose">,
  directory: string,
): Promise<NatsServer> {
  mkdirSync(directory, { recursive: true });
  let child: ChildProcess | undefined;
  const stop = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  };
  context.onClose(stop);
  const { url } = await startNats({ directory, detached: false, onStarted: (started) => (child = started) });
  const client = await PlantClient.connect(addressOf(url));
  await client.createStreams({ replicas: 1, captureDays: 30, captureBytes: null });
  await client.close();
  return { url, stop };
}

export function startHub(context: BenchmarkContext, url: string, dataDirectory: string): Promise<ServerProcess> {
  return startServer(context, "the hub", [PROGRAM, "hub", "--plant", url, "--data", dataDirectory, "--port", "0"]);
}

/** Waits until the hub shows so many runs. */
export async function untilShown(hub: ServerProcess, runs: number, filter = ""): Promise<void> {
  const totalOf = async () => (await getJson<{ total: number }>(`${hub.url}/runs?limit=1${filter}`)).total;
  await waitUntil(`${runs} runs at the hub`, async () => (await totalOf()) === runs, CATCH_UP_MS);
}

/** A hub over a plant of 100 cells with 10,000 runs each. Both are copies, so that they may change. */
export async function startPlant(
  context: BenchmarkContext,
): Promise<{ store: RunStore; server: NatsServer; hub: ServerProcess }> {
  const { path, store } = await preparePlant(context);
  const copy = join(context.directory, "plant");
  cpSync(path, copy, { recursive: true });
  const server = await startNatsServer(context, join(copy, "nats"));
  const hub = await startHub(context, server.url, join(copy, "hub"));
  await untilShown(hub, store.runs);
  return { store, server, hub };
}

/** Makes the plant unless it is there: the cells' shippers run in this process, and a hub reads all. @throws UsageError without a server */
export async function preparePlant(context: BenchmarkContext): Promise<PlantFolders> {
  const { size, seed, storesDirectory } = context;
  const runs = RUNS_OF_CELL[size];
  const cells = Array.from({ length: CELLS[size] }, (_, nth) => `line${Math.floor(nth / 10)}-cell${nth % 10}`);
  const path = join(storesDirectory, `plant-${cells.length}x${runs}-seed-${seed}-v${PLANT_VERSION}`);
  const unfinished = `${path}.unfinished`;
  const own = { ...context, storesDirectory: `${unfinished}/cells`, log: () => {} };
  if (!existsSync(path)) {
    rmSync(unfinished, { recursive: true, force: true });
    const startMs = performance.now();
    const server = await startNatsServer(context, `${unfinished}/nats`);
    const shipping: Promise<void>[] = [];
    for (const [nth, cell] of cells.entries()) {
      const { path: data } = await prepareCellStore(own, { runs, cells: cells.length, cell: nth });
      shipping.push(ship(server.url, cell, data));
    }
    await Promise.all(shipping);
    const shippedMs = performance.now();
    const hub = await startHub(context, server.url, `${unfinished}/hub`);
    await untilShown(hub, cells.length * runs);
    const readSeconds = (performance.now() - shippedMs) / 1000;
    await hub.stop();
    await server.stop();
    rmSync(`${unfinished}/cells`, { recursive: true });
    renameSync(unfinished, path);
    const seconds = (shippedMs - startMs) / 1000;
    context.log(
      `the plant was made and shipped in ${seconds.toFixed(1)} s, and read by a hub in ${readSeconds.toFixed(1)} s`,
    );
  }
  const total = cells.length * runs;
  const programIds = programsOf(seed).programs.map(({ id }) => id);
  const store = { path: join(path, "hub"), runs: total, programIds, serialNumbers: serialNumbersOf(total), cells };
  return { path, store };
}

/** Ships a store that nobody writes, by the product's own shipper. */
async function ship(url: string, cell: string, data: string): Promise<void> {
  const { storeId } = await viewDataDirectory(nodeFileSystem, data);
  const tail = new LogTail({ fileSystem: nodeFileSystem, directory: pathsIn(data).metaPath });
  const onStatus = ({ fault, shippedSequence, oldestUnshippedUs }: ShipperStatus): void => {
    // The first status comes before anything has been read.
    if (
      fault === null &&
      shippedSequence > 0 &&
      oldestUnshippedUs === null &&
      shippedSequence >= tail.durableSequence
    ) {
      shipper.stop();
    }
  };
  const connect = () => PlantClient.connect(addressOf(url));
  const shipper = new Shipper({ cell, storeId: storeId as string, tail, connect, onStatus });
  await shipper.run();
}

function addressOf(url: string): PlantAddress {
  return { servers: [url], credentials: null, caPath: null };
}
