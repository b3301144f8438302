import { crc32 } from "node:zlib";
import t from "tap";
import { createRandom, type Random } from "../../core/random.js";
import { isChangeRecordType } from "../../storage/records/record-index.js";
import { checkStore } from "../../storage/repair/check-store.js";
import type { MemorySnapshot } from "../../storage/snapshot/memory-snapshot.js";
import {
  decodeSnapshotHead,
  encodeSnapshotHead,
  headBytesOf,
  SnapshotError,
  snapshotName,
} from "../../storage/snapshot/snapshot-format.js";
import { SnapshotReader } from "../../storage/snapshot/snapshot-reader.js";
import { SnapshotCheck } from "../../workers/snapshot/check-snapshot.js";
import { foldTables } from "../../workers/snapshot/fold-rows.js";
import type { SimulatedDisk } from "../helpers/disk/simulated-disk.js";
import { extremeSet, mutatedBytes } from "../helpers/fuzz/byte-mutators.js";
import { checkCorpus } from "../helpers/fuzz/fuzz-corpus.js";
import { CellHistory } from "../helpers/link/cell-history.js";
import { sectionDifferences } from "../helpers/snapshot/section-differences.js";
import { snapshotCorpus } from "../helpers/snapshot/snapshot-corpus.js";
import { createHistoryDisk, DIRECTORY, HistoryStore, SNAPSHOTS } from "../helpers/store/history-store.js";
import { sized } from "../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
const MUTANTS = sized(30, 20_000);

async function refusal(read: () => Promise<unknown>): Promise<unknown> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error;
    return { refused: error.message };
  }
}

t.test("the corpus of snapshot files: what is read of each", async (t) => {
  await checkCorpus(t, "snapshot", snapshotCorpus(), async ({ parts }) => {
    const disk = await createHistoryDisk();
    const path = `${SNAPSHOTS}/${snapshotName(70)}`;
    disk.setBytes(path, parts.get("file") ?? new Uint8Array(0));
    return refusal(async () => {
      const reader = await SnapshotReader.open(disk, path);
      const column = (name: "viewRunIds" | "viewRunStates") => refusal(async () => Array.from(await reader.read(name)));
      const columns = { viewRunIds: await column("viewRunIds"), viewRunStates: await column("viewRunStates") };
      return { head: reader.head, ...columns };
    });
  });
});

/** A snapshot whose CRCs are right, with a section or a field of the head that says something else. */
function sealedMutant(random: Random, bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  const headBytes = headBytesOf(copy);
  const head = decodeSnapshotHead(copy.subarray(0, headBytes));
  const filled = head.sections.filter(({ length }) => length > 0);
  if (random.chance(0.15)) {
    const field = random.pick(["sequence", "segmentBase", "offset", "headerCrc"] as const);
    head.position[field] = random.pick([0, 1, head.position[field] + 1, 2 ** 32 - 1]);
  } else {
    const section = random.pick(filled);
    const part = copy.subarray(section.offset, section.offset + section.length);
    if (random.chance(0.5)) part.set(extremeSet(random, part));
    else part[random.integer(0, part.length - 1)]! ^= 1 << random.integer(0, 7);
    section.crc = crc32(part);
  }
  copy.set(encodeSnapshotHead(head));
  return copy;
}

/** What the columns say: not where a run without a record would have one. */
async function tablesOf(columns: MemorySnapshot): Promise<string> {
  const tables: unknown[] = [];
  for await (const table of foldTables(columns)) tables.push(table);
  return JSON.stringify(tables);
}

async function check(disk: SimulatedDisk): Promise<string[]> {
  const folds = await SnapshotCheck.open(disk, DIRECTORY);
  const { findings } = await checkStore({
    dataDirectory: DIRECTORY,
    fileSystem: disk,
    understandsType: isChangeRecordType,
    ...(folds !== undefined && { folds }),
  });
  return findings.map(({ code }) => code);
}

t.test(
  `mutants of a snapshot, seed ${seed}: never believed when a CRC is wrong, and never unseen by check when it is right`,
  async (t) => {
    const random = createRandom(seed);
    const disk = await createHistoryDisk();
    const history = new CellHistory(createRandom(seed));
    const store = await HistoryStore.open(disk);
    await store.append(history, 120);
    const { sequence } = await store.makeSnapshot();
    await store.append(history, 30);
    await store.log.close();
    const path = `${SNAPSHOTS}/${snapshotName(sequence)}`;
    const bytes = disk.bytesOf(path);
    const plain = disk.copy();
    plain.removeFile(path);
    const fromLog = await HistoryStore.open(plain);
    await fromLog.log.close();
    const expected = await fromLog.columns();
    const expectedTables = await tablesOf(expected);
    const intact = await HistoryStore.open(disk.copy());
    await intact.log.close();
    t.equal(intact.snapshot?.start.sequence, sequence, "as it is, it is taken");

    const counts = { refused: 0, taken: 0, harmless: 0 };
    const faults: string[] = [];
    for (let mutant = 0; mutant < MUTANTS && faults.length < 3; mutant++) {
      const isSealed = random.chance(0.5);
      const { bytes: mutated, how } = isSealed
        ? { bytes: sealedMutant(random, bytes), how: "sealed" }
        : mutatedBytes(random, bytes, bytes);
      if (Buffer.compare(mutated, bytes) === 0) continue;
      const attempt = disk.copy();
      attempt.setBytes(path, mutated);
      const checked = attempt.copy();
      try {
        const opened = await HistoryStore.open(attempt);
        await opened.log.close();
        if (opened.snapshot === null) {
          counts.refused++;
          const differing = sectionDifferences(await opened.columns(), expected);
          if (differing.length > 0) faults.push(`${how}: refused, and ${differing.join()} is another`);
          if (attempt.paths().includes(path)) faults.push(`${how}: refused, and not removed`);
          continue;
        }
        if (!isSealed) faults.push(`${how}: taken, although no CRC can be right`);
        const codes = await check(checked);
        const isSame = (await tablesOf(await opened.columns())) === expectedTables;
        counts[isSame ? "harmless" : "taken"]++;
        if (!isSame && !codes.includes("snapshot_differs"))
          faults.push(`${how}: taken, and check says ${codes.join()}`);
      } catch (error) {
        faults.push(`${how}: ${error instanceof Error ? error.stack : String(error)}`);
      }
    }
    t.strictSame(faults, []);
    t.ok(counts.refused > MUTANTS / 3 && counts.taken > MUTANTS / 10, JSON.stringify(counts));
    t.comment(`${MUTANTS} mutants of ${bytes.length} bytes: ${JSON.stringify(counts)}, all that differ told by check`);
  },
);
