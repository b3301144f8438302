import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { type ComponentRow, since } from "../../core/health.js";
import { type CaptureKind, capturePath } from "../../storage/captures/capture-path.js";
import { CaptureReader } from "../../storage/captures/capture-reader.js";
import { directoryBytes, nodeFileSystem } from "../../storage/disk/file-system.js";
import { LogReader } from "../../storage/log/log-reader.js";
import { ReadDamage } from "../../storage/log/read-damage.js";
import { withRelativePaths } from "../../storage/relative-paths.js";
import { SnapshotReader } from "../../storage/snapshot/snapshot-reader.js";
import { StorageError } from "../../storage/storage-error.js";
import { View } from "../../storage/view/view.js";
import { SYSTEM_TIMERS } from "../../workers/artefacts/pool/artefact-pool.js";
import { RecorderError, startRecorder } from "../../workers/recorder/recorder-handle.js";
import type { RecorderOptions } from "../../workers/recorder/recorder-messages.js";
import { receiverPolicy, receiverRanges } from "../../workers/webhooks/receivers/receiver-policy.js";
import { LargeDocuments } from "../documents/large-documents.js";
import { SharedWork } from "../documents/shared-work.js";
import { ThreadSlices } from "../documents/thread-slices.js";
import { ArtefactWork } from "../downloads/artefact-work.js";
import { MadeFiles } from "../downloads/made-files.js";
import type { OpenStoredSlices } from "../downloads/stored-stream.js";
import type { ServiceLog } from "../log/service-log.js";
import type { AllowedHosts } from "../requests/allowed-hosts.js";
import type { ApiKeys } from "../requests/api-keys.js";
import type { CrossOrigin } from "../requests/cross-origin.js";
import { RequestPipeline } from "../requests/request-pipeline.js";
import { serviceRoutes } from "../routes/service-routes.js";
import { startFront } from "../server/choose-server.js";
import type { FrontChoice } from "../server/server-name.js";
import type { HttpServer, TlsFiles } from "../server/server-options.js";
import { Metrics } from "./metrics.js";
import { RequestDurations } from "./request-durations.js";
import { rowsWithoutRecorder } from "./rows-without-recorder.js";
import { SeenShortage } from "./seen-shortage.js";

/** Pieces of PLY and CSV for the next client: a frame or two. */
const MADE_FILES_BYTES = 64 * 1024 * 1024;
/** Large documents of runs, with their compressed forms: three of the largest. */
const LARGE_DOCUMENT_BYTES = 80 * 1024 * 1024;
/** What serves files of runs with large documents. */
const LARGE_RUN_BYTES = 32 * 1024 * 1024;
/** Of the time that a stop leaves to requests: whoever waits for an attempt that is cut short gets an answer within it. */
const ANSWER_MS = 1_000;

export interface ServiceOptions {
  recorder: RecorderOptions;
  front: FrontChoice;
  host: string;
  port: number;
  /** Of HTTP clients at a time. */
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
  log: ServiceLog;
}

export interface Service {
  /** `http://host:port`, or https, as it listens. */
  readonly url: string;
  /** What serves it, for people. */
  readonly front: string;
  readonly cellSocketPath: string;
  /** Resolves when nothing is recorded any more before the next start, with since when and why. Never by `stop`. */
  readonly recordingEnded: Promise<string>;
  /**
   * Takes no new connections, lets requests end within `graceMs`, commits what producers sent, frees the data directory.
   * @throws RecorderError when not all could be committed, since the recording had ended before; everything is closed all the same
   */
  stop(graceMs: number): Promise<void>;
}

