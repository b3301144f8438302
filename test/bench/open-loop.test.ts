import t from "tap";
import { LatencyHistogram } from "../../bench/harness/latency-histogram.js";
import { runOpenLoop } from "../../bench/harness/open-loop.js";

t.test("the open loop times from the intended instant, so that one stall delays all that follow it", async (t) => {
  const latency = new LatencyHistogram();
  const { seconds } = await runOpenLoop({
    ratePerSecond: 1000,
    count: 60,
    latency,
    send: async (index) => {
      const stallUntilMs = performance.now() + 40;
      while (index === 10 && performance.now() < stallUntilMs);
    },
  });
  t.equal(latency.summarize().count, 60);
  t.ok(seconds >= 0.059, "60 sends at 1,000 a second take 59 ms or more");
  t.ok(latency.percentileNs(0.75) > 10e6, "a closed loop would have seen one slow answer in 60, not a quarter of them");
});

t.test("the open loop sends nothing before its time, at a rate that is no whole number of milliseconds", async (t) => {
  const latency = new LatencyHistogram();
  const sentMs: number[] = [];
  const startMs = performance.now();
  const send = async (): Promise<void> => {
    sentMs.push(performance.now());
  };
  await runOpenLoop({ ratePerSecond: 62.5 * 7, count: 50, send, latency });
  const early = sentMs.filter((ms, index) => ms < startMs + (index * 1000) / (62.5 * 7));
  t.equal(early.length, 0);
});

t.test("the open loop sleeps until the next instant, and takes no core from what it measures", async (t) => {
  const before = process.cpuUsage();
  const { seconds } = await runOpenLoop({
    ratePerSecond: 200,
    count: 100,
    latency: new LatencyHistogram(),
    send: async () => {},
  });
  const { user, system } = process.cpuUsage(before);
  // With Node's timers alone, the last millisecond of each wait is spun through: 23 % of a core and more.
  const share = (user + system) / 1e6 / seconds;
  t.ok(share < 0.15, `${(share * 100).toFixed(1)} % of a core`);
});
