import { crc32 } from "node:zlib";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { CaptureIndex } from "../../../storage/captures/capture-index.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { isChangeRecordType } from "../../../storage/records/record-index.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { snapshotHeadBytes, snapshotName } from "../../../storage/snapshot/snapshot-format.js";
import { placeInLog } from "../../../storage/snapshot/snapshot-place.js";
import { SnapshotReader } from "../../../storage/snapshot/snapshot-reader.js";
import { writeSnapshot } from "../../../storage/snapshot/snapshot-writer.js";
import { View } from "../../../storage/view/view.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { SnapshotCheck } from "../../../workers/snapshot/check-snapshot.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { listOf } from "../../helpers/list-of.js";
import { createHistoryDisk, DIRECTORY, HistoryStore, SNAPSHOTS } from "../../helpers/store/history-store.js";
import { META, QUARANTINE } from "../../helpers/store/log-harness.js";

async function storeWithSnapshot(seed: number): Promise<{ disk: SimulatedDisk; path: string }> {
  const disk = await createHistoryDisk();
  const history = new CellHistory(createRandom(seed));
  const store = await HistoryStore.open(disk);
  await store.append(history, 200);
  const { sequence } = await store.makeSnapshot();
  await store.append(history, 60);
  await store.log.close();
  return { disk, path: `${SNAPSHOTS}/${snapshotName(sequence)}` };
}

async function checked(disk: SimulatedDisk) {
  const folds = await SnapshotCheck.open(disk, DIRECTORY);
  const result = await checkStore({
    dataDirectory: DIRECTORY,
    fileSystem: disk,
    understandsType: isChangeRecordType,
    folds,
  });
  // Nothing writes hint files here.
  const findings = result.findings.filter(({ code }) => code !== "hint_missing");
  const summary = { ...result.summary, findings: findings.length };
  return { ...result, findings, summary, snapshot: folds?.summary };
}

t.test("an intact snapshot, an old one, and none: nothing is found", async (t) => {
  const { disk, path } = await storeWithSnapshot(1);
  const sizeBytes = disk.bytesOf(path).length;
  const intact = await checked(disk);
  t.match(intact, { ok: true, findings: { length: 0 }, summary: { damages: 0 } });
  t.same(intact.snapshot, { file: path.slice("/data/".length), sizeBytes, verdict: "agrees" });
  disk.removeFile(path);
  const without = await checked(disk);
  t.match(without, { ok: true, findings: { length: 0 } });
  t.equal(without.snapshot, undefined);
});

t.test("a damaged snapshot is told, and damage, though everything in it is in the log too", async (t) => {
  const { disk, path } = await storeWithSnapshot(2);
  const bytes = disk.bytesOf(path);
  bytes[bytes.length - 10]! ^= 1;
  disk.setBytes(path, bytes);
  const { ok, findings, summary, snapshot } = await checked(disk);
  t.equal(ok, false);
  t.equal(snapshot?.verdict, "of_no_use");
  t.match(
    findings,
    listOf({ code: "snapshot_damaged", file: path.slice("/data/".length), message: /CRC; .*remove the file/ }),
  );
  t.match(summary, { findings: 1, damages: 1 });
  // What a crash leaves of one that was being written has no name of a snapshot.
  disk.removeFile(path);
  disk.setBytes(`${path}.tmp`, bytes.slice(0, bytes.length >> 1));
  t.match(await checked(disk), { ok: true, summary: { damages: 0 } });
});

t.test("a snapshot that the disk does not give is damaged, whatever the disk says of it", async (t) => {
  const { disk, path } = await storeWithSnapshot(2);
  for (const code of ["EIO", "EUCLEAN", "EBADMSG", "ENODATA"]) {
    disk.onRead = (read) => (read === path ? code : undefined);
    const { ok, findings, snapshot } = await checked(disk);
    t.same([ok, snapshot?.verdict], [false, "of_no_use"], code);
    t.match(findings, listOf({ code: "snapshot_damaged", message: code }));
  }
  disk.onRead = (read) => (read === path ? "ENOMEM" : undefined);
  t.match((await checked(disk)).findings, listOf({ code: "unreadable", message: /ENOMEM/ }), "which may pass");
});