/**
 * Opens the store, reads the view out of it, takes producers in and answers HTTP, in this order.
 * @throws RecorderError when the store cannot be opened, HttpServerError when the address cannot be served; nothing is left open
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { log, recorder: recorderOptions, host, tls } = options;
  const { dataDirectory } = recorderOptions;
  const logReader = new LogReader({ fileSystem: nodeFileSystem, directory: `${dataDirectory}/meta` });
  const captureReader = new CaptureReader({ fileSystem: nodeFileSystem });
  const capturePathOf = (runId: string, kind: CaptureKind) => `${dataDirectory}/captures/${capturePath(runId, kind)}`;
  const nowUs = () => Date.now() * 1000;
  const readDamage = new ReadDamage(({ data }) => log.error({ error: data }, "stored bytes cannot be read"), nowUs);
  const shortage = new SeenShortage(nowUs);
  const shownRows = (rows: readonly ComponentRow[]) =>
    [readDamage.detail, shortage.detail].reduce(
      (faulty, fault) => withFault(faulty, "log", fault),
      withFault(rows, "recorder", options.apiKeys?.fault ?? null),
    );
  const newView = () => new View({ reader: logReader, onReadFailure: (error) => readDamage.note(error) });
  let view = newView();
  let ownRows: ComponentRow[] = [];
  let isServing = false;
  const artefacts = new ArtefactWork({
    threads: options.artefactThreads,
    timers: SYSTEM_TIMERS,
    report: (message, fields) => log.warn(fields, message),
    onReadDamage: (error) => readDamage.note(error),
    nowUs,
  });
  const openStoredSlices: OpenStoredSlices = (runId, kind, slices) =>
    captureReader.openSlices(capturePathOf(runId, kind), slices);
  const madeFiles = new MadeFiles({
    make: artefacts.makeForClient,
    open: openStoredSlices,
    capturePathOf: (runId) => capturePathOf(runId, "capture"),
    keptBytes: MADE_FILES_BYTES,
  });

  let setRecordingEnded: (cause: string) => void = () => {};
  const recordingEnded = new Promise<string>((resolve) => (setRecordingEnded = resolve));

  const recorder = startRecorder(
    { ...recorderOptions, artefactTasks: options.artefactThreads + 1 },
    {
      async onSnapshot(path, sequence, moves) {
        const reader = await SnapshotReader.open(nodeFileSystem, path);
        try {
          await view.loadSnapshot(reader, sequence, moves);
        } finally {
          await reader.close();
        }
      },
      onSnapshotDiscarded() {
        view = newView();
      },
      // While the store is read, nobody else wants the thread.
      onBatch: (batch) => (isServing ? view.applyBatchInSlices(batch, eventLoopTurn) : view.applyBatch(batch)),
      onHealth: (rows) => {
        ownRows = rows;
      },
      onLog: ({ level, message, fields }) => log[level](fields, message),
      onReadDamage: ({ code, message, params }) => readDamage.note(new StorageError(code, message, params)),
      onCapturesRemoved: (runIds) => {
        for (const runId of runIds) captureReader.forget(capturePathOf(runId, "capture"));
      },
      onHoldSegment: (segmentBase) => logReader.hold(segmentBase),
      onSegmentMoved: async (moves) => {
        logReader.replaced(moves.segmentBase);
        await view.applyMoves(moves, eventLoopTurn);
        logReader.letGo(moves.segmentBase);
      },
      onArtefactWanted: (task) => artefacts.makeForRecorder(task),
      async onDeliveryWanted(deliveryId) {
        try {
          return await view.delivery(deliveryId);
        } catch (error) {
          readDamage.note(error);
          throw error;
        }
      },
      onDeliveriesEnded: () => view.endPausesForGood(),
      onRecordingEnded: setRecordingEnded,
      onFailure: (error) => {
        log.fatal({ error }, "the recorder ended: nothing is recorded any more, reads go on");
        ownRows = rowsWithoutRecorder(ownRows, error, nowUs());
        view.endPausesForGood();
        setRecordingEnded(since(nowUs(), error.message));
      },
    },
  );
  let large: LargeDocuments | undefined;
  const stopReading = async () => {
    await large?.close();
    logReader.close();
    captureReader.close();
  };

  try {
    const ready = await recorder.ready;
    view.finishOpening();
    isServing = true;
    log.info(
      { runs: view.runCount, cell_socket: ready.cellSocketPath, cell_listen: ready.cellListen },
      "the view is read, producers can connect",
    );
    const requests = new RequestDurations();
    let server: HttpServer | undefined;
    const metrics = new Metrics({
      requests,
      recorder: () => recorder.figures(),
      front: () => server?.figures() ?? { openRequests: 0, heldBytes: 0 },
      logBytes: () => directoryBytes(nodeFileSystem, `${dataDirectory}/meta`),
      freeBytes: async () => (await nodeFileSystem.room(dataDirectory)).freeBytes,
      runs: () => view.runCount,
      artefacts: () => artefacts.figures(),
      madeBytes: () => madeFiles.keptBytes,
    });
    const ranges = receiverRanges(recorderOptions.receivers);
    const slices = new ThreadSlices();
    large = new LargeDocuments({
      view,
      work: new SharedWork(slices),
      keptBytes: LARGE_DOCUMENT_BYTES,
      keptRunBytes: LARGE_RUN_BYTES,
      onStrayError: (error) => log.warn({ err: error }, "the thread of large documents failed without a task"),
    });
    const routes = serviceRoutes({
      metrics,
      large,
      slices,
      view,
      openStoredSlices,
      madeFiles,
      health: () => [
        ...[...shownRows(ownRows), artefacts.row()].map((row) => shownRow(row, dataDirectory)),
        ...view.components(),
      ],
      serviceVersion: recorderOptions.serviceVersion,
      baseUrl: options.baseUrl,
      request: (request, gone) => recorder.request(request, gone),
      receiverPolicy: (port) => receiverPolicy(ranges, server?.port ?? null, port),
    });
    const scheme = tls === undefined ? "http" : "https";
    const pipeline = new RequestPipeline({
      routes,
      baseUrl: options.baseUrl,
      scheme,
      apiKeys: options.apiKeys,
      allowedHosts: options.allowedHosts,
      ...(options.crossOrigin !== undefined && { crossOrigin: options.crossOrigin }),
      log,
      dataDirectory,
      onAnswer: (method, path, status, durationMs) => requests.count(method, path, status, durationMs),
      onReadDamage: (error) => readDamage.note(error),
      onShortage: (error) => shortage.note(error),
    });
    const listening = await startFront(options.front, {
      ...{ host, port: options.port, maxConnections: options.maxConnections },
      ...{ tls, pipeline, log },
    });
    server = listening;
    const url = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${listening.port}`;
    log.info({ front: listening.label, url }, "HTTP is served");
    recorder.serving(listening.port);
    return {
      url,
      front: listening.label,
      cellSocketPath: ready.cellSocketPath,
      recordingEnded,
      async stop(graceMs) {
        const attemptGraceMs = Math.max(0, graceMs - ANSWER_MS);
        recorder.stopDeliveries(attemptGraceMs);
        await listening.close(graceMs);
        await artefacts.close();
        const failure = await recorder.stop(attemptGraceMs);
        await stopReading();
        if (failure !== null) throw new RecorderError(failure);
      },
    };
  } catch (error) {
    await artefacts.close();
    await recorder.stop();
    await stopReading();
    throw error;
  }
}

/** Without the folders of the machine: the log has them. */
function shownRow(row: ComponentRow, dataDirectory: string): ComponentRow {
  return row.detail === null ? row : { ...row, detail: withRelativePaths(row.detail, dataDirectory) };
}

/** The rows with a fault added to the one of this key, which is degraded by it at least. */
function withFault(rows: readonly ComponentRow[], key: string, fault: string | null): readonly ComponentRow[] {
  if (fault === null) return rows;
  return rows.map((row) => {
    if (row.key !== key) return row;
    const status = row.status === "healthy" ? "degraded" : row.status;
    return { ...row, status, detail: row.detail === null ? fault : `${row.detail}; ${fault}` };
  });
}
