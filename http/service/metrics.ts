import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from "prom-client";
import { DURATION_BOUNDS_SECONDS, type DurationCounts } from "../../core/duration-counts.js";
import type { ComponentRow } from "../../core/health.js";
import type { CacheFigures } from "../../workers/hub/capture-request.js";
import type { ShipperFigures } from "../../workers/plant/shipper-handle.js";
import type { RecorderFigures } from "../../workers/recorder/status/recorder-figures.js";
import { ATTEMPT_OUTCOMES } from "../../workers/webhooks/deliveries/delivery-figures.js";
import type { ArtefactFigures } from "../downloads/artefact-work.js";
import type { LiveFigures, LiveKind } from "../live/live-clients.js";
import type { RequestDurations } from "./request-durations.js";

/** Where the metrics come from. Each source is read when somebody requests the metrics. */
export interface MetricSources {
  requests: RequestDurations;
  /** Undefined when the recorder has ended. */
  recorder(): Promise<RecorderFigures | undefined>;
  front(): FrontFigures;
  logBytes(): Promise<number>;
  /** Free bytes on the disk of the data directory. */
  freeBytes(): Promise<number>;
  runs(): number;
  artefacts(): ArtefactFigures;
  /** Undefined without a plant. */
  shipper(): ShipperFigures | undefined;
  /** Only at a hub. */
  cache?(): CacheFigures | undefined;
  /** Cached pieces of PLY and CSV files. */
  madeBytes(): number;
  live(): Readonly<Record<LiveKind, LiveFigures>>;
  /** The rows of health. */
  components(): readonly Pick<ComponentRow, "key" | "id" | "status">[];
}

export interface FrontFigures {
  /** Requests that are not answered yet. */
  openRequests: number;
  /** Bytes of whole answers that wait for their clients. */
  heldBytes: number;
}

type Series = Iterable<{ labels: Record<string, string>; durations: DurationCounts }>;

/** A histogram that reads its counts from elsewhere, which is cheaper than prom-client's own for each event. */
class CountedHistogram {
  readonly type = "histogram";
  readonly name: string;
  readonly help: string;
  readonly #series: () => Series;

  constructor(name: string, help: string, series: () => Series) {
    this.name = name;
    this.help = help;
    this.#series = series;
  }

  /** The values in prom-client's form: cumulative buckets, sum and count. */
  async get() {
    const values: { metricName: string; labels: Record<string, string>; value: number }[] = [];
    for (const { labels, durations } of this.#series()) {
      let count = 0;
      for (let bucket = 0; bucket < durations.counts.length; bucket++) {
        count += durations.counts[bucket] as number;
        const le = String(DURATION_BOUNDS_SECONDS[bucket] ?? "+Inf");
        values.push({ metricName: `${this.name}_bucket`, labels: { ...labels, le }, value: count });
      }
      values.push({ metricName: `${this.name}_sum`, labels, value: durations.sumSeconds });
      values.push({ metricName: `${this.name}_count`, labels, value: count });
    }
    return { name: this.name, help: this.help, type: this.type, values, aggregator: "sum" };
  }
}

/** Name, help text, and value; a gauge without a value is left out. */
type Row<Source> = readonly [name: string, help: string, value: (of: Source) => number | null | undefined];

const RECORDER_COUNTERS: readonly Row<RecorderFigures>[] = [
  ["inspection_ingest_messages_total", "Messages accepted from producers.", (of) => of.messages],
  ["inspection_ingest_bytes_total", "Bytes of these messages.", (of) => of.messageBytes],
  ["inspection_log_records_total", "Records appended to the log.", (of) => of.records],
  [
    "inspection_captures_appended_bytes_total",
    "Bytes accepted for capture files, including files made from captures.",
    (of) => of.captureAppendedBytes,
  ],
  ["inspection_retention_runs_total", "Runs whose captures retention removed.", (of) => of.retention?.runs],
  ["inspection_retention_files_total", "Files that retention removed.", (of) => of.retention?.files],
  ["inspection_retention_bytes_total", "Bytes that retention freed.", (of) => of.retention?.bytes],
  ["inspection_webhook_delivered_total", "Deliveries that succeeded.", (of) => of.deliveries?.delivered],
  ["inspection_webhook_failed_total", "Deliveries that failed.", (of) => of.deliveries?.failed],
];

const LAG = "Delay of the recorder's event loop since the metrics were last read.";

