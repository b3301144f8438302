import t from "tap";
import { contractAgain } from "../../helpers/contract-again.js";
import { isFullSize } from "../../helpers/test-size.js";

/** Contract tests of reading: what they expect of a cell, they get from a hub in front of it (helpers/plant/hub-in-front.ts). */
const SAMPLE = ["reading/read-lists", "reading/read-runs", "statistics/program-statistics"];
const REST = [
  "reading/read-files",
  "reading/incremental-sync",
  "reading/run-report",
  "live/client-sync",
  "live/follow-runs",
  "live/run-socket",
  "live/run-stream",
  "statistics/late-and-extreme-statistics",
];

for (const suite of isFullSize ? [...SAMPLE, ...REST] : SAMPLE) {
  t.test(`the contract test ${suite} holds at a hub`, async (t) => {
    t.match(await contractAgain(t, suite, { TEST_HUB: "1" }), "# served by a hub");
  });
}
