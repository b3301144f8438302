import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../harness/benchmark.js";
import { atMost } from "../harness/goal.js";
import { LatencyHistogram } from "../harness/latency-histogram.js";
import { BATCH_LINES, captureWholeFrame, wholeFrame } from "../load/frames/capture-sender.js";
import { whenFormats } from "../load/frames/frame-formats.js";
import { HttpConnection } from "../load/http/http-connection.js";
import { getBody, getOnce, HTTP_LOAD, HTTP_LOAD_METHOD, measureHttpLoad } from "../load/http/http-load.js";
import { startService } from "../load/http/service-process.js";
import { putProgram, waitUntil } from "../load/run-producer.js";

const CONNECTIONS = 4;
const FILE_BYTES = { smoke: 2_000_000, full: 20_000_000 };
const FILE = "report.bin";
/** 3,200 x 3,136 heights of u16: 20.1 MB. */
const BATCHES = { smoke: 2, full: 49 };
const REQUESTS = { smoke: 3, full: 50 };

async function openFile(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const client = await service.connect();
  const program = await putProgram(client, 1);
  const id = client.nextRunId();
  const bytes = createRandom(context.seed).bytes(FILE_BYTES[context.size]);
  await client.send({ type: "run.create", id, program_id: program.id });
  await client.send({ type: "run.start", id });
  await client.send({ type: "file.put", run_id: id, name: FILE, content_type: "application/octet-stream" }, bytes);
  const path = `/runs/${id}/files/${FILE}`;
  // What was acknowledged is durable; readers see it moments later.
  await waitUntil("the file of the run", async () => (await getOnce(service.url + path)).status === 200);
  if (!(await getBody(service.url + path)).equals(bytes)) throw new Error("the service answers with other bytes");
  return {
    runners: { service: () => measureHttpLoad(service, path, { connections: CONNECTIONS, size: context.size }) },
    notes: [`${CONNECTIONS} connections; every answer has ${bytes.length} bytes`],
  };
}

async function openNpy(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const client = await service.connect();
  const program = await putProgram(client, 1);
  const sent = wholeFrame(context.seed, BATCHES[context.size] * BATCH_LINES);
  const frame = await captureWholeFrame(client, program, sent);
  await frame.end();
  // Processing ends before anything is measured.
  await whenFormats(service.url, frame.frameId);
  const path = `/sensor/frames/${frame.frameId}/file.npy`;
  const body = await getBody(service.url + path);
  if (!body.subarray(-sent.heights.length).equals(sent.heights)) throw new Error("the service answers other heights");
  const connection = await HttpConnection.open(service.url);
  context.onClose(() => connection.close());
  const measure = async (): Promise<RoundSample> => {
    const latency = new LatencyHistogram();
    const startMs = performance.now();
    for (let nth = 0; nth < REQUESTS[context.size]; nth++) {
      const sentMs = performance.now();
      const { firstByteMs } = await connection.get(path);
      latency.record((firstByteMs - sentMs) * 1e6);
    }
    const seconds = (performance.now() - startMs) / 1000;
    return { value: latency.percentileNs(0.5) / 1e6, seconds, latency: latency.toData() };
  };
  return {
    runners: { service: measure },
    notes: [`${body.length} bytes; a round is ${REQUESTS[context.size]} downloads`],
  };
}

const CONTESTANTS = [{ name: "service", description: "the service as shipped, default settings" }];

export const download20mb: Benchmark = {
  name: "download-20mb",
  measures:
    `GET of a file of ${FILE_BYTES.full / 1e6} MB of a run's manifest, again and again, over ${CONNECTIONS} connections; the service reads from the page cache, ` +
    `checks each extent's CRC-32, and writes it. ${HTTP_LOAD_METHOD}`,
  metric: HTTP_LOAD,
  contestants: CONTESTANTS,
  peer: null,
  goals: [],
  rounds: { warmup: 1, measured: 9 },
  timeoutSeconds: 300,
  open: openFile,
};

export const npyDownload: Benchmark = {
  name: "npy-download",
  measures:
    "The first bytes of a frame's NPY of 20 MB: from the request to the first bytes of the body, over one connection that stays open; each download is read to " +
    "its end before the next. A round's figure is the median.",
  metric: { name: "time to first byte", unit: "ms", better: "lower" },
  contestants: CONTESTANTS,
  peer: null,
  goals: [atMost("service", 5, "goal of the formats: first byte of 20 MB within 5 ms")],
  rounds: { warmup: 1, measured: 9 },
  timeoutSeconds: 300,
  open: openNpy,
};