t.test("a snapshot of another version is no damaged one, and of no use", async (t) => {
  for (const at of [8, 12]) {
    const { disk, path } = await storeWithSnapshot(2);
    const bytes = disk.bytesOf(path);
    const view = new DataView(bytes.buffer);
    view.setUint32(at, 99, true);
    const headBytes = snapshotHeadBytes(view.getUint32(52, true), view.getUint32(56, true));
    view.setUint32(headBytes - 4, crc32(bytes.subarray(0, headBytes - 4)), true);
    disk.setBytes(path, bytes);
    const { ok, findings, snapshot } = await checked(disk);
    t.equal(ok, true);
    t.equal(snapshot?.verdict, "of_no_use");
    t.match(findings, listOf({ code: "snapshot_unusable", message: /version 99.*; this release reads/ }));
  }
});

t.test("a format version that is damaged is damage: told by check, and put in quarantine by an opening", async (t) => {
  const { disk, path } = await storeWithSnapshot(2);
  const bytes = disk.bytesOf(path);
  for (let bit = 0; bit < 32; bit++) {
    const flipped = bytes.slice();
    flipped[8 + (bit >> 3)]! ^= 1 << (bit & 7);
    disk.setBytes(path, flipped);
    const { ok, findings } = await checked(disk);
    t.equal(ok, false);
    t.match(
      findings,
      listOf({ code: "snapshot_damaged", message: /says format version \d+, and the CRC of its head 1/ }),
    );
  }
  const opened = await HistoryStore.open(disk);
  await opened.log.close();
  t.equal(opened.snapshot, null);
  t.ok(disk.has(`${QUARANTINE}/${path.slice(SNAPSHOTS.length + 1)}`));
});

t.test("an older snapshot beside the newest is told and not looked into; so is one under another number", async (t) => {
  const { disk, path } = await storeWithSnapshot(7);
  const older = `${SNAPSHOTS}/${snapshotName(3)}`;
  disk.setBytes(older, new Uint8Array(100));
  const beside = await checked(disk);
  t.match(beside, { ok: true, snapshot: { verdict: "agrees" }, summary: { findings: 1, damages: 0 } });
  t.match(beside.findings, listOf({ code: "snapshot_left", file: older.slice("/data/".length), lengthBytes: 100 }));
  disk.removeFile(older);
  const number = Number(path.slice(SNAPSHOTS.length + 1, -".snap".length));
  const renamed = `${SNAPSHOTS}/${snapshotName(number + 1)}`;
  disk.setBytes(renamed, disk.bytesOf(path));
  disk.removeFile(path);
  const misnamed = await checked(disk);
  t.match(misnamed, { ok: true, snapshot: { verdict: "agrees" }, summary: { findings: 1, damages: 0 } });
  const message = new RegExp(`ends at record ${number + 1}, by its head, which counts, at ${number}$`);
  t.match(misnamed.findings, listOf({ code: "snapshot_misnamed", file: renamed.slice("/data/".length), message }));
  const opened = await HistoryStore.open(disk);
  await opened.log.close();
  t.equal(opened.snapshot?.start.sequence, number, "an opening goes by the head");
});

t.test(
  "a snapshot, or a segment that it knows, that the disk does not open is told once, the rest checked",
  async (t) => {
    const { disk, path } = await storeWithSnapshot(8);
    const { summary: whole } = await checked(disk);
    const segment = disk.paths().find((name) => name.startsWith(META)) as string;
    for (const failing of [path, segment]) {
      for (const code of ["EIO", "ELOOP"]) {
        const attempt = disk.copy();
        const open = attempt.open.bind(attempt);
        attempt.open = async (name, mode) => {
          if (name === failing) throw new FileSystemError(code, "open", name);
          return open(name, mode);
        };
        const { ok, findings, summary, snapshot } = await checked(attempt);
        const file = failing.slice("/data/".length);
        const expected =
          failing === segment
            ? ["segment_unreadable", "unreadable"]
            : [code === "EIO" ? "snapshot_damaged" : "unreadable"];
        t.same([ok, findings.map((one) => one.code).sort()], [false, expected], `${code} ${file}`);
        t.ok(findings.every((one) => one.file === file));
        t.equal(snapshot?.verdict, failing === segment ? "not_compared" : "of_no_use");
        if (failing === path) t.equal(summary.records, whole.records);
      }
    }
    const unlisted = disk.copy();
    const list = unlisted.readDirectory.bind(unlisted);
    unlisted.readDirectory = async (name) => {
      if (name === SNAPSHOTS) throw new FileSystemError("EIO", "readdir", name);
      return list(name);
    };
    const { ok, findings, summary } = await checked(unlisted);
    t.match([ok, findings.length, summary.records], listOf(false, 1, whole.records));
    t.match(findings, listOf({ code: "unreadable", file: "snapshot" }));
  },
);

