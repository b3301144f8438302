import t from "tap";
import { contractAgain } from "../../helpers/contract-again.js";
import { isFullSize } from "../../helpers/test-size.js";

/**
 * Contract tests of reading: what they expect of a cell, they get from a hub in front of it (helpers/plant/hub-in-front.ts).
 *
 * The messages do not go through a NATS server. These tests write records at times of their own, and expect them as `updated_at`. At a hub that is the
 * time of the stream, which a server takes from its own clock: each such answer would differ. They also read what they have just written, and a
 * server would be started for each of some hundred cells.
 *
 * The way through a real server is tried by `hub.test.ts`: a cell, its shipper, JetStream and a hub as processes, where every answer of the hub is
 * compared with that of the cell, and by `hub-captures.test.ts` for all captures.
 */
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
