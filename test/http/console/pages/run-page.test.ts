import t from "tap";
import { parseSeries } from "../../../../http/console/pages/run/parse-series.js";
import { stepBars } from "../../../../http/console/pages/run/step-bars.js";

t.test("a series has its times from the first one on, and gaps where nothing was measured", async (t) => {
  const csv = [
    "timestamp,channel_1,channel_2",
    "2026-01-02T03:04:05.500000Z,1.5,",
    "2026-01-02T03:04:05.750000Z,,-2e-3",
    "2026-01-02T03:04:06.500000Z,0,3",
    "",
  ];
  for (const newline of ["\n", "\r\n"]) {
    t.same(parseSeries(csv.join(newline)), {
      channels: ["channel_1", "channel_2"],
      columns: [
        [0, 0.25, 1],
        [1.5, null, 0],
        [null, -0.002, 3],
      ],
    });
  }
  const quick = ["timestamp,channel_1", "2026-01-02T03:04:05.999950Z,1", "2026-01-02T03:04:06.000075Z,2"];
  t.same(
    parseSeries(quick.join("\n")).columns,
    [
      [0, 0.000125],
      [1, 2],
    ],
    "microseconds count",
  );
  t.same(parseSeries("timestamp,channel_1\n"), { channels: ["channel_1"], columns: [[], []] });
});

t.test("the bars of steps lie on one time axis; one that runs ends now", async (t) => {
  const second = (at: number): string => `2026-01-02T03:04:${String(at).padStart(2, "0")}Z`;
  const step = (from?: number, to?: number) => ({
    ...{ started_at: from === undefined ? null : second(from), completed_at: to === undefined ? null : second(to) },
  });
  const nowMs = Date.parse(second(18));
  const steps = [step(8, 10), step(10, 15), step(15), step()];
  t.same(stepBars(steps, nowMs), {
    lengthMs: 10_000,
    bars: [
      { left: "0.00%", width: "20.00%" },
      { left: "20.00%", width: "50.00%" },
      { left: "70.00%", width: "30.00%" },
      undefined,
    ],
  });
  t.same(stepBars([step()], nowMs), { lengthMs: undefined, bars: [undefined] });
});
