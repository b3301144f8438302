import { spawnSync } from "node:child_process";
import t from "tap";

const PROGRAM = new URL("../../../workers/dispatcher/lookup-process.js", import.meta.url).href;

/** Starts one while no further file can be opened, and one afterwards. */
const SCRIPT = `
import { closeSync, openSync } from "node:fs";
import { startLookupProcess } from ${JSON.stringify(PROGRAM)};
const files = [];
try {
  for (;;) files.push(openSync("/dev/null"));
} catch (error) {
  console.log(error.code);
}
const first = startLookupProcess(
  () => console.log("answered"),
  () => {
    console.log("ended");
    for (const file of files) closeSync(file);
    const second = startLookupProcess(
      ({ hostname, code }) => {
        console.log(hostname, code);
        process.exit(0);
      },
      () => process.exit(1),
    );
    second.ask("localhost");
    // The process does not hold its starter.
    setInterval(() => {}, 1000);
  },
);
first.ask("localhost");
`;

t.test("one that cannot be started, for too many open files, is one that has ended", async (t) => {
  const limited = ["-c", 'ulimit -n 64; exec "$0" --input-type=module -e "$1"', process.execPath, SCRIPT];
  const { status, stdout, stderr } = spawnSync("sh", limited, { encoding: "utf8" });
  t.same([stdout, stderr, status], ["EMFILE\nended\nlocalhost null\n", "", 0]);
});
