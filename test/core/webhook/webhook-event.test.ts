import { Ajv2020 } from "ajv/dist/2020.js";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import type { QualityCheck } from "../../../core/run/quality.js";
import { endRun } from "../../../core/run/run-end.js";
import { manifestResponse } from "../../../core/run/run-response.js";
import type { RunState, TerminalRunStatus } from "../../../core/run/run-state.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { EVENT_SCHEMAS } from "../../../core/webhook/event-schema.js";
import type { EventName } from "../../../core/webhook/webhook.js";
import { type EventSource, runEventPayload, testEventPayload } from "../../../core/webhook/webhook-event.js";
import { closed } from "../../helpers/http/contract-client.js";
import { FRAME_ID, idOf, PROGRAM, PROGRAM_ID, RUN_ID, stateWithRun } from "../../helpers/link/cell-messages.js";
import type { PlainState } from "../../helpers/recorder/plain-state.js";

const METRIC: EventSource = { serviceVersion: "1.2.3", cell: { kioskSerialNumber: "K-7", unitSystem: "metric" } };
const IMPERIAL: EventSource = { serviceVersion: "1.2.3", cell: { kioskSerialNumber: null, unitSystem: "imperial" } };
const EVENT_ID = idOf(77);
const AT_US = 1_795_200_100_000_000;

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictTypes: false, validateFormats: false });
const valid = Object.fromEntries(
  Object.entries(EVENT_SCHEMAS).map(([name, schema]) => [name, ajv.compile(closed(schema))]),
);

function send(state: PlainState, message: CellMessage, payloadBytes = 0): void {
  const decision = state.send(message, payloadBytes);
  if ("refusal" in decision) throw new Error(decision.refusal.message);
}

function runWith(checks: QualityCheck[]): RunState {
  const state = stateWithRun("running");
  for (const check of checks) send(state, { type: "check.add", run_id: RUN_ID, check });
  return state.runs.get(RUN_ID) as RunState;
}

// biome-ignore lint/suspicious/noExplicitAny: a payload as a receiver reads it
function read(payload: string): any {
  return JSON.parse(payload);
}

function ended(run: RunState, status: TerminalRunStatus, errorMessage: string | null = null): RunState {
  return endRun(run, { status, errorMessage, notes: [] }, AT_US);
}

function completed(run: RunState, source = METRIC) {
  return read(runEventPayload(source, EVENT_ID, "ProgramCompleted", ended(run, "completed"), true, AT_US));
}

t.test("each event against its own schema, in full", async (t) => {
  const state = stateWithRun("running");
  send(state, { type: "frame.lines", id: FRAME_ID, first_line: 1, line_count: 3 }, 27);
  send(state, { type: "frame.end", id: FRAME_ID });
  send(state, { type: "file.put", run_id: RUN_ID, name: "ü 1.pdf", content_type: "application/pdf" }, 5);
  send(state, { type: "defect.add", run_id: RUN_ID, defect: { type: "dent" } });
  const check = { name: "gap", status: "passed" as const, value: 25.4, metadata: { a: 1 }, message: "m" };
  send(state, { type: "check.add", run_id: RUN_ID, check });
  const run = state.runs.get(RUN_ID) as RunState;
  const payloads: [EventName, string][] = [
    ["ProgramStarted", runEventPayload(METRIC, EVENT_ID, "ProgramStarted", run, true, AT_US)],
    ["ProgramCompleted", runEventPayload(METRIC, EVENT_ID, "ProgramCompleted", ended(run, "completed"), true, AT_US)],
    [
      "ProgramFailed",
      runEventPayload(IMPERIAL, EVENT_ID, "ProgramFailed", ended(run, "failed", "broke"), false, AT_US),
    ],
    ["ProgramCancelled", runEventPayload(METRIC, EVENT_ID, "ProgramCancelled", ended(run, "cancelled"), true, AT_US)],
    ["WebhookTest", testEventPayload(METRIC, EVENT_ID, { id: idOf(9), name: "mes" }, AT_US)],
  ];
  for (const [name, payload] of payloads) {
    const event = read(payload);
    const validate = valid[name] as NonNullable<(typeof valid)[string]>;
    t.ok(validate(event), `${name}: ${JSON.stringify(validate.errors)}`);
    t.match(event, { event_id: EVENT_ID, event_name: name, schema_version: 3, service_version: "1.2.3" });
    t.equal(event.timestamp, formatTimeUs(AT_US));
    t.equal(event.kiosk_serial_number, name === "ProgramFailed" ? null : "K-7");
    for (const [other, validateOther] of Object.entries(valid)) {
      if (other !== name) t.notOk(validateOther(event), `${name} is no ${other}`);
    }
    for (const field of Object.keys(event)) {
      const { [field]: _, ...rest } = event;
      t.notOk(validate(rest), `${name} without ${field}`);
    }
  }
  const data = read(payloads[1]?.[1] as string).data;
  t.match(data, { run_id: RUN_ID, program_id: PROGRAM_ID, program_name: PROGRAM.program.name, status: "completed" });
  t.same(data.files, manifestResponse(ended(run, "completed"), ""));
  t.ok(data.files.length === 2 && data.files.every((file: { href: string }) => file.href.startsWith("/runs/")));
  t.same(data.defects, [{ type: "dent" }]);
  t.equal(data.started_at, formatTimeUs(run.startedAtUs as number));
  t.equal(data.completed_at, formatTimeUs(AT_US));
  t.match(read(payloads[2]?.[1] as string).data, { program_name: null, status: "failed", error_message: "broke" });
});

