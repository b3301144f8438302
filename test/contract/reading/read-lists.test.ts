import t from "tap";
import type { components, operations } from "../../../http/client/interface-types.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import {
  ACTIVE_RUN,
  at,
  BASE,
  CANCELLED_RUN,
  FAILED_RUN,
  FULL_PROGRAM,
  filled,
  GONE_PROGRAM,
  id,
  links,
  PROGRAM,
  REMOVED_RUN,
  RUN,
  UNKNOWN,
  us,
} from "../../helpers/http/filled-cell.js";
import { listOf } from "../../helpers/list-of.js";

t.test("GET /runs: every field of an entry, newest first, exact totals", async (t) => {
  const { client } = await filled(t);
  const list = (await client.get("/runs")) as { runs: { id: string }[] };
  t.match(list, { total: 5, limit: 50, offset: 0 });
  t.strictSame(Object.keys(list), ["runs", "total", "limit", "offset"]);
  t.strictSame(
    list.runs.map((run) => run.id),
    [ACTIVE_RUN, REMOVED_RUN, CANCELLED_RUN, FAILED_RUN, RUN],
  );
  t.strictSame(list.runs[4], {
    id: RUN,
    program_id: PROGRAM,
    program_name: "Housing top",
    status: "completed",
    quality_status: "passed",
    progress: { total_steps: 4, completed_steps: 4, current_step: null },
    serial_number: "SN+1 é",
    revision: 3,
    metadata: { lot: "A" },
    started_at: at(11),
    completed_at: at(28),
    error_message: null,
    created_at: at(10),
    updated_at: at(28),
    links: links(RUN, PROGRAM),
  });
  t.match(list.runs[3], { status: "failed", error_message: "robot fault" });
  t.match(list.runs[0], {
    status: "running",
    progress: { total_steps: 4, current_step: 2 },
    serial_number: null,
    revision: 1,
  });
});

t.test("GET /runs: filters, alone and together, and pages", async (t) => {
  const { client } = await filled(t);
  type List = components["schemas"]["ProgramRunSummaryListResponse"];
  const found = ({ total, runs }: List) => [total, ...runs.map((run) => run.id)];
  const ids = async (query: NonNullable<operations["listRuns"]["parameters"]["query"]>) =>
    found(await client.get("/runs", { query }));
  t.strictSame(await ids({ status: "completed" }), [2, REMOVED_RUN, RUN]);
  const nonsense = await client.raw("GET", "/runs?status=nonsense");
  t.strictSame(found(nonsense.json() as List), [0], "a state that no run can have matches none");
  t.strictSame(await ids({ quality_status: "passed" }), [1, RUN]);
  t.strictSame(await ids({ quality_status: "failed" }), [0]);
  t.strictSame(
    await ids({ quality_status: "none", limit: 3, offset: 1 }),
    [4, REMOVED_RUN, CANCELLED_RUN, FAILED_RUN],
    "runs without a report, whatever their status",
  );
  t.strictSame(await ids({ quality_status: "none", status: "completed" }), [1, REMOVED_RUN]);
  t.strictSame(await ids({ quality_status: "passed", status: "failed" }), [0]);
  for (const other of ["nonsense", "null", "PASSED"]) {
    const none = await client.raw("GET", `/runs?quality_status=${other}`);
    t.strictSame(found(none.json() as List), [0], other);
  }
  t.strictSame(await ids({ program_id: GONE_PROGRAM }), [1, FAILED_RUN], "a deleted program's runs stay listed");
  t.strictSame(await ids({ program_id: UNKNOWN }), [0]);
  t.strictSame(await ids({ serial_number: "SN+1 é" }), [1, RUN]);
  t.strictSame(await ids({ serial_number: "SN-2" }), [2, REMOVED_RUN, CANCELLED_RUN]);
  t.strictSame(await ids({ serial_number: "SN-2", status: "cancelled" }), [1, CANCELLED_RUN]);
  t.strictSame(await ids({ serial_number: "SN-2", program_id: GONE_PROGRAM }), [0]);
  t.strictSame(await ids({ updated_since: at(32) }), [2, ACTIVE_RUN, REMOVED_RUN], "strictly after");
  t.strictSame(await ids({ updated_since: at(32), status: "running" }), [1, ACTIVE_RUN]);
  t.strictSame(await ids({ limit: 2 }), [5, ACTIVE_RUN, REMOVED_RUN]);
  t.strictSame(await ids({ limit: 2, offset: 3 }), [5, FAILED_RUN, RUN]);
  t.strictSame(await ids({ limit: 1000, offset: 5 }), [5]);
  t.strictSame(await ids({ offset: 9007199254740991 }), [5]);

  /** With a query as it is written here. */
  const rawIds = async (query: string) => {
    const response = await client.raw("GET", `/runs?${query}`);
    t.equal(response.status, 200, query);
    return found(response.json() as List);
  };
  t.strictSame(await rawIds("serial_number=SN%2B1%20%C3%A9"), [1, RUN]);
  t.strictSame(await rawIds("serial_number=SN%2B1+%C3%A9"), [1, RUN]);
  t.strictSame(await rawIds(`updated_since=${at(32)}`), [2, ACTIVE_RUN, REMOVED_RUN]);
  t.strictSame(await rawIds("updated_since=2026-01-31T13:00:31%2B01:00"), [3, ACTIVE_RUN, REMOVED_RUN, CANCELLED_RUN]);
  t.strictSame(await rawIds("status=&limit=&unknown=x&unknown=y"), [
    5,
    ACTIVE_RUN,
    REMOVED_RUN,
    CANCELLED_RUN,
    FAILED_RUN,
    RUN,
  ]);
});

