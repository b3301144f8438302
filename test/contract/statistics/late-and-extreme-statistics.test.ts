import t from "tap";
import { filled, id, PROGRAM, us } from "../../helpers/http/filled-cell.js";

t.test("a first answer that is not made in time is 503 with Retry-After, and is kept for who asks again", async (t) => {
  const { cell, client } = await filled(t, { deadlineMs: 300 });
  const { make } = cell;
  let made = 0;
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  cell.make = async (name, ...others) => {
    if (name === "statistics") {
      made++;
      await finished;
    }
    return make(name, ...others);
  };
  const target = `/programs/${PROGRAM}/statistics`;
  const late = await client.raw("GET", target);
  t.equal(late.status, 503);
  t.equal(late.headers["retry-after"], "1");
  t.match(late.json(), { code: "unavailable", retryable: true, params: { deadline_ms: 300 } });
  const second = client.raw("GET", target);
  finish();
  let answer = await second;
  while (answer.status === 503) answer = await client.raw("GET", target);
  t.equal(answer.status, 200);
  t.match(answer.json(), { program_id: PROGRAM, runs: { completed: 1 } });
  t.equal(made, 1, "it is made once for both");
});

t.test(
  "values at the ends of what a double holds: each field of the answer is one that the document allows",
  async (t) => {
    const { cell, client } = await filled(t);
    const programId = id(90);
    cell.apply(us(100), {
      kind: "program_put",
      program: { id: programId, name: "Extreme", status: "active", steps: [] },
    });
    const created = { kind: "run_created", programId, programName: "Extreme", robotId: null } as const;
    const others = { serialNumber: null, revision: 1, metadata: null, traceId: null, steps: [] };
    const values = [1.7e308, -1.7e308, 1.7e308, 5e-324, -5e-324, 0, -0, 1e16, 1e16 + 2];
    for (const [nth, value] of values.entries()) {
      const runId = id(200 + nth);
      cell.apply(us(200 + nth), { ...created, ...others, runId });
      const checks = [
        { name: "all", status: "passed" as const, value, nominal: -1.7e308, threshold: 1.7e308 },
        { name: `only ${value}`, status: "passed" as const, value, nominal: value, threshold: 0 },
      ];
      cell.end(us(300 + nth), runId, { status: "completed", errorMessage: null, notes: [] }, { checks });
    }
    // The client holds the answer against the document: null is no number, and JSON has no NaN.
    const found = await client.get("/programs/{program_id}/statistics", { path: { program_id: programId } });
    t.match(found.checks[0], {
      name: "all",
      values: 9,
      minimum: -1.7e308,
      maximum: 1.7e308,
      upper_limit: 0,
      lower_limit: null,
    });
    for (const format of ["csv", "ndjson", "dfq"]) {
      const { status, body } = await client.raw("GET", `/programs/${programId}/checks.${format}`);
      t.equal(status, 200, format);
      t.notMatch(body.toString(), /NaN|Infinity/, format);
    }
  },
);
