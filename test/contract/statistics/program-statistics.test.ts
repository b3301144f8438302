import { gunzipSync } from "node:zlib";
import t from "tap";
import { at, filled, GONE_PROGRAM, id, PROGRAM, RUN, UNKNOWN, us } from "../../helpers/http/filled-cell.js";
import { listOf } from "../../helpers/list-of.js";

const STATISTICS = "/programs/{program_id}/statistics";
const EXPORTS = [
  "/programs/{program_id}/checks.csv",
  "/programs/{program_id}/checks.ndjson",
  "/programs/{program_id}/checks.dfq",
] as const;
const of = (programId: string, query: Record<string, string> = {}) => ({ path: { program_id: programId }, query });

t.test("GET /programs/{program_id}/statistics: runs, yields, checks by name, defects", async (t) => {
  const { client } = await filled(t);
  const found = await client.get(STATISTICS, of(PROGRAM));
  t.match(found, {
    ...{ program_id: PROGRAM, completed_since: null, completed_until: null },
    runs: { completed: 1, failed: 0, cancelled: 1, passed: 1, failed_qc: 0, indeterminate: 0, without_report: 0 },
    first_pass_yield: null,
    final_yield: 1,
    duration_seconds: { count: 1, p50: 17 },
  });
  t.match(found.checks, listOf({ name: "count" }, { name: "flatness" }));
  t.match(found.checks[0], {
    canonical_units: "unspecified",
    count: 1,
    warning: 1,
    values: 1,
    mean: 3,
    lower_limit: null,
  });
  t.match(found.checks[1], {
    passed: 1,
    nominal: 0,
    lower_limit: -0.2,
    upper_limit: 0.2,
    cp: null,
    limits_changed: false,
  });
  t.match(found.checks[1]?.trend, listOf({ from: at(28), to: at(28), count: 1, mean: 0.12, failed: 0 }));
  t.match(
    found.defects,
    listOf({ type: "dent", defects: 1, runs: 1, severity: { low: 1 } }, { type: null, defects: 1 }),
  );
});

t.test("filters: half-open time, serial number, check; an unknown check is an empty answer", async (t) => {
  const { client } = await filled(t);
  const completed = async (query: Record<string, string>) =>
    (await client.get(STATISTICS, of(PROGRAM, query))).runs.completed;
  t.equal(await completed({ completed_since: at(28) }), 1);
  t.equal(await completed({ completed_since: at(28.000001) }), 0);
  t.equal(await completed({ completed_until: at(28) }), 0);
  t.equal(await completed({ completed_since: at(28), completed_until: at(28.000001) }), 1);
  t.equal(await completed({ completed_since: at(28), completed_until: at(28) }), 0);
  t.equal(await completed({ serial_number: "SN+1 é" }), 1);
  t.equal(await completed({ serial_number: "SN-2" }), 0);
  const one = await client.get(STATISTICS, of(PROGRAM, { check: "flatness" }));
  t.match(one.checks, listOf({ name: "flatness" }));
  t.equal(one.runs.completed, 1, "the runs are the same");
  const none = await client.get(STATISTICS, of(PROGRAM, { check: "Flatness" }));
  t.same(none.checks, []);
  const asked = await client.get(STATISTICS, of(PROGRAM, { completed_since: "2026-01-31T13:00:00+01:00" }));
  t.match(asked, { completed_since: at(0), completed_until: null });
});

t.test("exports: half-open time, to the microsecond", async (t) => {
  const { client } = await filled(t);
  for (const path of EXPORTS) {
    const target = path.replace("{program_id}", PROGRAM);
    const whole = (await client.raw("GET", target)).body.toString();
    const none = (await client.raw("GET", `${target}?serial_number=nobody`)).body.toString();
    const has = async (query: string, expected: string) =>
      t.equal((await client.raw("GET", `${target}?${query}`)).body.toString(), expected, `${target}?${query}`);
    await has(`completed_since=${at(28)}`, whole);
    await has(`completed_since=${at(28.000001)}`, none);
    await has(`completed_until=${at(28)}`, none);
    await has(`completed_until=${at(28.000001)}`, whole);
    await has(`completed_since=${at(28)}&completed_until=${at(28.000001)}`, whole);
    await has(`completed_since=${at(28)}&completed_until=${at(28)}`, none);
    await has(`completed_since=${at(27.999)}&completed_until=${at(28.001)}`, whole);
    await has("completed_since=0001-01-01T00:00:00Z&completed_until=9999-12-31T23:59:59Z", whole);
  }
});

t.test("a deleted program keeps its statistics and exports", async (t) => {
  const { client } = await filled(t);
  t.match((await client.get(STATISTICS, of(GONE_PROGRAM))).runs, { completed: 0, failed: 1 });
  for (const path of EXPORTS)
    t.equal((await client.raw("GET", path.replace("{program_id}", GONE_PROGRAM))).status, 200, path);
});

