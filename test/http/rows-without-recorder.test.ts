import t from "tap";
import { type ComponentRow, rollUpHealth } from "../../core/health.js";
import { rowsWithoutRecorder } from "../../http/rows-without-recorder.js";

t.test("without its recorder the service is down, says why, and shows the rest as it last was", async (t) => {
  const row = { id: null, detail: null, enabled: null, required: true, status: "healthy" } as const;
  const disk: ComponentRow = { ...row, key: "disk", detail: "10 GiB free" };
  const before: ComponentRow[] = [{ ...row, key: "log" }, disk, { ...row, key: "recorder" }];
  const rows = rowsWithoutRecorder(before, { code: "recorder_crashed", message: "out of memory", params: {} });
  t.strictSame(rows, [
    { ...row, key: "log", status: "down", detail: "out of memory" },
    { ...row, key: "recorder", status: "down", detail: "out of memory" },
    { ...row, key: "dispatcher", status: "down", detail: "out of memory" },
    disk,
  ]);
  t.equal(rollUpHealth(rows), "down");
  t.equal(rollUpHealth(rowsWithoutRecorder([], { code: "recorder_crashed", message: "x", params: {} })), "down");
});
