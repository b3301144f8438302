import { Counter, collectDefaultMetrics, Gauge, type Metric, Registry } from "prom-client";
import { DURATION_BOUNDS_SECONDS, type DurationCounts } from "../../core/duration-counts.js";
import type { RecorderFigures } from "../../workers/recorder/status/recorder-figures.js";
import { ATTEMPT_OUTCOMES } from "../../workers/webhooks/deliveries/delivery-figures.js";
import type { ArtefactFigures } from "../downloads/artefact-work.js";
import type { RequestDurations } from "./request-durations.js";

/** Where the metrics come from; each is asked when somebody reads them. */
export interface MetricSources {
  requests: RequestDurations;
  /** Undefined when the recorder has ended. */
  recorder(): Promise<RecorderFigures | undefined>;
  front(): FrontFigures;
  logBytes(): Promise<number>;
  /** What the disk of the data directory has left. */
  freeBytes(): Promise<number>;
  runs(): number;
  artefacts(): ArtefactFigures;
  /** Of made pieces of files. */
  madeBytes(): number;
}

export interface FrontFigures {
  /** Requests whose answers are not given yet. */
  openRequests: number;
  /** Whole answers that wait for their clients. */
  heldBytes: number;
}

type Series = Iterable<{ labels: Record<string, string>; durations: DurationCounts }>;

/** A histogram whose counts are kept elsewhere, without a cost of this library's for each event. */
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

  /** What the registry writes out: cumulative buckets, sum and count. */
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

/** The service's metrics in the Prometheus text format. */
export class Metrics {
  static readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #registry = new Registry();
  readonly #sources: MetricSources;
  #recorder: RecorderFigures | undefined;
  /** Null: the disk did not say. */
  #logBytes: number | null = null;
  #freeBytes: number | null = null;

