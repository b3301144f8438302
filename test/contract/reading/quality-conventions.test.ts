import t from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { startReceiver } from "../../helpers/webhooks/receiver.js";

const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";

/** Beyond its limits, and passed all the same: the producer decides. */
const CHECKS = [
  { name: "gap", status: "passed", value: 127, nominal: 50.8, delta: 76.2, threshold: 2.54 },
  { name: "score", status: "passed", value: 0.1, threshold: 0.5, canonical_units: "unspecified" },
];
const REGION_2D = { file: "top.png", bbox: [0, 25.4, 10, 50.8] };
const REGION_3D = {
  ...{ file: "top.ply", location: [25.4, -12.7, 0], extents: [2.54, 1.27, 0.254] },
  ...{ orientation: [0, 0, 0.6, 0.8], frame: "part" },
};
const DEFECT = { id: "d-1", type: "dent", description: "2.54 mm", region_2d: REGION_2D, region_3d: REGION_3D };

t.test("findings stay what the producer said; only lengths in events are in the cell's units", async (t) => {
  const service = await ServiceProcess.start();
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "findings" });
  t.teardown(async () => {
    producer.destroy();
    await service.dispose();
  });
  const client = new ContractClient(t, service.port);
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  await client.post("/webhooks", { body: { name: "m", url: receiver.url, subscribed_events: ["ProgramCompleted"] } });
  await producer.welcomed();
  const program = { id: PROGRAM_ID, name: "p", status: "active", steps: [{ type: "wait" }] };
  await producer.deliver({ type: "program.put", program });

  for (const [nth, unitSystem] of (["imperial", "metric"] as const).entries()) {
    await producer.deliver({ type: "cell.put", unit_system: unitSystem });
    const runId = producer.nextRunId();
    const path = { path: { run_id: runId } };
    await producer.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID });
    await producer.deliver({ type: "run.start", id: runId });
    for (const check of CHECKS) await producer.deliver({ type: "check.add", run_id: runId, check });
    await producer.deliver({ type: "defect.add", run_id: runId, defect: DEFECT });
    await client.until("/runs/{run_id}/defects", ({ defects }) => defects?.length === 1, path);
    t.match(await client.get("/runs/{run_id}/quality-report", path), { quality_report: { final: false } });
    await producer.deliver({ type: "run.finish", id: runId });
    const run = await client.until("/runs/{run_id}", ({ status }) => status === "completed", path);
    t.equal(run.quality_status, "passed", "the numbers do not decide");
    const { quality_report: report } = await client.get("/runs/{run_id}/quality-report", path);
    t.match(report, { status: "passed", final: true });
    t.same(report?.checks, [{ ...CHECKS[0], canonical_units: "mm" }, CHECKS[1]]);
    t.same((await client.get("/runs/{run_id}/defects", path)).defects, [DEFECT], "in mm over REST, whatever the units");

    await receiver.received(nth + 1);
    const { data } = JSON.parse(receiver.requests[nth]?.body.toString() as string);
    const isImperial = unitSystem === "imperial";
    const region = isImperial
      ? { ...REGION_3D, location: [1, -0.5, 0], extents: [0.1, 0.05, 0.01], unit: "in" }
      : { ...REGION_3D, unit: "mm" };
    t.same(data.defects, [{ ...DEFECT, region_3d: region }], unitSystem);
    const unit = isImperial ? "in" : "mm";
    t.match(data, { unit_system: unitSystem, qc_checks: { 0: { unit }, 1: { unit: null } }, quality_status: "passed" });
  }

  // The document says what the numbers mean.
  const response = await client.raw("GET", "/openapi.json");
  const { components, webhooks } = JSON.parse(response.body.toString());
  const event =
    webhooks.ProgramCompleted.post.requestBody.content["application/json"].schema.properties.data.properties;
  const defect = event.defects.items.properties;
  for (const region of [components.schemas.DefectRegion2DModel.properties, defect.region_2d.properties]) {
    t.match(region.bbox.description, /\[x_min, y_min, x_max, y_max\] in pixels.*top left.*not including, x_max/);
  }
  for (const region of [components.schemas.DefectRegion3DModel.properties, defect.region_3d.properties]) {
    t.match(region.location.description, /^Centre of the box: \[x, y, z\] in (mm|`unit`), in scan space/);
    t.match(region.extents.description, /^Full edge lengths of the box in (mm|`unit`)/);
    t.match(
      region.orientation.description,
      /quaternion \[x, y, z, w\] that turns the box's own axes into those of scan space/,
    );
  }
  t.same(defect.region_3d.properties.unit.enum, ["mm", "in"]);
  for (const check of [components.schemas.QualityCheckModel.properties, event.qc_checks.items.properties]) {
    t.match(
      check.threshold.description,
      /to either side.*`nominal` - `threshold` and `nominal` \+ `threshold`.*the least `value` that passes/,
    );
  }
});