t.test("bad input: 404 for an unknown program, 422 that names the field, for statistics and exports", async (t) => {
  const { client } = await filled(t);
  for (const path of [STATISTICS, ...EXPORTS] as const) {
    const unknown = await client.refusal("get", path, 404, "program_not_found", of(UNKNOWN));
    t.match(unknown.params, { field: "program_id", value: UNKNOWN });
    const badTime = await client.refusal(
      "get",
      path,
      422,
      "invalid_parameter",
      of(PROGRAM, { completed_since: "soon" }),
    );
    t.match(badTime.params, { field: "completed_since", in: "query", value: "soon" });
    const badEnd = await client.refusal(
      "get",
      path,
      422,
      "invalid_parameter",
      of(PROGRAM, { completed_until: "2026-13-01" }),
    );
    t.match(badEnd.params, { field: "completed_until" });
    const reversed = { completed_since: at(9), completed_until: at(8) };
    const order = await client.refusal("get", path, 422, "invalid_parameter", of(PROGRAM, reversed));
    t.match(order.params, { field: "completed_until", value: at(8), allowed: /completed_since/ });
    for (const [since, until] of [
      ["9999-01-01T00:00:00Z", "9900-01-01T00:00:00Z"],
      ["1950-01-01T00:00:00Z", "1949-12-31T23:59:59.999999+00:00"],
      ["2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00+02:00"],
    ]) {
      const query = { completed_since: since as string, completed_until: until as string };
      const beyond = await client.refusal("get", path, 422, "invalid_parameter", of(PROGRAM, query));
      t.equal(beyond.message, "completed_until is before completed_since");
      t.match(beyond.params, {
        field: "completed_until",
        value: until,
        allowed: `${since} or later, as completed_since says`,
      });
    }
    const target = path.replace("{program_id}", PROGRAM);
    const repeated = await client.raw("GET", `${target}?check=a&check=b`);
    t.equal(repeated.status, 422, "a repeated check");
    t.match(repeated.json(), { code: "invalid_parameter", params: { field: "check" } });
    t.equal((await client.raw("GET", path.replace("{program_id}", "x"))).status, 404, "no id");
    t.equal((await client.raw("POST", target)).status, 405);
  }
});

t.test(
  "the answer is kept: the same bytes and tag, 304 for a client that has it, gzip for one that asks",
  async (t) => {
    const { cell, client } = await filled(t);
    let made = 0;
    const { make } = cell;
    cell.make = (name, ...others) => {
      if (name === "statistics") made++;
      return make(name, ...others);
    };
    const target = `/programs/${PROGRAM}/statistics`;
    const [first, second] = [await client.raw("GET", target), await client.raw("GET", target)];
    t.ok(first.body.equals(second.body));
    t.equal(made, 1);
    const { etag } = first.headers;
    t.equal((await client.raw("GET", target, `If-None-Match: ${etag}\r\n`)).status, 304);
    const zipped = await client.raw("GET", target, "Accept-Encoding: gzip\r\n");
    if (zipped.headers["content-encoding"] === "gzip") t.ok(gunzipSync(zipped.body).equals(first.body));
    t.equal(made, 1);
    await client.raw("GET", `${target}?check=count`);
    t.equal(made, 2, "another question");
    cell.apply(cell.view.runs.latestUs + 1, { kind: "run_started", runId: RUN });
    await client.raw("GET", target);
    t.equal(made, 2, "what is no end of a run changes nothing");
  },
);

t.test("an answer with 10,000 names is kept as well", async (t) => {
  const { cell, client } = await filled(t);
  const program = { id: id(90), name: "Large", status: "active", steps: [] } as const;
  cell.apply(us(100), { kind: "program_put", program: { ...program, steps: [] } });
  const created = { kind: "run_created", programId: id(90), programName: "Large", robotId: null } as const;
  const others = { serialNumber: null, revision: 1, metadata: null, traceId: null, steps: [] };
  for (let nth = 0; nth < 12; nth++) {
    const runId = id(200 + nth);
    cell.apply(us(200 + nth), { ...created, ...others, runId });
    const checks = Array.from({ length: 10_000 }, (_, at) => ({
      ...{ name: `a check with a name of some length ${at}`, status: "passed" as const },
      ...{ value: Math.sin(at + nth), nominal: 0, threshold: 2 },
    }));
    cell.end(us(300 + nth), runId, { status: "completed", errorMessage: null, notes: [] }, { checks });
  }
  const made: string[] = [];
  const { make } = cell;
  cell.make = (name, ...rest) => {
    made.push(name);
    return make(name, ...rest);
  };
  const target = `/programs/${id(90)}/statistics`;
  const [first, second] = [await client.raw("GET", target), await client.raw("GET", target)];
  t.ok(first.body.length > 17_000_000, `${first.body.length} bytes`);
  t.ok(first.body.equals(second.body));
  t.same(made, ["makeFindings", "statistics"], "what is missing is made first, in tasks of their own");
});

t.test("checks as CSV, NDJSON and AQDEF", async (t) => {
  const { client } = await filled(t);
  const [csv, ndjson, dfq] = await Promise.all(
    EXPORTS.map((path) => client.raw("GET", path.replace("{program_id}", PROGRAM))),
  );
  t.equal(csv?.headers["content-type"], "text/csv; charset=utf-8");
  t.equal(
    csv?.body.toString(),
    "run_id,serial_number,revision,completed_at,name,status,value,nominal,delta,threshold,units,message\n" +
      `${RUN},SN+1 é,3,${at(28)},flatness,passed,0.12,0,0.12,0.2,mm,ok\n` +
      `${RUN},SN+1 é,3,${at(28)},count,warning,3,,,,unspecified,\n`,
  );
  t.equal(ndjson?.headers["content-type"], "application/x-ndjson");
  const lines = String(ndjson?.body).trim().split("\n");
  t.match(JSON.parse(lines[1] as string), { run_id: RUN, name: "count", value: 3, nominal: null, message: null });
  t.equal(dfq?.headers["content-type"], "text/plain; charset=utf-8");
  t.match(dfq?.body.toString(), /^K0100 2\r\nK1001\/1 /);
  t.match(
    dfq?.body.toString(),
    /K0001\/2 0\.12\r\nK0002\/2 0\r\nK0004\/2 31\.01\.2026\/12:00:28\r\nK0014\/2 SN\+1 é\r\n/,
  );
  t.equal(dfq?.headers["content-disposition"], `attachment; filename="checks-${PROGRAM}.dfq"`);
});
