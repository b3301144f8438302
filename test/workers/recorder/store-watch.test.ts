import { rmSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder-harness.js";

t.test("health says that the file of the lock was removed, and since when", async (t) => {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  t.match(recorder.row("log"), { status: "healthy" });
  rmSync(join(directory, "lock"), { recursive: true });
  recorder.timers.advance(5_000);
  await recorder.until(() => recorder.row("log").status !== "healthy");
  t.match(recorder.row("log"), {
    status: "degraded",
    detail: /^since \d{4}-.*: the file of the lock in .* was removed/,
  });
  t.match(recorder.row("recorder"), { status: "healthy" });
});
