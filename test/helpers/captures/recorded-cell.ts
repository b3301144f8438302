import pino from "pino";
import type { ComponentRow } from "../../../core/health.js";
import type { Change, RunChange, RunEnded } from "../../../core/link/change.js";
import { endRun, type RunEnding } from "../../../core/run/run-end.js";
import { foldRun } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import type { Timers } from "../../../core/timers.js";
import type { WebhookChange } from "../../../core/webhook/webhook-change.js";
import { LargeDocuments } from "../../../http/documents/large-documents.js";
import { ProgramStatistics } from "../../../http/documents/program-statistics.js";
import { GeneratedFiles, type MakeArtefact } from "../../../http/downloads/generated-files.js";
import type { OpenStoredExtents } from "../../../http/downloads/stored-stream.js";
import { readOnlyRoutes, refuseRequest } from "../../../http/hub/read-only-hub.js";
import { LiveClients, type LiveClientsOptions } from "../../../http/live/live-clients.js";
import type { ApiKeys } from "../../../http/requests/api-keys.js";
import type { CrossOrigin } from "../../../http/requests/cross-origin.js";
import { RequestPipeline } from "../../../http/requests/request-pipeline.js";
import { serviceRoutes } from "../../../http/routes/service-routes.js";
import type { WriteWebhook } from "../../../http/routes/webhooks/webhook-routes.js";
import { startFront } from "../../../http/server/choose-server.js";
import type { FrontChoice } from "../../../http/server/server-name.js";
import type { HttpServer } from "../../../http/server/server-options.js";
import { Metrics } from "../../../http/service/metrics.js";
import { RequestDurations } from "../../../http/service/request-durations.js";
import { CaptureReader } from "../../../storage/captures/capture-reader.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { forEachRecord, type LogRecord, type RecordLocation } from "../../../storage/log/committed-batch.js";
import type { RecordInput } from "../../../storage/log/log-options.js";
import { RECORD_HEADER_BYTES, recordLength, writeRecordHeader } from "../../../storage/log/record-format.js";
import { encodeSegmentStart, segmentName } from "../../../storage/log/segment.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { View } from "../../../storage/view/view.js";
import { artefactTasks } from "../../../workers/artefacts/pool/artefact-tasks.js";
import { memoryFile } from "../disk/memory-file.js";
import { newWork } from "../http/patient-client.js";
import { HubInFront, IS_HUB_IN_FRONT } from "../plant/hub-in-front.js";
import { encodedRecord } from "../plant/simulated-stream.js";

/** The release that the fixture says it is. */
export const FIXTURE_VERSION = "1.2.3-test";
/** So little that even small frames have several pieces. */
const PIECE_BYTES = 1024 * 1024;
/** The one segment of the log, which exists only when it is read. */
const SEGMENT = { base: 1, salt: 0 };
const NOTHING = new Uint8Array(0);
const SEGMENT_START = encodeSegmentStart({ ...SEGMENT, openingState: { index: NOTHING, body: NOTHING }, timeUs: 0 });
const LARGE_DOCUMENT_BYTES = 64 * 1024 * 1024;

export interface ListenOptions {
  baseUrl?: string;
  /** Default: that of the variable TEST_FRONT, else auto. */
  front?: FrontChoice;
  uwsPackage?: string;
  keptBytes?: number;
  apiKeys?: ApiKeys;
  crossOrigin?: CrossOrigin;
  pingTimers?: Timers;
  deadlineMs?: number;
}

const NO_POLICY = () => ({ allow: null, deny: [], own: [], ownPort: null });

function thrown(error: Error): void {
  throw error;
}

/**
 * The front over a view, fed with changes as the recorder would write them, at times that the test chooses, and without a disk: every
 * state of the interface can be put before a client, also those that only time or retention brings about.
 */
export class RecordedCell {
  readonly view: View;
  /** The service's own rows of health. */
  healthRows: ComponentRow[] = [];
  /** Stored bytes by `<run id>/capture` and `<run id>/report`. */
  readonly files = new Map<string, Uint8Array>();
  openFiles = 0;
  /** Records that were read. */
  reads = 0;
  /** The folder in which the maker of pieces finds the stored bytes: with a slash at its end, or empty. */
  folder = "";
  /** What makes the pieces of PLY and CSV; by default the tasks themselves, here. */
  make: MakeArtefact;
  /** What takes writes by HTTP. */
  request: WriteWebhook = () => Promise.reject(new Error("there is no recorder"));
  /** The clients that follow changes. */
  readonly live: LiveClients;
  readonly #hub = IS_HUB_IN_FRONT ? new HubInFront() : undefined;
  /** Records that were written. */
  #records = 0;
  readonly #batches: Parameters<View["fold"]["applyBatch"]>[0][] = [];
  readonly #runs = new Map<string, RunState>();
  readonly #servers: HttpServer[] = [];
  readonly #large: LargeDocuments[] = [];

