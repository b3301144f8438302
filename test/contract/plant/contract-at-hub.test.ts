import { spawn } from "node:child_process";
import { once } from "node:events";
import t from "tap";
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
    const child = spawn(process.execPath, [...process.execArgv, `dist/test/contract/${suite}.test.js`], {
      // The file's own limit is for somebody who waits. Here the runner's limit counts.
      env: { ...process.env, TEST_HUB: "1", TAP_TIMEOUT: "21600", TAP_JOB_ID: "", TAP_BAIL: "" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
    const [code] = (await once(child, "close")) as [number | null];
    const passed = output.match(/^ +ok \d+ /gm)?.length ?? 0;
    const failed = output.match(/^ *not ok [^\n]*/gm) ?? [];
    t.equal(code, 0, failed.slice(0, 5).join("\n"));
    t.ok(passed > 0);
    t.match(output, "# served by a hub");
    t.comment(`${suite}: ${passed} assertions passed at a hub, ${failed.length} failed`);
  });
}