t.test("a snapshot of another log is told, and no damage either", async (t) => {
  const { disk, path } = await storeWithSnapshot(3);
  const other = await storeWithSnapshot(4);
  for (const name of disk.paths()) if (name.startsWith(META)) disk.removeFile(name);
  for (const name of other.disk.paths()) if (name.startsWith(META)) disk.setBytes(name, other.disk.bytesOf(name));
  const { ok, findings, snapshot } = await checked(disk);
  t.equal(ok, true);
  t.equal(snapshot?.verdict, "of_no_use");
  t.match(findings, listOf({ code: "snapshot_unusable", file: path.slice("/data/".length) }));
});

t.test("a snapshot that says something else than the log is a fault, whichever table it is in", async (t) => {
  const { disk, path } = await storeWithSnapshot(5);
  const reader = await SnapshotReader.open(disk, path);
  await placeInLog(disk, META, reader.head);
  /** The snapshot once more, with a change made to one of its sections; its CRCs are right. */
  const forge = async (change: (section: string, values: Uint8Array) => void): Promise<SimulatedDisk> => {
    const copy = disk.copy();
    const view = new View({ reader: { read: () => Promise.reject(), readMany: () => Promise.reject() } });
    const state = new RecorderState(new CaptureIndex({ keepsRuns: true }));
    await view.loadSnapshot(reader, reader.head.position.sequence);
    await state.loadSnapshot(reader);
    await writeSnapshot(copy, SNAPSHOTS, reader.head, async (sink) => {
      const changing: typeof sink = {
        async write(section, parts) {
          const changed = [...parts].map((part) => {
            const values = part.slice();
            change(section, new Uint8Array(values.buffer));
            return values;
          });
          await sink.write(section, changed as never);
        },
      };
      await view.writeSnapshot(changing);
      await state.writeSnapshot(changing);
    });
    return copy;
  };
  t.match(await checked(await forge(() => {})), { ok: true, findings: { length: 0 } }, "unchanged");
  const changes: [string, RegExp, number][] = [
    ["viewRunTimes", /runs of the view/, 0],
    ["viewRecordOffsets", /runs of the view/, 0],
    ["viewFrameRuns", /frames of the view/, 0],
    ["viewProgramIdsEver", /programs ever/, 3],
    ["recorderRunStatuses", /runs of the recorder/, 0],
    ["recorderRevisions", /revisions/, 0],
    ["recorderFrameRuns", /frames of the recorder/, 0],
  ];
  for (const [section, expected, at] of changes) {
    const forged = await forge((name, bytes) => {
      if (name === section && bytes.length > 0) bytes[at]! ^= 1;
    });
    const { ok, findings, summary, snapshot } = await checked(forged);
    t.equal(ok, false, section);
    t.equal(snapshot?.verdict, "differs", section);
    t.match(findings, listOf({ code: "snapshot_differs", message: expected }), section);
    t.equal(summary.damages, 0);
  }
  await reader.close();
});

t.test("of a damaged log the snapshot may know more: the damage is told, and no fault", async (t) => {
  const { disk } = await storeWithSnapshot(6);
  const segment = disk.paths().find((name) => name.startsWith(META)) as string;
  const bytes = disk.bytesOf(segment);
  bytes[bytes.length >> 1]! ^= 1;
  disk.setBytes(segment, bytes);
  const { ok, findings, snapshot } = await checked(disk);
  t.equal(ok, false);
  t.equal(snapshot?.verdict, "not_compared");
  t.match(findings, listOf({ code: "record_damaged" }));
});
