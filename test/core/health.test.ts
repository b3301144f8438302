import t from "tap";
import { COMPONENT_STATUSES, type ComponentRow, rollUpHealth } from "../../core/health.js";
import { healthResponse } from "../../core/health-response.js";

t.test("rollup: every set of up to three components against the three rules", async (t) => {
  const kinds = COMPONENT_STATUSES.flatMap((status) => [true, false].map((required) => ({ status, required })));
  const sets = [
    [],
    ...kinds.map((a) => [a]),
    ...kinds.flatMap((a) => kinds.flatMap((b) => kinds.map((c) => [a, b, c]))),
  ];
  for (const rows of sets) {
    let expected = "healthy";
    if (rows.filter((row) => row.status !== "healthy").length > 0) expected = "degraded";
    if (rows.filter((row) => row.required && row.status === "down").length > 0) expected = "down";
    if (rollUpHealth(rows) !== expected) return void t.equal(rollUpHealth(rows), expected, JSON.stringify(rows));
  }
  t.pass(`${sets.length} sets`);
});

t.test("the body itemises, with nulls where a field does not apply", async (t) => {
  const rows: ComponentRow[] = [
    { key: "log", status: "healthy", id: null, detail: null, enabled: null, required: true },
    { key: "robot_1", status: "estopped", id: "r1", detail: "button 3", enabled: false, required: true },
    { key: "constructor", status: "healthy", id: null, detail: null, enabled: null, required: false },
  ];
  t.equal(
    JSON.stringify(healthResponse(rows)),
    '{"status":"degraded","components":{' +
      '"log":{"status":"healthy","id":null,"detail":null,"enabled":null},' +
      '"robot_1":{"status":"estopped","id":"r1","detail":"button 3","enabled":false},' +
      '"constructor":{"status":"healthy","id":null,"detail":null,"enabled":null}}}',
  );
});
