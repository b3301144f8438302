import pino from "pino";
import type { Change, RunChange, RunEnded } from "../../core/change.js";
import type { ComponentRow } from "../../core/health.js";
import { endRun, type RunEnding } from "../../core/run-end.js";
import { foldRun } from "../../core/run-fold.js";
import type { RunState } from "../../core/run-state.js";
import { startFront } from "../../http/front.js";
import type { Front } from "../../http/front-name.js";
import type { HttpServer } from "../../http/http-server.js";
import { Metrics } from "../../http/metrics.js";
import { RequestDurations } from "../../http/request-durations.js";
import { RequestPipeline } from "../../http/request-pipeline.js";
import { serviceRoutes } from "../../http/service-routes.js";
import { encodeChanges } from "../../storage/change-record.js";
import { forEachRecord, type LogRecord, type RecordLocation } from "../../storage/log-batch.js";
import { RECORD_HEADER_BYTES, recordLength, writeRecordHeader } from "../../storage/record-format.js";
import { View } from "../../storage/view.js";

/** The release that the fixture says it is. */
export const FIXTURE_VERSION = "1.2.3-test";

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
  readonly #batches: Parameters<View["applyBatch"]>[0][] = [];
  readonly #runs = new Map<string, RunState>();
  #server: HttpServer | undefined;

  constructor() {
    const read = async ({ offset }: RecordLocation) => {
      const batch = this.#batches.find((one) => one.offset === offset);
      let found: LogRecord | undefined;
      if (batch !== undefined) forEachRecord(batch, (record) => (found = record));
      if (found === undefined) throw new Error(`no record at ${offset}`);
      return found;
    };
    const readMany = (locations: readonly RecordLocation[]) => Promise.all(locations.map(read));
    this.view = new View({ reader: { read, readMany } });
    this.view.finishOpening();
  }

  /** One record of these changes, at `timeUs`. */
  apply(timeUs: number, ...changes: Change[]): void {
    let run: RunState | undefined;
    for (const change of changes) {
      if (!("runId" in change)) continue;
      run = foldRun(this.#runs.get(change.runId), change as RunChange | RunEnded, timeUs);
      this.#runs.set(change.runId, run);
    }
    const { type, index, body } = encodeChanges(null, changes, run);
    const last = this.#batches.at(-1);
    const offset = last === undefined ? 0 : last.offset + last.bytes.length;
    const sequence = this.#batches.length + 1;
    const bytes = new Uint8Array(recordLength(index.length, body.length));
    bytes.set(index, RECORD_HEADER_BYTES);
    bytes.set(body, RECORD_HEADER_BYTES + index.length);
    const lengths = { indexLength: index.length, bodyLength: body.length };
    const header = { type, flags: 1, sequence, durableUpTo: 0, timeUs, ...lengths };
    writeRecordHeader(bytes, new DataView(bytes.buffer), 0, header, 0, offset);
    const batch = { bytes, segmentBase: 1, offset, lastSequence: sequence };
    this.#batches.push(batch);
    this.view.applyBatch(batch);
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

  async listen(options: { baseUrl?: string; front?: Front } = {}): Promise<number> {
    const log = pino({ level: "silent" });
    const metrics = new Metrics({
      requests: new RequestDurations(),
      recorder: async () => undefined,
      front: () => ({ openRequests: 0, heldBytes: 0 }),
      logBytes: async () => 0,
      runs: () => this.view.runCount,
    });
    const routes = serviceRoutes({
      metrics,
      view: this.view,
      openStoredSlices: async (runId, kind, slices) => {
        const file = this.files.get(`${runId}/${kind}`);
        if (file === undefined) throw new Error(`no stored file of ${runId}`);
        const bytes = Buffer.concat(
          slices.map(({ offset, lengthBytes }) => file.subarray(offset, offset + lengthBytes)),
        );
        this.openFiles++;
        return {
          sizeBytes: bytes.length,
          read: async (position, length) => bytes.subarray(position, position + length),
          close: () => {
            this.openFiles--;
          },
        };
      },
      health: () => [...this.healthRows, ...this.view.components()],
      serviceVersion: FIXTURE_VERSION,
      request: () => Promise.reject(new Error("there is no recorder")),
    });
    const pipeline = new RequestPipeline({ routes, baseUrl: options.baseUrl, log });
    this.#server = await startFront(options.front ?? (process.env.TEST_FRONT as Front) ?? "uws", {
      host: "127.0.0.1",
      port: 0,
      pipeline,
      log,
    });
    return this.#server.port;
  }

  async close(): Promise<void> {
    await this.#server?.close(0);
  }
}
