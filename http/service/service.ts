import { LIMITS } from "../../core/limits.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { directoryBytes } from "../../storage/disk/whole-files.js";
import { HUB_THREAD, type HubThreadOptions } from "../../workers/hub/hub-options.js";
import { type PlantOptions, ShipperHandle } from "../../workers/plant/shipper-handle.js";
import { RecorderError, RecorderHandle } from "../../workers/recorder/recorder-handle.js";
import type { RecorderOptions, RecorderReady } from "../../workers/recorder/recorder-messages.js";
import { receiverPolicy, receiverRanges } from "../../workers/webhooks/dispatcher/receiver-policy.js";
import { LargeDocuments } from "../documents/large-documents.js";
import { ProgramStatistics } from "../documents/program-statistics.js";
import { SharedWork } from "../documents/shared-work.js";
import { ThreadSlices } from "../documents/thread-slices.js";
import { readOnlyRoutes, refuseRequest } from "../hub/read-only-hub.js";
import { LiveClients } from "../live/live-clients.js";
import type { ServiceLog } from "../log/service-log.js";
import type { AllowedHosts } from "../requests/allowed-hosts.js";
import type { ApiKeys } from "../requests/api-keys.js";
import type { CrossOrigin } from "../requests/cross-origin.js";
import { RequestPipeline } from "../requests/request-pipeline.js";
import { serviceRoutes } from "../routes/service-routes.js";
import { startFront } from "../server/choose-server.js";
import type { FrontChoice } from "../server/server-name.js";
import type { HttpServer, TlsFiles } from "../server/server-options.js";
import { FindingsUpkeep } from "./findings-upkeep.js";
import { Metrics } from "./metrics.js";
import { recorderCallbacks } from "./recorder-callbacks.js";
import { RequestDurations } from "./request-durations.js";
import { ServiceReaders } from "./service-readers.js";

/** Cache of large documents of runs, with their compressed forms: three of the largest. */
const LARGE_DOCUMENT_BYTES = 80 * 1024 * 1024;
/** Cache of what is needed to serve files of runs with large documents. */
const LARGE_RUN_BYTES = 32 * 1024 * 1024;
/** Share of a stop's grace time that is kept for answers to clients whose webhook attempt was cut short. */
const ANSWER_MS = 1_000;
/** How long a message to the plant may take at a stop. One that is cut short is found in the plant, or sent again, after the next start. */
const SHIPPER_STOP_MS = 500;

export interface ServiceOptions {
  recorder: RecorderOptions;
  /** Given: there is no recorder. The store is filled from this plant, and only read. */
  hub?: Pick<HubThreadOptions, "address" | "cacheBytes"> | undefined;
  /** Undefined: the log is shipped to no plant. */
  plant?: PlantOptions | undefined;
  front: FrontChoice;
  host: string;
  port: number;
  /** Most HTTP connections at a time. */
  maxConnections?: number | undefined;
  /** Threads of the artefact pool. */
  artefactThreads: number;
  /** Undefined: plain HTTP. */
  tls: TlsFiles | undefined;
  /** What absolute links start with; undefined: the request's Host. */
  baseUrl: string | undefined;
  /** Undefined: no key is needed. */
  apiKeys?: ApiKeys | undefined;
  crossOrigin?: CrossOrigin;
  /** Undefined: any Host. */
  allowedHosts?: AllowedHosts | undefined;
  /** Most clients that follow changes at a time; default `LIMITS.liveStreams`. */
  liveStreams?: number;
  log: ServiceLog;
}

export interface Service {
  /** `http://host:port`, or https, as it listens. */
  readonly url: string;
  /** The HTTP server that is used, for people. */
  readonly front: string;
  readonly cellSocketPath: string;
  /** Resolves when recording has failed until the next start, with the time and the reason. `stop` does not resolve it. */
  readonly recordingEnded: Promise<string>;
  /**
   * Accepts no new connections, lets requests end within `graceMs`, commits what producers sent, and releases the data directory.
   * @throws RecorderError if recording had failed before, so that not everything could be committed; everything is closed all the same
   */
  stop(graceMs: number): Promise<void>;
}