  /** @param liveOptions of the clients that follow changes */
  constructor(liveOptions: LiveClientsOptions = { limit: 512 }) {
    this.live = new LiveClients(liveOptions);
    const read = async ({ offset }: RecordLocation) => {
      const batch = this.#batches.find((one) => one.offset === offset);
      let found: LogRecord | undefined;
      this.reads++;
      // Copied, as a read has memory of its own, which may be given away.
      if (batch !== undefined) forEachRecord({ ...batch, bytes: batch.bytes.slice() }, (record) => (found = record));
      if (found === undefined) throw new Error(`no record at ${offset}`);
      return found;
    };
    const readMany = (locations: readonly RecordLocation[]) => Promise.all(locations.map(read));
    this.view = new View({ isHub: IS_HUB_IN_FRONT, reader: { read, readMany } });
    this.view.fold.onApplied = () => this.live.viewChanged();
    this.view.fold.finishOpening();
    const tasks = artefactTasks(this.#storedFiles());
    // They share a memory: one at a time.
    let last: Promise<unknown> = Promise.resolve();
    this.make = (name, input) => {
      const done = last.then(() => tasks[name](input));
      last = done.catch(() => {});
      return done;
    };
  }

  /** One record of these changes, at `timeUs`. */
  apply(timeUs: number, ...changes: Change[]): void {
    let run: RunState | undefined;
    let updatedAtUs = timeUs;
    for (const change of changes) {
      if (!("runId" in change)) continue;
      run = foldRun(this.#runs.get(change.runId), change as RunChange | RunEnded, timeUs);
      this.#runs.set(change.runId, run);
      if (change.kind === "run_ended") updatedAtUs = change.run.updatedAtUs;
    }
    this.#record(timeUs, encodeChanges(null, changes, run), updatedAtUs);
  }

  /** One record of a webhook or a delivery. */
  applyWebhook(timeUs: number, change: WebhookChange): void {
    this.#record(timeUs, encodeWebhookChange(change));
  }

  #record(timeUs: number, content: { type: number; index: Uint8Array; body: Uint8Array }, updatedAtUs = timeUs): void {
    const sequence = ++this.#records;
    const input = { ...content, timeUs };
    const inputs = this.#hub?.ship(encodedRecord(input, sequence), sequence, updatedAtUs) ?? [input];
    for (const one of inputs) this.#append(one);
  }

  #append({ type, index, body, timeUs }: RecordInput): void {
    const last = this.#batches.at(-1);
    const offset = last === undefined ? SEGMENT_START.length : last.offset + last.bytes.length;
    const sequence = this.#batches.length + 1;
    const bytes = new Uint8Array(recordLength(index.length, body.length));
    bytes.set(index, RECORD_HEADER_BYTES);
    bytes.set(body, RECORD_HEADER_BYTES + index.length);
    const lengths = { indexLength: index.length, bodyLength: body.length };
    const header = { type, flags: 1, sequence, durableUpTo: 0, timeUs, ...lengths };
    writeRecordHeader(bytes, new DataView(bytes.buffer), 0, header, SEGMENT.salt, offset);
    const batch = { bytes, segmentBase: SEGMENT.base, offset, lastSequence: sequence };
    this.#batches.push(batch);
    this.view.fold.applyBatch(batch);
  }

  /** Ends the run; `change` can alter what its consolidated record holds. */
  end(timeUs: number, runId: string, ending: RunEnding, change: Partial<RunState> = {}): void {
    const run = { ...endRun(this.state(runId), ending, timeUs), ...change };
    this.apply(timeUs, { kind: "run_ended", runId, run });
  }

  state(runId: string): RunState {
    const run = this.#runs.get(runId);
    if (run === undefined) throw new Error(`no run ${runId}`);
    return run;
  }

