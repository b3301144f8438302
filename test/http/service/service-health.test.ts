import t from "tap";
import { type ComponentRow, rollUpHealth } from "../../../core/health.js";
import { rowsWithoutRecorder } from "../../../http/service/service-health.js";

t.test("without its recorder the service is down, says why, and shows the rest as it last was", async (t) => {
  const row = { id: null, detail: null, enabled: null, required: true, status: "healthy" } as const;
  const disk: ComponentRow = { ...row, key: "disk", detail: "10 GiB free" };
  const before: ComponentRow[] = [{ ...row, key: "log" }, disk, { ...row, key: "recorder" }];
  const rows = rowsWithoutRecorder(before, "out of memory");
  const down = { ...row, status: "down", detail: "out of memory" } as const;
  t.strictSame(rows, [{ ...down, key: "log" }, { ...down, key: "recorder" }, { ...down, key: "dispatcher" }, disk]);
  t.equal(rollUpHealth(rows), "down");
  t.equal(rollUpHealth(rowsWithoutRecorder([], "out of memory")), "down");
});