/**
 * Opens the store, reads the view from it, lets producers connect and serves HTTP, in this order.
 * @throws RecorderError if the store cannot be opened, HttpServerError if it cannot listen on the address; nothing is left open
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { log, recorder: recorderOptions } = options;
  const readers = new ServiceReaders({
    dataDirectory: recorderOptions.dataDirectory,
    log,
    apiKeys: options.apiKeys,
    artefactThreads: options.artefactThreads,
    isHub: options.hub !== undefined,
  });
  const recorder = startWriter(options, readers);
  let large: LargeDocuments | undefined;
  let shipper: ShipperHandle | undefined;
  const stopReading = async (): Promise<void> => {
    await shipper?.stop(SHIPPER_STOP_MS);
    await large?.close();
    readers.close();
  };
  try {
    const ready = await recorder.ready;
    readers.finishOpening();
    logReady(options, ready, readers.view.runs.size);
    shipper = startShipper(options, ready.storeId, (sequence) => recorder.capturesShipped(sequence));
    const slices = new ThreadSlices();
    large = new LargeDocuments({
      view: readers.view,
      work: new SharedWork(slices),
      keptBytes: LARGE_DOCUMENT_BYTES,
      keptRunBytes: LARGE_RUN_BYTES,
      onStrayError: (error) => log.warn({ err: error }, "the thread of large documents failed without a task"),
    });
    const live = new LiveClients({ limit: options.liveStreams ?? LIMITS.liveStreams });
    if (options.apiKeys !== undefined) options.apiKeys.onRemoved = () => live.endAll();
    const { fold } = readers.view;
    const findings = new FindingsUpkeep({
      dataDirectory: recorderOptions.dataDirectory,
      make: (task) => readers.artefacts.makeForRecorder(task),
    });
    findings.sealedSegments(fold.sealedSegments);
    const tellShipper = () => shipper?.committed(fold.appliedSequence);
    tellShipper();
    fold.onApplied = () => {
      tellShipper();
      live.viewChanged();
      findings.sealedSegments(fold.sealedSegments);
    };
    const front = await serveHttp(options, { readers, recorder, large, slices, live, shipper });
    recorder.serving(front.server.port);
    return {
      url: front.url,
      front: front.server.label,
      cellSocketPath: ready.cellSocketPath,
      recordingEnded: readers.recordingEnded,
      async stop(graceMs) {
        const attemptGraceMs = Math.max(0, graceMs - ANSWER_MS);
        recorder.stopDeliveries(attemptGraceMs);
        live.close();
        await front.server.close(graceMs);
        await readers.artefacts.close();
        const failure = await recorder.stop(attemptGraceMs);
        await stopReading();
        if (failure !== null) throw new RecorderError(failure);
      },
    };
  } catch (error) {
    await readers.artefacts.close();
    await recorder.stop();
    await stopReading();
    throw error;
  }
}

interface ServiceParts {
  readers: ServiceReaders;
  recorder: RecorderHandle;
  large: LargeDocuments;
  slices: ThreadSlices;
  live: LiveClients;
  shipper: ShipperHandle | undefined;
}

function logReady({ hub, log }: ServiceOptions, { cellSocketPath, cellListen }: RecorderReady, runs: number): void {
  if (hub !== undefined) log.info({ runs }, "the view is ready, the plant is read");
  else
    log.info(
      { runs, cell_socket: cellSocketPath, cell_listen: cellListen },
      "the view is ready, producers can connect",
    );
}

/** Starts the thread that writes the store: the recorder, or that of a hub. */
function startWriter({ recorder, hub, artefactThreads, log }: ServiceOptions, readers: ServiceReaders): RecorderHandle {
  const options = { ...recorder, artefactTasks: artefactThreads + 1 };
  const callbacks = recorderCallbacks(readers, log);
  if (hub === undefined) return new RecorderHandle(options, callbacks);
  const { dataDirectory, segmentBytes } = recorder;
  const workerData: HubThreadOptions = {
    ...{ dataDirectory, ...hub },
    ...(segmentBytes !== undefined && { segmentBytes }),
  };
  const writer = new RecorderHandle(options, callbacks, { url: HUB_THREAD, workerData });
  readers.hub = writer;
  return writer;
}

