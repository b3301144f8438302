import t from "tap";
import { createRandom } from "../../../core/random.js";
import { describeSnapshot } from "../../../storage/repair/describe-snapshot.js";
import { SNAPSHOT_SECTIONS, snapshotName } from "../../../storage/snapshot/snapshot-format.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import { createHistoryDisk, HistoryStore, SNAPSHOTS } from "../../helpers/store/history-store.js";

t.test("the newest snapshot's head, readable; none; a damaged one", async (t) => {
  const disk = await createHistoryDisk();
  t.equal(await describeSnapshot(disk, SNAPSHOTS), null);
  const store = await HistoryStore.open(disk);
  await store.append(new CellHistory(createRandom(1)), 80);
  const { sequence, bytes } = await store.makeSnapshot();
  await store.log.close();
  const name = snapshotName(sequence);
  const head = (await describeSnapshot(disk, SNAPSHOTS)) as { sections: { name: string; length: number }[] };
  t.match(head, {
    file: `snapshot/${name}`,
    bytes,
    sequence: 80,
    time: /^2023-11-14T.*Z$/,
    header_crc: /^[0-9a-f]{8}$/,
  });
  t.same(
    head.sections.map(({ name: section }) => section),
    Object.keys(SNAPSHOT_SECTIONS),
  );
  t.match(head, { segments: listOf({ base: 1, salt: /^[0-9a-f]{8}$/ }) });
  const damaged = disk.bytesOf(`${SNAPSHOTS}/${name}`);
  damaged[30]! ^= 1;
  disk.setBytes(`${SNAPSHOTS}/${name}`, damaged);
  await t.rejects(describeSnapshot(disk, SNAPSHOTS), { name: "SnapshotError" });
});
