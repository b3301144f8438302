import { statSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { runWithCaptures } from "../../helpers/captures/kept-captures.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { someFronts } from "../../helpers/http/fronts-here.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { until } from "../../helpers/until.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_122);

async function metricsText(port: number): Promise<string> {
  return (await rawRequest(port, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"))?.body.toString() ?? "";
}

/** Value of a series as it is written, undefined without it. */
function seriesValue(text: string, series: string): number | undefined {
  const line = text.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

function seriesNames(text: string): string[] {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => line.slice(0, line.lastIndexOf(" "))).sort();
}

/** Asks for what clients make up: paths, methods and ids. */
async function unknownPathsAddNoSeries(t: Test, port: number): Promise<void> {
  const random = createRandom(seed);
  const part = () => Array.from({ length: random.integer(1, 12) }, () => random.pick([..."abc%012-._~{}"])).join("");
  const paths = [
    () => `/${part()}`,
    () => `/runs/${part()}`,
    () => `/runs/${part()}/files/${part()}`,
    () => `/sensor/frames/${part()}/file.${part()}`,
    () => `/runs?${part()}=${part()}&limit=${part()}`,
    () => `/webhooks/${part()}/${part()}`,
  ];
  const methods = ["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT", "PROPFIND", "TRACE"];
  const askAll = async (rounds: number): Promise<string[]> => {
    for (let round = 0; round < rounds; round++) {
      for (const method of methods) {
        for (const path of paths) {
          const text = `${method} ${path()} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`;
          await rawRequest(port, text, method);
        }
      }
    }
    return seriesNames(await metricsText(port));
  };
  const after = await askAll(8);
  const known =
    /^inspection_http_request_duration_seconds_count\{method="(?:[A-Z]+|other)",route="(?:none|\/[a-z_{}./-]*)"/;
  const counted = after.filter((name) => name.startsWith("inspection_http_request_duration_seconds_count"));
  for (const name of counted) t.match(name, known);
  t.ok(counted.length > 10 && counted.length < 100, `${counted.length} routes, methods and statuses`);
  const more = await askAll(8);
  const own = (names: string[]) =>
    names.filter((name) => name.startsWith("inspection_") && !name.startsWith("inspection_http_request_duration"));
  t.same(own(more), own(after), "no other series either");
  const labels = new Set(more.flatMap((name) => [...name.matchAll(/route="([^"]*)"/g)].map((match) => match[1])));
  t.ok(labels.size <= 12, `${[...labels].join(" ")}`);
}

for (const { name, environment } of someFronts(t)) {
  t.test(
    `/metrics tells what a run with captures and a webhook has cost, and nothing of made-up paths (${name}, seed ${seed})`,
    async (t) => {
      const service = await ServiceProcess.startFor(t, { args: ["serve"], environment });
      await unknownPathsAddNoSeries(t, service.port);
      const receiver = await receiverFor(t);
      const client = new ContractClient(t, service.port);
      for (const url of [receiver.url, "http://127.0.0.1:1"]) {
        const more = { delivery_timeout_seconds: 1, max_retries: 0 };
        await client.post("/webhooks", { body: { name: "W", url, subscribed_events: ["ProgramCompleted"], ...more } });
      }
      const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
      const { id, frameId, captures } = await runWithCaptures(producer, 1);
      await producer.accept({ type: "run.finish", id });
      await client.until(
        "/runs/{run_id}",
        ({ webhook_delivery: rollup }) => rollup?.failed === 1 && rollup.delivered === 1,
        { path: { run_id: id } },
      );

      let text = await metricsText(service.port);
      const value = (series: string) => seriesValue(text, `inspection_${series}`) ?? Number.NaN;
      // The log may still be writing its mark for idle times.
      while (value("log_pending_bytes") + value("view_pending_bytes") > 0) text = await metricsText(service.port);
      const requests = `http_request_duration_seconds_count{method="POST",route="/webhooks",status="201"}`;
      t.equal(value(requests), 2, "requests by method, route and status");
      t.equal(value("ingest_messages_total"), 9);
      t.ok(value("ingest_bytes_total") > captures.length, "ingest bytes");
      t.equal(value("ingest_commit_duration_seconds_count"), 9, "commit latency");
      t.ok(value("ingest_commit_duration_seconds_sum") > 0);
      t.ok(value("log_bytes") > 0, "size of the log");
      t.ok(value("captures_appended_bytes_total") > captures.length, "captures, the report and what was made of them");
      t.ok(value("disk_free_bytes") > 0);
      const queues =
        "log_pending_bytes captures_pending_bytes view_pending_bytes open_artefacts artefact_tasks_running";
      const waiting = "artefact_clients_waiting artefact_background_waiting webhook_waiting webhook_running";
      for (const queue of `${queues} ${waiting}`.split(" "))
        t.equal(value(queue), 0, `${queue}: nothing is left to do`);
      t.ok(value("http_open_requests") >= 1, "the one that asks");
      for (const task of ["heightMap", "preview", "filter"]) {
        t.ok(value(`artefact_task_duration_seconds_count{task="${task}",outcome="done"}`) > 0, `times of ${task}`);
      }
      t.equal(value("webhook_delivered_total"), 1, "deliveries by outcome");
      t.equal(value("webhook_failed_total"), 1);
      t.equal(value('webhook_attempt_duration_seconds_count{outcome="taken"}'), 1);
      t.equal(value('webhook_attempt_duration_seconds_count{outcome="unanswered"}'), 1);
      t.equal(value("webhook_delivery_duration_seconds_count"), 1);
      t.notMatch(text, /^inspection_webhook_.*("W"|127\.0\.0\.1)/m, "no label holds what a client made up");
      t.ok((seriesValue(text, "nodejs_eventloop_lag_p99_seconds") ?? -1) >= 0, "event-loop delay of the front");
      for (const name of ["p50", "p99", "max"]) t.ok(value(`recorder_eventloop_lag_${name}_seconds`) >= 0, name);
      /** Tasks that the pool has had, of whatever kind and outcome. */
      const tasks = async (): Promise<number> => {
        const counts = (await metricsText(service.port)).matchAll(
          /^inspection_artefact_task_duration_seconds_count\{.*\} (\d+)$/gm,
        );
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
      };
      const processed = await tasks();
      t.equal(processed, 5, "a task for each format but NPY, and one for the preview");
      for (const file of [`/sensor/frames/${frameId}/file.npy`, `/runs/${id}/files/frame-${frameId}.npy`]) {
        t.equal((await client.raw("GET", file)).status, 200);
        t.equal((await client.raw("GET", file, "Range: bytes=-5\r\n")).status, 206);
      }
      t.equal(await tasks(), processed, "an NPY is none of the pool's business");
      t.equal((await client.raw("GET", `/sensor/frames/${frameId}/file.raw.ply`)).status, 200);
      t.equal(await tasks(), processed + 2, "a PLY is: its lines are verified and packed");
      t.equal((await service.end()).code, 0);
    },
  );
}

t.test("/metrics tells the size of captures: as they come, after a start, and what retention leaves", async (t) => {
  const dataDirectory = temporaryDirectory(t);
  const sizeOf = (runId: string) => statSync(join(dataDirectory, "captures", capturePath(runId, "capture"))).size;
  const start = (...args: string[]) => ServiceProcess.startFor(t, { args: ["serve", ...args], dataDirectory });
  const shown = async ({ port }: ServiceProcess) => seriesValue(await metricsText(port), "inspection_captured_bytes");

  let service = await start();
  t.equal(await shown(service), 0);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const { id: ended } = await runWithCaptures(producer, 1);
  await producer.accept({ type: "run.finish", id: ended });
  const { id: active } = await runWithCaptures(producer, 2);
  for (let left: number[] = [1]; left.some((value) => value > 0); ) {
    const text = await metricsText(service.port);
    left = ["open_artefacts", "captures_pending_bytes"].map(
      (name) => seriesValue(text, `inspection_${name}`) ?? Number.NaN,
    );
  }
  t.ok(sizeOf(ended) > 0);
  t.equal(await shown(service), sizeOf(ended) + sizeOf(active), "as they come");
  t.equal((await service.end()).code, 0);

  service = await start();
  t.equal(await shown(service), sizeOf(ended) + sizeOf(active), "after a start");
  t.equal((await service.end()).code, 0);

  service = await start("--retain-bytes", "1");
  const left = sizeOf(active);
  await until("the size of what is left", async () => (await shown(service)) === left);
  t.throws(() => sizeOf(ended), { code: "ENOENT" });
  t.equal((await service.end()).code, 0);
});