t.test("GET /programs/{program_id}/runs", async (t) => {
  const { client } = await filled(t);
  const path = { program_id: PROGRAM };
  const list = await client.get("/programs/{program_id}/runs", { path });
  t.match(list, { total: 4, limit: 100, offset: 0 });
  t.strictSame(
    list.runs.map((run) => run.id),
    [ACTIVE_RUN, REMOVED_RUN, CANCELLED_RUN, RUN],
  );
  const page = { serial_number: "SN-2", limit: 1, offset: 1 };
  t.match(await client.get("/programs/{program_id}/runs", { path, query: page }), {
    total: 2,
    limit: 1,
    offset: 1,
    runs: listOf({ id: CANCELLED_RUN }),
  });
  t.match(await client.get("/programs/{program_id}/runs", { path, query: { updated_since: at(46) } }), {
    total: 1,
    runs: listOf({ id: ACTIVE_RUN }),
  });
  const passed = await client.get("/programs/{program_id}/runs", { path, query: { quality_status: "passed" } });
  t.match(passed, { total: 1, runs: listOf({ id: RUN }) });
  const withoutReport = { quality_status: "none", limit: 1 } as const;
  t.match(await client.get("/programs/{program_id}/runs", { path, query: withoutReport }), {
    total: 3,
    runs: listOf({ id: ACTIVE_RUN }),
  });
  const unfiltered = await client.raw("GET", `/programs/${PROGRAM}/runs?status=failed`);
  t.match([unfiltered.status, unfiltered.json()], listOf(200, { total: 4 }), "status is no parameter here");
  t.match(await client.get("/programs/{program_id}/runs", { path: { program_id: GONE_PROGRAM } }), { total: 1 });
  await client.refusal("get", "/programs/{program_id}/runs", 404, "program_not_found", {
    path: { program_id: UNKNOWN },
  });
});

t.test("GET /programs and /programs/{program_id}: every field", async (t) => {
  const { client, cell } = await filled(t);
  const expected = {
    ...FULL_PROGRAM,
    run_count: 4,
    created_at: at(1),
    updated_at: at(1),
    links: {
      self: { href: `${BASE}/programs/${PROGRAM}`, method: "GET" },
      runs: { href: `${BASE}/programs/${PROGRAM}/runs`, method: "GET" },
    },
  };
  t.strictSame(await client.get("/programs/{program_id}", { path: { program_id: PROGRAM } }), expected);
  t.strictSame(await client.get("/programs"), {
    programs: [expected],
    total: 1,
    limit: 100,
    offset: 0,
  });
  await client.refusal("get", "/programs/{program_id}", 404, "program_not_found", {
    path: { program_id: GONE_PROGRAM },
  });
  await client.refusal("get", "/programs/{program_id}", 404, "program_not_found", { path: { program_id: UNKNOWN } });
  cell.apply(us(80), {
    kind: "program_put",
    program: { id: id(3), name: "B", status: "draft", steps: [], robot_ids: ["r2"] },
  });
  t.match(await client.get("/programs"), {
    total: 2,
    programs: listOf({ id: id(3), run_count: 0 }, { id: PROGRAM }),
  });
  t.match(await client.get("/programs", { query: { robot_id: "r1" } }), {
    total: 1,
    programs: listOf({ id: PROGRAM }),
  });
  t.match(await client.get("/programs", { query: { robot_id: "none" } }), { total: 0 });
  t.match(await client.get("/programs", { query: { limit: 1, offset: 1 } }), {
    total: 2,
    limit: 1,
    offset: 1,
    programs: listOf({ id: PROGRAM }),
  });
});

t.test("bad parameters of lists are 422, naming the parameter and what is allowed", async (t) => {
  const { client } = await filled(t);
  const ofRuns = ["/runs", `/programs/${PROGRAM}/runs`];
  for (const list of [...ofRuns, "/programs"]) {
    const limit = await client.rawRefusal(`${list}?limit=1001`, 422, "invalid_parameter");
    t.match(limit.params, { field: "limit", in: "query", value: "1001", allowed: /./ });
    t.equal(limit.retryable, false);
    await client.rawRefusal(`${list}?offset=-1`, 422, "invalid_parameter");
  }
  for (const list of ofRuns) await client.rawRefusal(`${list}?updated_since=x`, 422, "invalid_parameter");
  await client.refusal("get", "/programs/{program_id}/runs", 422, "invalid_parameter", {
    path: { program_id: UNKNOWN },
    query: { limit: 0 },
  });
});

t.test("an empty store", async (t) => {
  const cell = new RecordedCell();
  const client = new ContractClient(t, await cell.listenFor(t));
  t.strictSame(await client.get("/runs"), {
    runs: [],
    total: 0,
    limit: 50,
    offset: 0,
  });
  t.match(await client.get("/runs", { query: { status: "running", updated_since: at(1) } }), { total: 0 });
  t.strictSame(await client.get("/programs"), {
    programs: [],
    total: 0,
    limit: 100,
    offset: 0,
  });
  t.strictSame(await client.get("/runs/active"), { active: false, run: null });
});
