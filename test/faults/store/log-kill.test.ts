import { readdirSync } from "node:fs";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { startHelper } from "../../helpers/process/child-lines.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { openLog } from "../../helpers/store/log-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const CYCLES = sized(4, 300);

t.test("a process killed at any moment loses no record that it acknowledged", async (t) => {
  t.comment(`seed ${SEED}`);
  const random = createRandom(SEED);
  const path = temporaryDirectory(t);
  const acknowledged = new Set<string>();
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const writer = startHelper("store/log-writer-process", [path, `${cycle}.`]);
    t.equal(await writer.line(0), "open", `cycle ${cycle}`);
    await writer.line(random.integer(1, 400));
    await writer.end("SIGKILL");
    for (const name of writer.lines.slice(1)) acknowledged.add(name);
  }
  const directory = await openDataDirectory({ path, creates: false });
  const checked = await checkStore({ dataDirectory: directory });
  t.equal(checked.ok, true, JSON.stringify(checked.findings));
  const { log, names } = await openLog(nodeFileSystem, {
    directory: directory.metaPath,
    quarantineDirectory: directory.quarantinePath,
  });
  const there = new Set(names);
  const lost = [...acknowledged].filter((name) => !there.has(name));
  t.same(lost, []);
  t.equal(there.size, names.length, "none is there twice");
  t.equal(log.recovery.corruptionCount, 0);
  t.same(readdirSync(directory.quarantinePath), []);
  await log.close();
  await directory.release();
  t.comment(`${CYCLES} kills: ${lost.length} of ${acknowledged.size} acknowledged records lost, ${names.length} there`);
});
