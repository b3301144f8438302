import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Benchmark, BenchmarkContext, OpenBenchmark } from "../../harness/benchmark.js";
import { getBody, getOnce, loadEnd, measureHttpLoad } from "../../load/http/http-load.js";
import { startService } from "../../load/http/service-process.js";
import { putPrograms, waitUntil } from "../../load/run-producer.js";
import { hasNginx, startNginx } from "../../peers/nginx.js";

const CONNECTIONS = 4;
const SECONDS = 3;
const FILE_BYTES = { smoke: 2_000_000, full: 20_000_000 };
const NAME = "report.bin";

async function open(context: BenchmarkContext): Promise<OpenBenchmark> {
  const service = await startService(context);
  const closers = [() => service.stop()];
  const close = async (): Promise<void> => {
    for (const closer of closers) await closer();
  };
  try {
    const bytes = Buffer.alloc(FILE_BYTES[context.size]);
    for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE((at * 2_654_435_761) >>> 0, at);
    const client = await service.connect("bench");
    const [program] = await putPrograms(client, 1, 1);
    if (program === undefined) throw new Error("no program was put");
    const id = client.nextRunId();
    await client.send({ type: "run.create", id, program_id: program.id });
    await client.send({ type: "run.start", id });
    await client.send({ type: "file.put", run_id: id, name: NAME, content_type: "application/octet-stream" }, bytes);
    await client.close();
    service.assertNothingRefused();
    const path = `/runs/${id}/files/${NAME}`;
    // What was acknowledged is durable; readers see it moments later.
    await waitUntil("the file of the run", async () => (await getOnce(service.url + path)).status === 200);
    if (!bytes.equals(await getBody(service.url + path))) throw new Error("the service answers with other bytes");

    const measure = (url: string, pid: number, at: string) => () =>
      measureHttpLoad(context.httpClient, pid, {
        url,
        paths: [at],
        connections: CONNECTIONS,
        until: loadEnd(context.size, SECONDS),
        directory: context.directory,
      });
    const runners: OpenBenchmark["runners"] = { service: measure(service.url, service.pid, path) };
    const notes = [`load by ${context.httpClient}, ${CONNECTIONS} connections; every answer has ${bytes.length} bytes`];
    if (!hasNginx()) {
      return {
        runners,
        missing: [{ name: "nginx", why: "nginx is not installed (apt-get install nginx-light)" }],
        notes,
        close,
      };
    }
    const directory = join(context.directory, "nginx");
    mkdirSync(directory);
    const nginx = await startNginx(directory, NAME, bytes);
    closers.push(() => nginx.stop());
    runners.nginx = measure(nginx.url, nginx.pid, `/${NAME}`);
    return { runners, notes, close };
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
}

export const download20mb: Benchmark = {
  name: "download-20mb",
  measures:
    `GET of a file of ${FILE_BYTES.full / 1e6} MB of a run's manifest, again and again, over ${CONNECTIONS} connections that each keep one request in ` +
    "flight, by one thread of the load generator; both servers read from the page cache. The peer sends the same bytes by sendfile, which " +
    "takes them to the socket without a copy into the process; the service reads slices, checks their CRC-32, and writes them.",
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: [
    { name: "service", description: "the service as shipped, default settings" },
    { name: "nginx", description: "nginx, one process, sendfile on, no access log" },
  ],
  peer: "nginx",
  goals: [
    {
      contestant: "service",
      direction: "at-least",
      kind: "ratio",
      peer: "nginx",
      ratio: 0.9,
      source: "downloads beside sendfile",
    },
  ],
  rounds: { smoke: { warmup: 0, measured: 1 }, full: { warmup: 1, measured: 9 } },
  timeoutSeconds: { smoke: 120, full: 300 },
  open,
};
