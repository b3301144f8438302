import t from "tap";
import { contractAgain } from "../helpers/contract-again.js";
import { FRONTS_HERE, frontsHere } from "../helpers/http/fronts-here.js";
import { isFullSize } from "../helpers/test-size.js";

/** Contract tests that do not say themselves which front they are served by. */
const SAMPLE = ["reading/read-files", "reading/read-system"];
const REST = [
  "end-to-end",
  "reading/read-lists",
  "reading/read-runs",
  "webhooks/webhook-management",
  "webhooks/webhook-events",
  "webhooks/webhook-attempts",
  "captures/retention",
  "commands/export",
  "start/service-lifetime",
  "reading/incremental-sync",
  "start/damage-at-start",
  "commands/command-line",
];
const SUITES = isFullSize ? [...SAMPLE, ...REST] : SAMPLE;

// By themselves they run on the first of those that can be had.
frontsHere(t);
for (const { name, environment } of FRONTS_HERE.slice(1)) {
  for (const suite of SUITES) {
    t.test(`the contract test ${suite} holds on ${name} as it does on the first front`, async (t) => {
      const { INSPECTION_FRONT: TEST_FRONT, ...others } = environment;
      await contractAgain(t, suite, { ...others, TEST_FRONT });
    });
  }
}