  constructor(sources: MetricSources) {
    this.#sources = sources;
    // Of the process: CPU, memory, collections, delay of the front's event loop.
    collectDefaultMetrics({ register: this.#registry });
    this.#histogram(
      "inspection_http_request_duration_seconds",
      "From a request's head to its answer's first byte.",
      () => sources.requests.series(),
    );
    this.#histogram(
      "inspection_ingest_commit_duration_seconds",
      "From taking a producer's message to its commit.",
      () => (this.#recorder === undefined ? [] : [{ labels: {}, durations: this.#recorder.commits }]),
    );
    this.#deliveries();
    this.#histogram(
      "inspection_artefact_task_duration_seconds",
      "Tasks of the artefact pool by name and outcome: what a thread took.",
      () => sources.artefacts().tasks,
    );
    this.#gauge("inspection_open_artefacts", "Formats that processing has still to make.", (of) => of.openArtefacts);
    this.#plainGauge(
      "inspection_artefact_tasks_running",
      "Tasks that threads have.",
      () => sources.artefacts().running,
    );
    this.#plainGauge(
      "inspection_artefact_clients_waiting",
      "Tasks that a client waits for and no thread has yet.",
      () => sources.artefacts().waitingClients,
    );
    this.#plainGauge(
      "inspection_artefact_background_waiting",
      "Tasks of processing that no thread has yet.",
      () => sources.artefacts().waitingBackground,
    );
    this.#plainGauge("inspection_made_bytes", "Pieces of PLY and CSV that are kept.", () => sources.madeBytes());
    this.#counter("inspection_ingest_messages_total", "Messages taken from producers.", (of) => of.messages);
    this.#counter("inspection_ingest_bytes_total", "Bytes of these messages.", (of) => of.messageBytes);
    this.#counter("inspection_log_records_total", "Records that the log has been given.", (of) => of.records);
    this.#gauge("inspection_producers", "Connected producers.", (of) => of.connections);
    this.#gauge("inspection_active_runs", "Runs that have not ended.", (of) => of.activeRuns);
    this.#gauge(
      "inspection_captured_bytes",
      "Size of captures, and of what is made of them and kept.",
      (of) => of.capturedBytes,
    );
    const removed = (what: "runs" | "files" | "bytes") => (of: RecorderFigures) => of.store?.retention[what] ?? 0;
    this.#counter("inspection_retention_runs_total", "Runs whose captures retention removed.", removed("runs"));
    this.#counter("inspection_retention_files_total", "Files that it removed.", removed("files"));
    this.#counter("inspection_retention_bytes_total", "Bytes that it freed.", removed("bytes"));
    const compacted = (what: "segments" | "bytes") => (of: RecorderFigures) => of.store?.compaction[what] ?? 0;
    this.#counter("inspection_compaction_segments_total", "Segments of the log written anew.", compacted("segments"));
    this.#counter("inspection_compaction_bytes_total", "Bytes by which they became smaller.", compacted("bytes"));
    this.#gauge("inspection_log_pending_bytes", "Appended to the log, not committed.", (of) => of.logPendingBytes);
    this.#gauge(
      "inspection_captures_pending_bytes",
      "Taken for capture files, not written.",
      (of) => of.capturesPendingBytes,
    );
    this.#gauge("inspection_view_pending_bytes", "Committed, not yet in the view.", (of) => of.frontPendingBytes);
    this.#loopDelays();
    this.#counter(
      "inspection_captures_appended_bytes_total",
      "Taken for capture files, what is made of captures among it.",
      (of) => of.captureAppendedBytes,
    );
    this.#plainGauge("inspection_disk_free_bytes", "Of the data directory's disk.", () => this.#freeBytes);
    this.#plainGauge("inspection_log_bytes", "Size of the log's segments.", () => this.#logBytes);
    this.#diskAnswers();
    this.#plainGauge("inspection_runs", "Runs in the view.", () => sources.runs());
    this.#plainGauge("inspection_http_open_requests", "Requests not answered yet.", () => sources.front().openRequests);
    this.#plainGauge(
      "inspection_http_held_bytes",
      "Answers that wait for their clients.",
      () => sources.front().heldBytes,
    );
  }

  async text(): Promise<string> {
    this.#recorder = await this.#sources.recorder();
    // A failing disk is when the metrics are wanted: what it does not say is left out.
    this.#logBytes = await this.#sources.logBytes().catch(() => null);
    this.#freeBytes = await this.#sources.freeBytes().catch(() => null);
    return this.#registry.metrics();
  }

  /** As node_exporter tells it of its collectors: a query for 0 finds what is left out, one for the metric itself finds nothing. */
  #diskAnswers(): void {
    const asked = () => ({ inspection_disk_free_bytes: this.#freeBytes, inspection_log_bytes: this.#logBytes });
    new Gauge({
      name: "inspection_metric_read_success",
      help: "1 where the disk gave what the metric is made of; 0 where it did not, and the metric is left out.",
      labelNames: ["metric"],
      registers: [this.#registry],
      collect() {
        for (const [metric, bytes] of Object.entries(asked())) this.set({ metric }, bytes === null ? 0 : 1);
      },
    });
  }

  /** As the default metrics have it of the front: nodejs_eventloop_lag. */
  #loopDelays(): void {
    const figures = { p50: "p50Seconds", p99: "p99Seconds", max: "maxSeconds" } as const;
    for (const [name, field] of Object.entries(figures)) {
      this.#gauge(
        `inspection_recorder_eventloop_lag_${name}_seconds`,
        "How late the recorder's event loop was since the last look.",
        (of) => of.loopDelay?.[field] ?? null,
      );
    }
  }

  #deliveries(): void {
    const deliveries = () => this.#recorder?.deliveries ?? null;
    this.#histogram(
      "inspection_webhook_delivery_duration_seconds",
      "From an event to its delivery, attempts that failed before among it.",
      () => {
        const figures = deliveries();
        return figures === null ? [] : [{ labels: {}, durations: figures.latencies }];
      },
    );
    this.#histogram("inspection_webhook_attempt_duration_seconds", "Of one attempt, by how it ended.", () => {
      const figures = deliveries();
      if (figures === null) return [];
      return ATTEMPT_OUTCOMES.map((outcome) => ({ labels: { outcome }, durations: figures.attempts[outcome] }));
    });
    this.#counter("inspection_webhook_delivered_total", "Deliveries taken.", (of) => of.deliveries?.delivered ?? 0);
    this.#counter("inspection_webhook_failed_total", "Deliveries failed.", (of) => of.deliveries?.failed ?? 0);
    this.#gauge("inspection_webhook_waiting", "Deliveries that wait.", (of) => of.deliveries?.waiting ?? null);
    this.#gauge("inspection_webhook_running", "Deliveries under way.", (of) => of.deliveries?.running ?? null);
    this.#gauge(
      "inspection_webhook_requests_waiting",
      "Tests and manual retries that clients wait for.",
      (of) => of.deliveries?.wanted ?? null,
    );
    this.#gauge(
      "inspection_webhook_unreadable",
      "Deliveries that wait because what is stored of them cannot be read.",
      (of) => of.deliveries?.unreadable ?? null,
    );
    this.#gauge(
      "inspection_webhook_payload_bytes",
      "Events held for their deliveries.",
      (of) => of.deliveries?.payloadBytes ?? null,
    );
  }

  #histogram(name: string, help: string, series: () => Series): void {
    this.#registry.registerMetric(new CountedHistogram(name, help, series) as unknown as Metric);
  }

  #counter(name: string, help: string, value: (of: RecorderFigures) => number): void {
    const recorder = () => this.#recorder;
    new Counter({
      name,
      help,
      registers: [this.#registry],
      collect() {
        const figures = recorder();
        this.reset();
        if (figures !== undefined) this.inc(value(figures));
      },
    });
  }

  #gauge(name: string, help: string, value: (of: RecorderFigures) => number | null): void {
    this.#plainGauge(name, help, () => (this.#recorder === undefined ? null : value(this.#recorder)));
  }

  #plainGauge(name: string, help: string, value: () => number | null): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        const now = value();
        if (now === null) this.remove();
        else this.set(now);
      },
    });
  }
}
