import { spawn } from "node:child_process";
import { once } from "node:events";
import t from "tap";
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
      const child = spawn(process.execPath, [...process.execArgv, `dist/test/contract/${suite}.test.js`], {
        // The file's own limit is for somebody who waits. Here the runner's limit counts.
        env: { ...process.env, ...others, TEST_FRONT, TAP_TIMEOUT: "21600", TAP_JOB_ID: "", TAP_BAIL: "" },
        stdio: ["ignore", "pipe", "pipe"],
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
      const [code] = (await once(child, "close")) as [number | null];
      const passed = output.match(/^ +ok \d+ /gm)?.length ?? 0;
      const failed = output.match(/^ *not ok [^\n]*/gm) ?? [];
      t.equal(code, 0, failed.slice(0, 5).join("\n"));
      t.ok(passed > 0);
      t.comment(`${suite}: ${passed} assertions passed on ${name}, ${failed.length} failed`);
    });
  }
}