t.test("checks are converted to the cell's display units", async (t) => {
  const run = runWith([
    { name: "a", status: "passed", value: 25.4, nominal: 50.8, delta: -25.4, threshold: 2.54 },
    { name: "b", status: "passed", value: 10, nominal: null, canonical_units: "mm" },
    { name: "c", status: "passed", value: 7, threshold: 8, canonical_units: "unspecified" },
  ]);
  t.same(completed(run, IMPERIAL).data.qc_checks, [
    { name: "a", status: "passed", value: 1, nominal: 2, delta: -1, threshold: 0.1, unit: "in" },
    { name: "b", status: "passed", value: 10 / 25.4, nominal: null, delta: null, threshold: null, unit: "in" },
    { name: "c", status: "passed", value: 7, nominal: null, delta: null, threshold: 8, unit: null },
  ]);
  const metric = completed(run).data;
  t.match(metric, { unit_system: "metric", quality_status: "passed" }, "whatever the numbers say of a threshold");
  t.same(
    metric.qc_checks.map((check: { value: number; unit: string }) => [check.value, check.unit]),
    [
      [25.4, "mm"],
      [10, "mm"],
      [7, null],
    ],
  );
});

t.test("lengths of a defect's region are in the cell's display units, and the region says which", async (t) => {
  const state = stateWithRun("running");
  const region2d = { file: "a.png", bbox: [1, 2, 25.4, 4] };
  const rest = { file: "a.ply", orientation: [0, 0, 0, 1], frame: "part" };
  const defects = [
    { type: "dent", region_2d: region2d, region_3d: { ...rest, location: [25.4, -50.8, 0], extents: [2.54, 1, 0] } },
    { type: "dent", region_3d: { location: null, frame: null } },
    { description: "25.4 mm long", region_3d: null, metadata: { length_mm: 25.4 } },
    { type: "stain" },
  ];
  for (const defect of defects) send(state, { type: "defect.add", run_id: RUN_ID, defect });
  const run = state.runs.get(RUN_ID) as RunState;
  const [, , ...plain] = defects;
  t.same(completed(run, IMPERIAL).data.defects, [
    {
      type: "dent",
      region_2d: region2d,
      region_3d: { ...rest, location: [1, -2, 0], extents: [0.1, 1 / 25.4, 0], unit: "in" },
    },
    { type: "dent", region_3d: { location: null, frame: null, unit: "in" } },
    ...plain,
  ]);
  t.same(completed(run).data.defects, [
    { type: "dent", region_2d: region2d, region_3d: { ...defects[0]?.region_3d, unit: "mm" } },
    { type: "dent", region_3d: { location: null, frame: null, unit: "mm" } },
    ...plain,
  ]);
  const validate = valid.ProgramCompleted as NonNullable<(typeof valid)[string]>;
  t.ok(validate(completed(run, IMPERIAL)), JSON.stringify(validate.errors));
  t.strictSame(run.defects, defects, "the run keeps what it was given");
});

t.test("an event says what its run's report does, and when the run was updated last", async (t) => {
  const run = runWith([{ name: "a", status: "failed" }]);
  const data = completed(run).data;
  t.match(data, { quality_status: "failed", passed: false, updated_at: formatTimeUs(AT_US) });
  const running = runWith([]);
  const started = read(runEventPayload(METRIC, EVENT_ID, "ProgramStarted", running, true, AT_US)).data;
  t.match(started, { quality_status: null, updated_at: formatTimeUs(running.updatedAtUs) });
  const failed = read(runEventPayload(METRIC, EVENT_ID, "ProgramFailed", ended(run, "failed"), true, AT_US)).data;
  t.match(failed, { quality_status: null, updated_at: formatTimeUs(AT_US) });
});

t.test("passed is true only for a report that passed", async (t) => {
  t.equal(completed(runWith([])).data.passed, false, "no checks");
  t.equal(completed(runWith([{ name: "a", status: "passed" }])).data.passed, true);
  t.equal(completed(runWith([{ name: "a", status: "warning" }])).data.passed, true);
  t.equal(completed(runWith([{ name: "a", status: "failed" }])).data.passed, false);
  t.equal(completed(runWith([{ name: "a", status: "not_evaluated" }])).data.passed, false);
});

t.test("an event that would be too large carries its lists empty and says so", async (t) => {
  const run = runWith([{ name: "a", status: "passed" }]);
  const message = "\u0001".repeat(16_000);
  const large = {
    ...run,
    checks: Array.from({ length: 200 }, () => ({ name: "a", status: "passed" as const, message })),
  };
  const payload = runEventPayload(METRIC, EVENT_ID, "ProgramCompleted", ended(large, "completed"), true, AT_US);
  t.ok(Buffer.byteLength(payload) < LIMITS.eventPayloadBytes);
  const event = read(payload);
  t.match(event.data, {
    passed: true,
    qc_checks: { length: 0 },
    defects: { length: 0 },
    files: { length: 0 },
    truncated: true,
  });
  t.ok(valid.ProgramCompleted?.(event), JSON.stringify(valid.ProgramCompleted?.errors));
  t.notOk("truncated" in completed(run).data);
});
