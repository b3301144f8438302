import t, { type Test } from "tap";
import type { components } from "../../../http/client/interface-types.js";
import { readNpy } from "../../../workers/demo-cell/part/npy-reader.js";
import { SCENES } from "../../../workers/demo-cell/scenes.js";
import type { Capture } from "../../../workers/demo-cell/steps/capture.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { LENGTH_TOLERANCE_MM, lengthInFrame } from "../../helpers/process/demo-lengths.js";
import { endedRuns, settledDeliveries, startDemo } from "../../helpers/process/demo-results.js";
import { runCommand } from "../../helpers/process/service-process.js";

type Webhook = components["schemas"]["WebhookResponse"];

t.test("the first two minutes show a whole cell", async (t) => {
  const startedMs = performance.now();
  const service = await startDemo(t, { args: ["demo", "--seed", "7", "--runs", String(SCENES.length + 1)] });
  const client = new ContractClient(t, service.port);
  const [opening = "", ...ids] = await endedRuns(client, SCENES.length + 1);
  const tookSeconds = (performance.now() - startedMs) / 1000;
  t.ok(tookSeconds < 120, `${tookSeconds.toFixed(0)} s`);
  // A run can be read before its line is printed.
  await service.untilStdout(new RegExp(`(?:^run [^]*){${SCENES.length}}`, "m"));
  t.equal(service.stdout.match(/^run /gm)?.length, SCENES.length, "a line for each run");
  t.match(service.stdout, /^open http:\/\/127\.0\.0\.1:\d+$/m);
  const { runs, total } = await client.get("/runs");
  t.equal(total, SCENES.length + 1, "the run whose captures are removed, then the scenes");
  const oldestFirst = runs.reverse();
  const outcomes: unknown[] = [];
  for (const { id, status } of oldestFirst.slice(1)) {
    const { quality_report: report } = await client.get("/runs/{run_id}/quality-report", { path: { run_id: id } });
    outcomes.push(report?.status ?? status);
  }
  t.strictSame(
    outcomes,
    SCENES.map(({ outcome, ending }) => outcome ?? ending),
  );
  const again = oldestFirst.filter(({ revision }) => revision === 2);
  t.equal(again.length, 1);
  const found = await Promise.all(ids.map((run_id) => client.get("/runs/{run_id}/defects", { path: { run_id } })));
  const defects = found.flatMap((one) => one.defects ?? []);
  t.ok(defects.some(({ region_2d, region_3d }) => region_2d?.bbox && region_3d?.orientation));

  await showsLengths(t, client, ids);

  const webhooks = await client.get("/webhooks");
  const delivered = await showsDeliveries(t, client, webhooks);

  const files = await client.get("/runs/{run_id}/files", { path: { run_id: opening } });
  t.strictSame(
    files.map(({ type, deleted_at }) => type === "report" || typeof deleted_at === "string"),
    files.map(() => true),
  );
  const removed = files.find(({ deleted_at: at }) => at);
  t.equal((await client.raw("GET", `/runs/${opening}/files/${removed?.name}`)).status, 410);
  t.match(await service.end("SIGINT"), { code: 0 });
  t.match(await runCommand(["check", "--data", service.dataDirectory]), { code: 0, stdout: /\nok\n$/ });

  await startAgain(t, service.dataDirectory, webhooks, delivered);
});

