import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import {
  CAPTURES,
  capturesOf,
  createCaptureDisk,
  openCaptures,
  storeCaptures,
} from "../../helpers/captures/capture-disk.js";
import { listOf } from "../../helpers/list-of.js";

const random = createRandom(Number(process.env.TEST_SEED ?? 1));
const runId = (timeMs = Date.UTC(2026, 10, 20)): string => generateUuidV7(timeMs, random.bytes(10));

t.test("what was removed stays removed, whatever the disk kept of what was not synced", async (t) => {
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
  const ids = [runId(Date.UTC(2026, 9, 1)), runId(Date.UTC(2026, 10, 1))];
  for (const id of ids) await storeCaptures(store, id, random.bytes(10));
  await store.removeCaptures(ids, (month) => month === "202610");
  const after = disk.fork("drop", random);
  t.same(after.paths(), []);
  t.same(await after.readDirectory(CAPTURES), [{ name: "202611", isDirectory: true }]);
  await store.close();
});

t.test("a file or a month that cannot be removed is told, and holds up no other", async (t) => {
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
  const october = runId(Date.UTC(2026, 9, 1));
  const ids = [october, runId(Date.UTC(2026, 10, 1)), runId(Date.UTC(2026, 10, 2))];
  for (const id of ids) await storeCaptures(store, id, random.bytes(10));
  const stuck = capturesOf(ids[1]!);
  disk.onOperation = ({ kind, path }) =>
    (kind === "unlink" && path === stuck) || kind === "rmdir" ? { error: "EPERM" } : undefined;
  t.match(await store.removeCaptures(ids, (month) => month === "202610"), {
    files: 2,
    kept: listOf(
      { runId: ids[1], error: { code: "EPERM", path: stuck } },
      { runId: october, error: { code: "EPERM", path: `${CAPTURES}/202610` } },
    ),
  });
  t.same(disk.fork("drop", random).paths(), [stuck], "the others are gone, durably");
  t.equal(store.failure, null);
  t.same([...store.removedMonths], []);
  disk.onOperation = () => undefined;
  t.same(await store.removeCaptures([ids[1]!, october], () => true), { files: 1, kept: [] });
  t.same(await disk.readDirectory(CAPTURES), []);
  t.same([...store.removedMonths].sort(), ["202610", "202611"]);
  await store.close();
});

t.test("a month whose folder somebody else removed counts as removed too, once no run can fall into it", async (t) => {
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
  const ids = [runId(Date.UTC(2026, 9, 1)), runId(Date.UTC(2026, 10, 1))];
  for (const id of ids) {
    await storeCaptures(store, id, random.bytes(10));
    await disk.unlink(capturesOf(id));
  }
  await disk.removeDirectory(`${CAPTURES}/202610`);
  await disk.removeDirectory(`${CAPTURES}/202611`);
  t.same(await store.removeCaptures(ids, (month) => month === "202610"), { files: 0, kept: [] });
  t.same([...store.removedMonths], ["202610"]);
  await store.close();
});

t.test("a failed sync of a removal ends the store, as any does", async (t) => {
  for (const syncs of [0, 1]) {
    const disk = await createCaptureDisk();
    const id = runId();
    const failures: string[] = [];
    const store = openCaptures(disk, { onFailure: () => failures.push("failed") });
    await storeCaptures(store, id, random.bytes(10));
    let at = 0;
    disk.onOperation = ({ kind }) => (kind === "syncDirectory" && at++ === syncs ? { error: "EIO" } : undefined);
    // The month's folder first, then, since nothing is left in it, that of the months.
    await t.rejects(
      store.removeCaptures([id], () => true),
      { code: "EIO" },
    );
    t.match(store.failure, { code: "capture_failed", message: /fsync .*EIO/ });
    t.same(failures, ["failed"]);
    t.throws(() => store.file(id, "capture", 0).append(random.bytes(10)), { code: "capture_failed" });
    await store.close();
  }
});
