import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { SnapshotReader } from "../../../storage/snapshot/snapshot-reader.js";
import { View } from "../../../storage/view/view.js";
import type { RecorderCallbacks } from "../../../workers/recorder/recorder-callbacks.js";
import { startRecorder } from "../../../workers/recorder/recorder-handle.js";
import type { LogLine } from "../../../workers/recorder/recorder-messages.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { longOnly } from "../../helpers/test-size.js";

/** A recorder in its own thread, whose front has a view, and takes snapshots as the test says. */
function start(dataDirectory: string, callbacks: Pick<RecorderCallbacks, "onSnapshot" | "onSnapshotDiscarded"> = {}) {
  const reader = { read: () => Promise.reject(), readMany: () => Promise.reject() };
  const front = { view: new View({ reader }), batches: 0, discarded: 0, lines: [] as LogLine[] };
  const handle = startRecorder(
    {
      dataDirectory,
      durability: "full",
      serviceVersion: "1.2.3",
      cellSocketPath: null,
      cellListen: null,
      cellToken: null,
      finalizeTimeoutMs: 30_000,
      orphanTimeoutMs: null,
      retention: { days: null, bytes: null },
      snapshots: { stopLogBytes: 1, stopMs: 60_000 },
    },
    {
      async onSnapshot(path, sequence) {
        const source = await SnapshotReader.open(nodeFileSystem, path);
        await front.view.loadSnapshot(source, sequence);
        await source.close();
      },
      onSnapshotDiscarded() {
        front.discarded++;
        front.view = new View({ reader });
      },
      onBatch: (batch) => {
        front.batches++;
        front.view.applyBatch(batch);
      },
      onHealth: () => {},
      onCapturesRemoved: () => {},
      onLog: (line) => front.lines.push(line),
      onFailure: () => {},
      ...callbacks,
    },
  );
  return { handle, front };
}

/** A stopped store with some runs and a snapshot; gives its directory. */
async function stoppedStore(t: Parameters<typeof temporaryDirectory>[0]): Promise<string> {
  const directory = temporaryDirectory(t);
  const { handle, front } = start(directory);
  const { cellSocketPath } = await handle.ready;
  const raw = await RawProducer.connect({ path: cellSocketPath }, "p");
  await raw.accept(programPut());
  for (let nth = 0; nth < 5; nth++) await raw.accept({ type: "run.create", id: nextId(), program_id: PROGRAM_ID });
  await raw.close();
  await handle.stop();
  t.match(
    front.lines.find(({ message }) => message === "made a snapshot"),
    { level: "info", fields: { from_sequence: null, runs: 5 } },
  );
  return directory;
}

function snapshotsOf(directory: string): string[] {
  return readdirSync(join(directory, "snapshot"));
}

t.test("front and recorder begin from it: only what lies behind comes as batches", async (t) => {
  const directory = await stoppedStore(t);
  const [name] = snapshotsOf(directory);
  const { handle, front } = start(directory);
  const { recovery } = await handle.ready;
  t.equal(recovery.snapshotSequence, Number(name?.slice(0, 16)));
  t.ok(recovery.records <= 1, "a mark at most");
  t.equal(front.view.runCount, 5);
  t.equal(front.discarded, 0);
  await handle.stop();
  t.same(snapshotsOf(directory), [name], "and nothing was to be added to it");
});

for (const [what, onSnapshot] of [
  ["a front that refuses it", () => Promise.reject(new Error("not me"))],
  ["a front that takes none", undefined],
] as const) {
  t.test(`${what}: the snapshot goes, and all comes as batches`, longOnly, async (t) => {
    const directory = await stoppedStore(t);
    const [name] = snapshotsOf(directory);
    const { handle, front } = start(directory, { onSnapshot } as Partial<RecorderCallbacks>);
    const { recovery } = await handle.ready;
    t.equal(recovery.snapshotSequence, null);
    t.equal(front.discarded, 1);
    t.equal(front.view.runCount, 5);
    t.match(
      front.lines.find(({ level }) => level === "warn"),
      { fields: { snapshot: name, cause: /the front refused it: (?:not me|the front takes no snapshots)/ } },
    );
    await handle.stop();
  });
}

t.test(
  "a front that cannot open it for the moment: the snapshot stays, and all comes as batches",
  longOnly,
  async (t) => {
    const directory = await stoppedStore(t);
    const before = snapshotsOf(directory);
    const failure = new FileSystemError("EMFILE", "open", before[0] as string);
    const { handle, front } = start(directory, { onSnapshot: () => Promise.reject(failure) });
    const { recovery } = await handle.ready;
    t.equal(recovery.snapshotSequence, null);
    t.equal(front.view.runCount, 5);
    const warnings = front.lines.filter(({ level }) => level === "warn");
    t.match(
      warnings,
      listOf({ message: /could not be read, and stays/, fields: { cause: /the front refused it.*EMFILE/ } }),
    );
    t.same(snapshotsOf(directory), before);
    await handle.stop();
  },
);

t.test("damage in the recorder's part: the front gives back what it took", async (t) => {
  const directory = await stoppedStore(t);
  const path = join(directory, "snapshot", snapshotsOf(directory)[0] as string);
  const bytes = readFileSync(path);
  // The last section is the recorder's.
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(path, bytes);
  const { handle, front } = start(directory);
  const { recovery } = await handle.ready;
  t.equal(recovery.snapshotSequence, null);
  t.same([front.discarded, front.view.runCount], [1, 5]);
  t.equal(front.view.skippedRecords, 0, "nothing was applied twice");
  await handle.stop();
});