function startShipper(
  { plant, recorder, log }: ServiceOptions,
  storeId: string | null,
  onCaptures: (sequence: number) => void,
): ShipperHandle | undefined {
  if (plant === undefined || storeId === null) return undefined;
  const onFault = (fault: string | null): void => {
    if (fault === null) log.info({ cell: plant.cell }, "the plant takes all that it should get");
    else log.warn({ cell: plant.cell, cause: fault }, "the plant does not get everything");
  };
  return new ShipperHandle({ ...plant, storeId, path: recorder.dataDirectory }, onFault, onCaptures);
}

/** Starts the HTTP server over the opened store. @throws HttpServerError if it cannot listen on the address */
async function serveHttp(options: ServiceOptions, parts: ServiceParts): Promise<{ server: HttpServer; url: string }> {
  const { log, recorder: recorderOptions, host, tls } = options;
  const { readers, recorder, large, slices, live, shipper } = parts;
  const { view, health } = readers;
  const { dataDirectory } = recorderOptions;
  const requests = new RequestDurations();
  const components = () => [
    ...health.rows(readers.artefacts.row()),
    ...(shipper ? [shipper.row()] : []),
    ...view.components(),
  ];
  let server: HttpServer | undefined;
  const metrics = new Metrics({
    requests,
    recorder: () => recorder.figures(),
    front: () => server?.figures() ?? { openRequests: 0, heldBytes: 0 },
    logBytes: () => directoryBytes(nodeFileSystem, `${dataDirectory}/meta`),
    freeBytes: async () => (await nodeFileSystem.room(dataDirectory)).freeBytes,
    runs: () => view.runs.size,
    artefacts: () => readers.artefacts.figures(),
    live: () => live.figures,
    shipper: () => shipper?.figures(),
    cache: () => recorder.cacheFigures,
    madeBytes: () => readers.generatedFiles.keptBytes,
    components,
  });
  const ranges = receiverRanges(recorderOptions.receivers);
  const statistics = new ProgramStatistics({ view, make: readers.artefacts.makeForClient, slices, dataDirectory });
  const routes = serviceRoutes({
    metrics,
    large,
    statistics,
    slices,
    live,
    view,
    openStoredExtents: readers.openStoredExtents,
    generatedFiles: readers.generatedFiles,
    fetchForReport: readers.hubCaptures && ((run) => readers.hubCaptures?.fetchForReport(run)),
    health: components,
    serviceVersion: recorderOptions.serviceVersion,
    baseUrl: options.baseUrl,
    request: (request, gone) => (options.hub ? refuseRequest(view, request) : recorder.request(request, gone)),
    isStarting: () => readers.isStarting,
    receiverPolicy: (port) => receiverPolicy(ranges, server?.port ?? null, port),
  });
  const scheme = tls === undefined ? "http" : "https";
  const pipeline = new RequestPipeline({
    routes: options.hub === undefined ? routes : readOnlyRoutes(view, routes),
    baseUrl: options.baseUrl,
    scheme,
    apiKeys: options.apiKeys,
    allowedHosts: options.allowedHosts,
    ...(options.crossOrigin !== undefined && { crossOrigin: options.crossOrigin }),
    log,
    dataDirectory,
    onAnswer: (method, path, status, durationMs) => requests.count(method, path, status, durationMs),
    onReadDamage: (error) => health.readDamage.note(error),
    onShortage: (error) => health.shortage.note(error),
  });
  server = await startFront(options.front, {
    ...{ host, port: options.port, maxConnections: options.maxConnections },
    ...{ tls, pipeline, log },
  });
  const url = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${server.port}`;
  log.info({ front: server.label, url }, "HTTP is served");
  return { server, url };
}
