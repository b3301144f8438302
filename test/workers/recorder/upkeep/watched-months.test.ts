import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { openDataDirectory } from "../../../../storage/disk/data-directory.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../../storage/disk/file-system-error.js";
import { LOOK_INTERVAL_MS, StoreWatch } from "../../../../workers/recorder/upkeep/store-watch.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";
import { temporaryDirectory } from "../../../helpers/recorder/recorder-harness.js";
import { until } from "../../../helpers/store/log-harness.js";

async function startWatch(t: Test, fileSystem = nodeFileSystem) {
  const directory = await openDataDirectory({ path: temporaryDirectory(t), creates: true });
  t.teardown(() => directory.release());
  const month = join(directory.capturesPath, "202610");
  mkdirSync(month);
  const timers = new ManualTimers();
  const removedMonths = new Set<string>();
  const lines: string[] = [];
  let nowUs = 0;
  const watch = new StoreWatch({
    ...{ timers, fileSystem, directory, wallUs: () => nowUs },
    log: () => undefined,
    captures: { verifyNames: async () => {}, removedMonths },
    restoreSocket: async () => false,
    onChange() {},
    line: (_, message) => lines.push(message),
  });
  t.teardown(() => watch.stop());
  await watch.start();
  const nextLook = async (): Promise<void> => {
    nowUs += 1_000 * LOOK_INTERVAL_MS;
    timers.advance(LOOK_INTERVAL_MS);
    await until(() => timers.armed > 0, "the end of the look");
  };
  return { watch, nextLook, month, removedMonths, lines };
}

t.test("a month that retention has removed is not missed; one that somebody else has removed is", async (t) => {
  const { watch, nextLook, month, removedMonths, lines } = await startWatch(t);
  await nextLook();
  rmdirSync(month);
  await nextLook();
  t.match(watch.placeFault, /folders in .*captures were removed or replaced \(202610\)/);
  t.equal(lines.length, 1);
  removedMonths.add("202610");
  await nextLook();
  t.equal(watch.placeFault, null);
  t.equal(lines.length, 1);
});

t.test("months that cannot be listed are told once, since the first look that failed", async (t) => {
  let isFailing = true;
  const fileSystem = Object.create(nodeFileSystem, {
    readDirectory: {
      value: async (path: string) => {
        if (isFailing && path.endsWith("captures")) throw new FileSystemError("EACCES", "readdir", path);
        return nodeFileSystem.readDirectory(path);
      },
    },
  });
  const { watch, nextLook, lines } = await startWatch(t, fileSystem);
  for (let nth = 0; nth < 3; nth++) await nextLook();
  t.match(watch.placeFault, /^since 1970-01-01T00:00:05.*: a part of the data directory cannot be looked at/);
  t.equal(lines.length, 1);
  isFailing = false;
  await nextLook();
  t.equal(watch.placeFault, null);
});
