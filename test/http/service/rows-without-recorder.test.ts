import t from "tap";
import { type ComponentRow, rollUpHealth } from "../../../core/health.js";
import { rowsWithoutRecorder } from "../../../http/service/rows-without-recorder.js";

const ENDED_AT_US = Date.UTC(2026, 10, 20, 6, 7, 8, 9) * 1000;

t.test(
  "without its recorder the service is down, says why and since when, and shows the rest as it last was",
  async (t) => {
    const row = { id: null, detail: null, enabled: null, required: true, status: "healthy" } as const;
    const disk: ComponentRow = { ...row, key: "disk", detail: "10 GiB free" };
    const before: ComponentRow[] = [{ ...row, key: "log" }, disk, { ...row, key: "recorder" }];
    const error = { code: "recorder_crashed", message: "out of memory", params: {} } as const;
    const rows = rowsWithoutRecorder(before, error, ENDED_AT_US);
    const down = { ...row, status: "down", detail: "since 2026-11-20T06:07:08.009Z: out of memory" } as const;
    t.strictSame(rows, [{ ...down, key: "log" }, { ...down, key: "recorder" }, { ...down, key: "dispatcher" }, disk]);
    t.equal(rollUpHealth(rows), "down");
    t.equal(rollUpHealth(rowsWithoutRecorder([], error, ENDED_AT_US)), "down");
  },
);