  /** As `listen`; the end of the test closes all servers. */
  listenFor(t: { teardown(undo: () => unknown): unknown }, options?: ListenOptions): Promise<number> {
    t.teardown(() => this.close());
    return this.listen(options);
  }

  async listen(options: ListenOptions = {}): Promise<number> {
    const log = pino({ level: "silent" });
    const metrics = new Metrics({
      requests: new RequestDurations(),
      recorder: async () => undefined,
      front: () => ({ openRequests: 0, heldBytes: 0 }),
      logBytes: async () => 0,
      freeBytes: async () => 0,
      runs: () => this.view.runs.size,
      artefacts: () => ({ running: 0, waitingClients: 0, waitingBackground: 0, tasks: [] }),
      madeBytes: () => 0,
      shipper: () => undefined,
      live: () => this.live.figures,
      components: () => [],
    });
    const fileSystem = this.#storedFiles();
    const open: OpenStoredExtents = async (runId, kind, extents) => {
      // A new one for each reader: nothing stays open, and a test that changes bytes sees them verified again.
      const captures = new CaptureReader({ fileSystem });
      const reader = await captures.openExtents(`${runId}/${kind}`, extents);
      captures.close();
      return reader;
    };
    const capturePathOf = (runId: string): string => `${this.folder}${runId}/capture`;
    const make: MakeArtefact = (name, input, request) => this.make(name, input, request);
    const { work, slices } = newWork();
    const kept = { keptBytes: LARGE_DOCUMENT_BYTES, keptRunBytes: LARGE_DOCUMENT_BYTES };
    const large = new LargeDocuments({ view: this.view, work, ...kept, onStrayError: thrown });
    this.#large.push(large);
    const allRoutes = serviceRoutes({
      metrics,
      large,
      statistics: new ProgramStatistics({ view: this.view, make, slices, dataDirectory: "store" }),
      slices,
      live: this.live,
      view: this.view,
      openStoredExtents: open,
      // Nothing is kept: a test sees what is made.
      generatedFiles: new GeneratedFiles({
        make,
        open,
        capturePathOf,
        keptBytes: options.keptBytes ?? 1,
        pieceBytes: PIECE_BYTES,
      }),
      health: () => [...this.healthRows, ...this.view.components()],
      serviceVersion: FIXTURE_VERSION,
      baseUrl: options.baseUrl,
      receiverPolicy: NO_POLICY,
      request: (request, gone) => (this.view.isHub ? refuseRequest(this.view, request) : this.request(request, gone)),
    });
    const routes = this.view.isHub ? readOnlyRoutes(this.view, allRoutes) : allRoutes;
    const { baseUrl, apiKeys, crossOrigin, pingTimers, deadlineMs, uwsPackage } = options;
    const pipeline = new RequestPipeline({
      ...{ routes, baseUrl, log, apiKeys },
      ...(crossOrigin !== undefined && { crossOrigin }),
      ...(deadlineMs !== undefined && { deadlineMs }),
    });
    const front = options.front ?? (process.env.TEST_FRONT as FrontChoice | undefined) ?? "auto";
    const server = await startFront(front, {
      host: "127.0.0.1",
      port: 0,
      pipeline,
      log,
      uwsPackage,
      ...(pingTimers !== undefined && { pingTimers }),
    });
    this.#servers.push(server);
    return server.port;
  }

  #storedFiles(): FileSystem {
    return {
      open: async (path: string) => this.#openStored(path),
      openSync: (path: string) => this.#openStored(path),
      readDirectory: async (path: string) =>
        path === "store/meta" ? [{ name: segmentName(SEGMENT.base), isDirectory: false }] : [],
    } as unknown as FileSystem;
  }

  #openStored(path: string): StoreFile {
    const isLog = path === `store/meta/${segmentName(SEGMENT.base)}`;
    const file = isLog
      ? Buffer.concat([SEGMENT_START, ...this.#batches.map(({ bytes }) => bytes)])
      : this.files.get(path);
    if (file === undefined) throw new FileSystemError("ENOENT", "open", path);
    this.openFiles++;
    return memoryFile(file, () => {
      this.openFiles--;
    });
  }

  /** @param graceMs how long requests may take to end */
  async close(graceMs = 0): Promise<void> {
    this.live.close();
    await Promise.all(this.#servers.map((server) => server.close(graceMs)));
    await Promise.all(this.#large.map((large) => large.close()));
  }
}