const RECORDER_GAUGES: readonly Row<RecorderFigures>[] = [
  ["inspection_producers", "Connected producers.", (of) => of.connections],
  ["inspection_active_runs", "Runs that have not ended.", (of) => of.activeRuns],
  [
    "inspection_captured_bytes",
    "Bytes of stored captures and of the stored files made from them.",
    (of) => of.capturedBytes,
  ],
  ["inspection_open_artefacts", "Formats of captures still to be made.", (of) => of.openArtefacts],
  ["inspection_log_pending_bytes", "Bytes appended to the log but not committed.", (of) => of.logPendingBytes],
  [
    "inspection_captures_pending_bytes",
    "Bytes accepted for capture files but not written.",
    (of) => of.capturesPendingBytes,
  ],
  ["inspection_view_pending_bytes", "Bytes committed but not yet in the view.", (of) => of.frontPendingBytes],
  // The recorder's counterpart of nodejs_eventloop_lag, which measures the front.
  ["inspection_recorder_eventloop_lag_p50_seconds", LAG, (of) => of.loopDelay?.p50Seconds],
  ["inspection_recorder_eventloop_lag_p99_seconds", LAG, (of) => of.loopDelay?.p99Seconds],
  ["inspection_recorder_eventloop_lag_max_seconds", LAG, (of) => of.loopDelay?.maxSeconds],
  ["inspection_webhook_waiting", "Deliveries waiting for an attempt.", (of) => of.deliveries?.waiting],
  ["inspection_webhook_running", "Delivery attempts under way.", (of) => of.deliveries?.running],
  [
    "inspection_webhook_requests_waiting",
    "Tests and manual retries that have not been started.",
    (of) => of.deliveries?.requested,
  ],
  [
    "inspection_webhook_postponed",
    "Deliveries that wait because their stored data cannot be read, or because the machine lacks what a connection needs.",
    (of) => of.deliveries?.postponed,
  ],
  [
    "inspection_webhook_payload_bytes",
    "Bytes of events held in memory for their deliveries.",
    (of) => of.deliveries?.payloadBytes,
  ],
];

const FRONT_GAUGES: readonly Row<MetricSources>[] = [
  ["inspection_runs", "Runs in the view.", (of) => of.runs()],
  ["inspection_http_open_requests", "Requests not answered yet.", (of) => of.front().openRequests],
  ["inspection_http_held_bytes", "Bytes of answers that wait for their clients.", (of) => of.front().heldBytes],
  [
    "inspection_artefact_tasks_running",
    "Tasks that threads of the artefact pool are working on.",
    (of) => of.artefacts().running,
  ],
  [
    "inspection_artefact_clients_waiting",
    "Tasks of waiting clients that no thread has begun.",
    (of) => of.artefacts().waitingClients,
  ],
  [
    "inspection_artefact_background_waiting",
    "Tasks of background processing that no thread has begun.",
    (of) => of.artefacts().waitingBackground,
  ],
  [
    "inspection_plant_shipped_sequence",
    "Last sequence number of the log that the plant has acknowledged.",
    (of) => of.shipper()?.shippedSequence,
  ],
  [
    "inspection_plant_lag_records",
    "Records of the log that the plant has not acknowledged.",
    (of) => of.shipper()?.lagRecords,
  ],
  [
    "inspection_plant_lag_bytes",
    "Bytes of the log that the plant has not acknowledged.",
    (of) => of.shipper()?.lagBytes,
  ],
  [
    "inspection_plant_lag_seconds",
    "Age of the oldest record that the plant has not acknowledged.",
    (of) => of.shipper()?.lagSeconds,
  ],
  [
    "inspection_plant_lost_records",
    "Records that damage has taken before they were shipped.",
    (of) => of.shipper()?.lostRecords,
  ],
  [
    "inspection_plant_capture_bytes",
    "Bytes of captures that the plant has acknowledged since the start.",
    (of) => of.shipper()?.captureBytes,
  ],
  [
    "inspection_plant_skipped_captures",
    "Captures that the plant lacks, because they are damaged or unreadable here, or older than what its full stream keeps.",
    (of) => of.shipper()?.skippedCaptures,
  ],
  ["inspection_hub_cache_bytes", "Bytes of captures that the hub has on its disk.", (of) => of.cache?.()?.bytes],
  ["inspection_hub_cache_files", "Files of these captures.", (of) => of.cache?.()?.files],
  [
    "inspection_hub_fetched_chunks",
    "Chunks of captures that the hub has fetched from the plant since the start.",
    (of) => of.cache?.()?.fetchedChunks,
  ],
  ["inspection_hub_fetched_bytes", "Bytes of these chunks.", (of) => of.cache?.()?.fetchedBytes],
  [
    "inspection_hub_evicted_bytes",
    "Bytes that made room for other captures since the start.",
    (of) => of.cache?.()?.evictedBytes,
  ],
  ["inspection_made_bytes", "Bytes of cached PLY and CSV pieces.", (of) => of.madeBytes()],
];

/** The service's metrics in the Prometheus text format. */
export class Metrics {
  static readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #registry = new Registry();
  readonly #sources: MetricSources;
  #recorder: RecorderFigures | undefined;
  /** Null: the disk could not be read. */
  #logBytes: number | null = null;
  #freeBytes: number | null = null;