/** Each length that a check gives is in the frame of the same run. */
async function showsLengths(t: Test, client: ContractClient, ids: readonly string[]): Promise<void> {
  const compared = new Set<string>();
  for (const run_id of ids) {
    const { quality_report: report } = await client.get("/runs/{run_id}/quality-report", { path: { run_id } });
    const { results } = await client.get("/runs/{run_id}", { path: { run_id } });
    const frame_id = results?.frame_ids?.[0];
    if (!report || frame_id === undefined) continue;
    const { geometry } = await client.get("/sensor/frames/{frame_id}", { path: { frame_id } });
    const { rows, columns, data } = readNpy((await client.raw("GET", `/sensor/frames/${frame_id}/file.npy`)).body);
    const capture: Capture = {
      ...{ width: columns, lines: rows, height: data, luminance: undefined, metadata: {} },
      planes: { height: geometry.height },
      ...{ xPitchMm: geometry.x_pitch_mm, yPitchMm: geometry.y_pitch_mm },
      ...{ xOriginMm: geometry.x_origin_mm, yOriginMm: geometry.y_origin_mm },
    };
    for (const { name, value } of report.checks) {
      const shown = lengthInFrame(capture, name);
      if (shown === undefined || typeof value !== "number") continue;
      const offMm = Math.abs(shown.lengthMm - value);
      t.ok(offMm < LENGTH_TOLERANCE_MM, `${run_id} ${name}: ${value}, the frame shows ${shown.lengthMm}`);
      compared.add(name);
    }
  }
  t.ok(compared.has("cell_2_depth") && compared.has("boss_height"), [...compared].join(", "));
}

/** One receiver verifies signatures, one is busy, one is down. @returns how many deliveries the first one took */
async function showsDeliveries(t: Test, client: ContractClient, webhooks: readonly Webhook[]): Promise<number> {
  const [signed = [], busy = [], down = []] = await Promise.all(
    webhooks.map(({ id }, at) => settledDeliveries(client, id, at === 0 ? 2 * SCENES.length : 1)),
  );
  const detail = (delivery: { id: string } | undefined) =>
    client.get("/webhook-deliveries/{delivery_id}", { path: { delivery_id: String(delivery?.id) } });
  const retried = await detail(busy.find(({ status, attempts }) => status === "delivered" && attempts > 1));
  t.strictSame(
    retried.attempt_history.map(({ status_code }) => status_code),
    [204, 503],
  );
  const failed = await detail(down.find(({ status }) => status === "failed"));
  t.match(failed, {
    status: "failed",
    attempts: 4,
    last_status_code: 503,
    event_name: /ProgramFailed|ProgramCancelled/,
  });
  const path = { path: { delivery_id: failed.id } };
  t.match(
    await client.post("/webhook-deliveries/{delivery_id}/retry", path),
    { status: "delivered" },
    "by hand it goes",
  );

  t.strictSame(
    webhooks.map(({ has_secret }) => has_secret),
    [true, false, false],
  );
  t.ok(
    signed.every(({ status }) => status === "delivered"),
    "the receiver has verified each signature",
  );
  const units = new Map<unknown, Set<unknown>>();
  for (const { payload } of signed) {
    const { data } = payload as { data: { unit_system?: string; qc_checks?: { unit: string | null }[] } };
    const { unit_system: system, qc_checks: checks = [] } = data;
    for (const { unit } of checks) if (unit !== null) units.set(system, (units.get(system) ?? new Set()).add(unit));
  }
  t.same(
    units,
    new Map([
      ["metric", new Set(["mm"])],
      ["imperial", new Set(["in"])],
    ]),
  );
  return signed.length;
}

/** The next start is in the demo's own store: it makes no such run again, finds what is removed, and has the same receivers. */
async function startAgain(
  t: Test,
  dataDirectory: string,
  webhooks: readonly Webhook[],
  deliveries: number,
): Promise<void> {
  const service = await startDemo(t, { args: ["demo", "--runs", "1"], dataDirectory });
  await service.untilStdout(/^run /m);
  t.notMatch(service.stdout, /did not make this store/);
  const client = new ContractClient(t, service.port);
  t.equal((await client.get("/runs")).total, SCENES.length + 2);
  const receivers = await client.get("/webhooks");
  t.same(
    receivers.map(({ id }) => id),
    webhooks.map(({ id }) => id),
  );
  t.not(receivers[0]?.url, webhooks[0]?.url, "at their new port");
  const delivered = await settledDeliveries(client, String(receivers[0]?.id), deliveries + 2);
  t.same([...new Set(delivered.map(({ status }) => status))], ["delivered"]);
  t.match(await service.end(), { code: 0 });
}
