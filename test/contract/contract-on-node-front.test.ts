import { spawn } from "node:child_process";
import { once } from "node:events";
import t from "tap";
import { isFullSize } from "../helpers/test-size.js";

/** Contract tests that do not say themselves which front they are served by. */
const SAMPLE = ["read-interface", "list-queries", "end-to-end", "webhooks"];
const REST = ["retention", "export", "service-lifetime", "incremental-sync", "damage-at-start", "command-line"];
const SUITES = isFullSize ? [...SAMPLE, ...REST] : SAMPLE;

for (const suite of SUITES) {
  t.test(`the contract test ${suite} holds on the node front as it does on the other one`, async (t) => {
    const child = spawn(process.execPath, ["--enable-source-maps", `dist/test/contract/${suite}.test.js`], {
      // Its own limit is for somebody who waits: here the runner's counts.
      env: { ...process.env, TEST_FRONT: "node", TAP_TIMEOUT: "21600", TAP_JOB_ID: "", TAP_BAIL: "" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
    const [code] = (await once(child, "close")) as [number | null];
    const passed = output.match(/^ +ok \d+ /gm)?.length ?? 0;
    const failed = output.match(/^ *not ok [^\n]*/gm) ?? [];
    t.equal(code, 0, failed.slice(0, 5).join("\n"));
    t.ok(passed > 0);
    t.comment(`${suite}: ${passed} assertions passed on the node front, ${failed.length} failed`);
  });
}