  constructor(sources: MetricSources) {
    this.#sources = sources;
    // The figures of the process: CPU, memory, garbage collections, delay of the front's event loop.
    collectDefaultMetrics({ register: this.#registry });
    this.#histograms();
    const ofRecorder = (value: Row<RecorderFigures>[2]) => () =>
      this.#recorder === undefined ? undefined : value(this.#recorder);
    for (const [name, help, value] of RECORDER_COUNTERS) this.#counter(name, help, ofRecorder(value));
    for (const [name, help, value] of RECORDER_GAUGES) this.#gauge(name, help, ofRecorder(value));
    for (const [name, help, value] of FRONT_GAUGES) this.#gauge(name, help, () => value(sources));
    this.#gauge("inspection_disk_free_bytes", "Free bytes on the data directory's disk.", () => this.#freeBytes);
    this.#gauge("inspection_log_bytes", "Bytes of the log's segments.", () => this.#logBytes);
    this.#diskAnswers();
    this.#live();
    this.#components();
  }

  async text(): Promise<string> {
    this.#recorder = await this.#sources.recorder();
    // The metrics must work while a disk fails: what it does not tell is left out.
    this.#logBytes = await this.#sources.logBytes().catch(() => null);
    this.#freeBytes = await this.#sources.freeBytes().catch(() => null);
    return this.#registry.metrics();
  }

  #histograms(): void {
    const register = (name: string, help: string, series: () => Series) =>
      this.#registry.registerMetric(new CountedHistogram(name, help, series) as unknown as Metric);
    const deliveries = () => this.#recorder?.deliveries ?? null;
    register(
      "inspection_http_request_duration_seconds",
      "Time from the head of a request to the first byte of its answer.",
      () => this.#sources.requests.series(),
    );
    register(
      "inspection_ingest_commit_duration_seconds",
      "Time from accepting a producer's message to its commit.",
      () => (this.#recorder === undefined ? [] : [{ labels: {}, durations: this.#recorder.commits }]),
    );
    register(
      "inspection_webhook_delivery_duration_seconds",
      "Time from an event to its successful delivery, including failed attempts.",
      () => {
        const figures = deliveries();
        return figures === null ? [] : [{ labels: {}, durations: figures.latencies }];
      },
    );
    register("inspection_webhook_attempt_duration_seconds", "Time of one delivery attempt, by outcome.", () => {
      const figures = deliveries();
      if (figures === null) return [];
      return ATTEMPT_OUTCOMES.map((outcome) => ({ labels: { outcome }, durations: figures.attempts[outcome] }));
    });
    register(
      "inspection_artefact_task_duration_seconds",
      "Time that a thread of the artefact pool took for a task, by task and outcome.",
      () => this.#sources.artefacts().tasks,
    );
  }

  #live(): void {
    const figures = () => Object.entries(this.#sources.live());
    const registers = [this.#registry];
    const labelNames = ["kind"];
    new Gauge({
      name: "inspection_live_clients",
      help: "Clients that follow changes: streams of changed runs, and WebSockets of one run.",
      ...{ labelNames, registers },
      collect() {
        for (const [kind, { open }] of figures()) this.set({ kind }, open);
      },
    });
    new Counter({
      name: "inspection_live_events_total",
      help: "Changed runs that were told to them.",
      ...{ labelNames, registers },
      collect() {
        this.reset();
        for (const [kind, { sent }] of figures()) this.inc({ kind }, sent);
      },
    });
  }

  /** A series for the present status alone, so that an alert names the status that it is about. */
  #components(): void {
    const rows = () => this.#sources.components();
    new Gauge({
      name: "inspection_component_status",
      help: "1 for the present status of each component of /health: healthy, degraded, down or estopped.",
      labelNames: ["key", "id", "status"],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const { key, id, status } of rows()) this.set({ key, id: id ?? "", status }, 1);
      },
    });
  }

  /** Like node_exporter's collector success: an alert on 0 finds a missing metric, which an alert on the metric itself does not. */
  #diskAnswers(): void {
    const asked = () => ({ inspection_disk_free_bytes: this.#freeBytes, inspection_log_bytes: this.#logBytes });
    new Gauge({
      name: "inspection_metric_read_success",
      help: "1 if the disk could be read for the metric; 0 if it could not, and the metric is left out.",
      labelNames: ["metric"],
      registers: [this.#registry],
      collect() {
        for (const [metric, bytes] of Object.entries(asked())) this.set({ metric }, bytes === null ? 0 : 1);
      },
    });
  }

  /** A counter without a value is 0. */
  #counter(name: string, help: string, value: () => number | null | undefined): void {
    new Counter({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(value() ?? 0);
      },
    });
  }

  #gauge(name: string, help: string, value: () => number | null | undefined): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        const now = value() ?? null;
        if (now === null) this.remove();
        else this.set(now);
      },
    });
  }
}
