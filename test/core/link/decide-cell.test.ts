import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import { idOf, PROGRAM, PROGRAM_ID, RUN_ID, refusalOf, runOf, stateWithRun } from "../../helpers/link/cell-messages.js";
import { PlainState } from "../../helpers/recorder/plain-state.js";

t.test("run.create", async (t) => {
  const state = stateWithRun("running");
  const create = (n: number, more: object = {}): CellMessage => ({
    type: "run.create",
    id: idOf(n),
    program_id: PROGRAM_ID,
    ...more,
  });
  t.match(refusalOf(state, create(9)), {
    code: "id_out_of_order",
    params: { path: "/id", value: idOf(9), last_run_id: RUN_ID, allowed: `above ${RUN_ID}` },
  });
  t.match(refusalOf(state, create(11, { program_id: idOf(2) })), {
    code: "not_found",
    params: { path: "/program_id", value: idOf(2) },
  });
  t.equal(refusalOf(state, create(11, { serial_number: "SN1", trace_id: "t", metadata: { a: 1 } })), undefined);
  t.match(state.runs.get(idOf(11)), { revision: 2, serialNumber: "SN1", traceId: "t", metadata: { a: 1 } });
  t.match(state.runs.get(idOf(11)), {
    programName: "Gearbox cover",
    robotId: "r1",
    status: "pending",
    startedAtUs: null,
  });
  t.same(
    state.runs.get(idOf(11))?.steps.map((step) => step.definition.type),
    ["capture_frame", "cl_sweep", "gripper"],
    "the program's enabled steps, in order",
  );
  state.send(create(12, { steps: [{ type: "wait", enabled: false }], serial_number: null }));
  t.same(
    state.runs.get(idOf(12))?.steps.map((step) => step.definition),
    [{ type: "wait", enabled: false }],
    "its own steps",
  );
  t.equal(state.runs.get(idOf(12))?.revision, 1, "without a serial number");
  state.send(create(13, { steps: [] }));
  t.match(refusalOf(state, { type: "run.start", id: idOf(13) }), undefined);
  t.match(refusalOf(state, { type: "step.start", run_id: idOf(13), index: 1 }), {
    params: { allowed: "none: the run has no steps" },
  });
  state.send(create(14, { serial_number: "SN1" }));
  t.equal(
    state.runs.get(idOf(14))?.revision,
    3,
    "revisions count per serial number, over runs that have not ended too",
  );
  state.moreActiveRuns = LIMITS.activeRuns - state.activeRunCount;
  t.match(refusalOf(state, create(15)), { code: "too_large", params: { path: "/id", allowed: LIMITS.activeRuns } });
  state.moreActiveRuns -= 1;
  t.equal(refusalOf(state, create(15)), undefined);
});

t.test("a deleted or replaced program", async (t) => {
  const state = stateWithRun("running");
  state.send({ type: "program.put", program: { ...PROGRAM.program, name: "Other", steps: [] } });
  t.match(runOf(state), { programName: "Gearbox cover" }, "a run keeps the name it was created under");
  t.equal(runOf(state).steps.length, 3);
  t.equal(refusalOf(state, { type: "program.delete", id: PROGRAM_ID }), undefined);
  t.match(refusalOf(state, { type: "program.delete", id: PROGRAM_ID }), { code: "not_found", params: { path: "/id" } });
  t.match(refusalOf(state, { type: "run.create", id: idOf(11), program_id: PROGRAM_ID }), { code: "not_found" });
  t.equal(
    refusalOf(state, { type: "event.add", run_id: RUN_ID, event_type: "x", data: {} }),
    undefined,
    "its runs stay",
  );
});

t.test("cell.put: omitted fields stay, a null is a value", async (t) => {
  const state = new PlainState();
  state.send({ type: "cell.put", kiosk_serial_number: "K1" });
  t.same(state.identity, { kioskSerialNumber: "K1", unitSystem: "metric" });
  state.send({ type: "cell.put", unit_system: "imperial" });
  t.same(state.identity, { kioskSerialNumber: "K1", unitSystem: "imperial" });
  state.send({ type: "cell.put" });
  t.same(state.identity, { kioskSerialNumber: "K1", unitSystem: "imperial" });
  state.send({ type: "cell.put", kiosk_serial_number: null });
  t.same(state.identity, { kioskSerialNumber: null, unitSystem: "imperial" });
});

t.test("components", async (t) => {
  const state = new PlainState();
  const put = (key: string, more: object = {}): CellMessage => ({
    type: "component.put",
    key,
    status: "healthy",
    ...more,
  });
  t.match(refusalOf(state, { type: "component.delete", key: "plc" }), { code: "not_found", params: { path: "/key" } });
  t.equal(refusalOf(state, put("plc", { id: "p1", detail: "d", enabled: true, required: true })), undefined);
  state.send(put("plc"));
  t.same(
    state.components.get("plc"),
    { key: "plc", status: "healthy", id: null, detail: null, enabled: null, required: false },
    "a put replaces the whole; what it omits is absent",
  );
  for (const key of ["log", "disk", "recorder", "dispatcher", "artefacts"]) {
    t.match(refusalOf(state, put(key)), { code: "name_taken", params: { path: "/key", value: key } }, key);
  }
  t.match(refusalOf(state, put("__proto__")), { code: "invalid_message", params: { path: "/key" } });
  t.equal(refusalOf(state, put("constructor")), undefined);
  state.moreComponents = LIMITS.components - state.componentCount;
  t.match(refusalOf(state, put("one more")), {
    code: "too_large",
    params: { path: "/key", allowed: LIMITS.components },
  });
  t.equal(refusalOf(state, put("plc")), undefined, "one that is there may still change");
  t.equal(refusalOf(state, { type: "component.delete", key: "plc" }), undefined);
  state.send(PROGRAM);
  state.programBytes = LIMITS.programBytes;
  t.equal(refusalOf(state, PROGRAM), undefined, "one that is there takes its own place");
  state.programBytes = 2 * LIMITS.programBytes;
  t.equal(refusalOf(state, PROGRAM), undefined, "also where there are more than may be");
  state.programs.clear();
  t.match(refusalOf(state, PROGRAM), {
    code: "too_large",
    params: { path: "/program", allowed: LIMITS.programBytes },
  });
  state.programBytes = 0;
  state.morePrograms = LIMITS.programs;
  t.match(refusalOf(state, PROGRAM), { code: "too_large", params: { path: "/program/id", allowed: LIMITS.programs } });
});

t.test("a run's metadata, which its list entry shows, is bounded by itself", (t) => {
  const state = new PlainState();
  state.send(PROGRAM);
  const create = (last: number, characters: number): CellMessage => ({
    type: "run.create",
    id: idOf(last),
    program_id: PROGRAM_ID,
    metadata: { order: "x".repeat(characters) },
  });
  // Heads of the map, of the key and of the text have at most five bytes each, and the key has five.
  const characters = LIMITS.runMetadataBytes - 20;
  t.match(refusalOf(state, create(900, characters + 1)), {
    code: "too_large",
    params: { path: "/metadata", value: LIMITS.runMetadataBytes + 1, allowed: LIMITS.runMetadataBytes },
  });
  t.equal(refusalOf(state, create(901, characters)), undefined);
  t.end();
});
