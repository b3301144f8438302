import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { join } from "node:path";
import type { Benchmark, BenchmarkContext, OpenBenchmark, RoundSample } from "../../harness/benchmark.js";
import { LatencyHistogram } from "../../harness/latency-histogram.js";
import { BATCH_LINES, captureWholeFrame, wholeFrame } from "../../load/frames/capture-sender.js";
import { whenFormats } from "../../load/frames/frame-formats.js";
import { firstByteMs } from "../../load/http/first-byte.js";
import { getBody } from "../../load/http/http-load.js";
import { startService } from "../../load/http/service-process.js";
import { putPrograms } from "../../load/run-producer.js";
import { hasNginx, startNginx } from "../../peers/nginx.js";
import { startPython } from "../../peers/python-peer.js";

/** 3,200 x 3,136 heights of u16: 20.1 MB. */
const BATCHES = { smoke: 2, full: 49 };
const REQUESTS = { smoke: 3, full: 50 };
const NAME = "file.npy";

const NUMPY_SAVE = `
import sys, numpy
for line in sys.stdin:
    name, lines, width = line.split()
    numpy.save(name + ".npy", numpy.fromfile(name, dtype="<u2").reshape(int(lines), int(width)))
    print("saved", flush=True)
`;

/** What numpy.save writes of these heights; undefined without numpy. */
async function savedByNumpy(directory: string, heights: Uint8Array, lines: number): Promise<Buffer | undefined> {
  const numpy = startPython(["numpy"], NUMPY_SAVE);
  if ("why" in numpy) return undefined;
  const file = join(directory, "heights.raw");
  writeFileSync(file, heights);
  await numpy.ask(`${file} ${lines} ${heights.length / 2 / lines}`);
  await numpy.close();
  return readFileSync(`${file}.npy`);
}

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const closers = [async () => agent.destroy(), () => service.stop()];
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    const client = await service.connect("bench");
    const [program] = await putPrograms(client, 1, 1);
    if (program === undefined) throw new Error("no program was put");
    const lines = BATCHES[context.size] * BATCH_LINES;
    const sent = wholeFrame(context.seed, lines);
    const frame = await captureWholeFrame(client, program, sent);
    await frame.end();
    await client.close();
    service.assertNothingRefused();
    // Processing ends before anything is measured.
    await whenFormats(service.url, frame.frameId, 5);
    const url = `${service.url}/sensor/frames/${frame.frameId}/${NAME}`;
    const body = await getBody(url);
    const saved = await savedByNumpy(context.directory, sent.heights, lines);
    if (saved !== undefined && !saved.equals(body))
      throw new Error("the service does not answer what numpy.save writes");
    const measure = (address: string) => async (): Promise<RoundSample> => {
      const latency = new LatencyHistogram();
      const startMs = performance.now();
      for (let nth = 0; nth < REQUESTS[context.size]; nth++) latency.record((await firstByteMs(address, agent)) * 1e6);
      const seconds = (performance.now() - startMs) / 1000;
      return { value: latency.percentileNs(0.5) / 1e6, seconds, latency: latency.toData() };
    };
    const runners: OpenBenchmark["runners"] = { service: measure(url) };
    const notes = [
      `${body.length} bytes, ${saved === undefined ? "not compared: there is no numpy" : "those that numpy.save writes"}; a round is ${REQUESTS[context.size]} downloads`,
    ];
    if (!hasNginx()) {
      const why = "nginx is not installed (apt-get install nginx-light)";
      return { runners, missing: [{ name: "nginx", why }], notes, close };
    }
    const directory = join(context.directory, "nginx");
    mkdirSync(directory);
    const nginx = await startNginx(directory, NAME, body);
    closers.push(() => nginx.stop());
    runners.nginx = measure(`${nginx.url}/${NAME}`);
    return { runners, notes, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

export const npyDownload: Benchmark = {
  name: "npy-download",
  measures:
    "The first bytes of a frame's NPY of 20 MB: from the request to the first bytes of the body, over one connection that stays open, each download read to " +
    "its end before the next. A round's figure is the median. Before, the whole body is compared with what numpy.save writes. The peer sends the same file.",
  metric: { name: "time to first byte", unit: "ms", better: "lower" },
  contestants: [
    { name: "service", description: "the service as shipped, default settings" },
    { name: "nginx", description: "nginx, one process, sendfile on, no access log" },
  ],
  peer: "nginx",
  goals: [
    {
      kind: "value",
      contestant: "service",
      value: 5,
      direction: "at-most",
      source: "goal of the formats: first byte of 20 MB within 5 ms",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 7 } },
  timeoutSeconds: { smoke: 90, full: 300 },
  open,
};
