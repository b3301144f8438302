import t from "tap";
import { createRandom } from "../../../core/random.js";
import { encodeRefusal } from "../../../storage/records/change-record.js";
import { isChangeRecordType } from "../../../storage/records/record-index.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { CompactingStore } from "../../helpers/compaction/compacting-store.js";
import { nextRecord, shadowOf, stateAnswers } from "../../helpers/compaction/compaction-history.js";
import type { DiskOperation, SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory, type HistoryRecord } from "../../helpers/link/cell-history.js";
import { createDisk, META, QUARANTINE } from "../../helpers/store/log-harness.js";
import { differences } from "../../helpers/store/view-comparison.js";
import { isFullSize, sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_121);
const SEGMENT_BYTES = 16 * 1024;
const MODES = ["drop", "keep", "tear"] as const;
/** Of the operations, one in so many is struck. */
const STRIDE = sized(4, 1);

interface Store {
  disk: SimulatedDisk;
  history: CellHistory;
  records: HistoryRecord[];
}

/** A store that was closed, with plenty to compact. */
async function createStore(seed: number, count = sized(300, 1_500)): Promise<Store> {
  const random = createRandom(seed);
  const history = new CellHistory(random);
  const disk = await createDisk();
  const store = await CompactingStore.open(disk, SEGMENT_BYTES);
  const records: HistoryRecord[] = [];
  for (let n = 0; n < count; n++) {
    const record = nextRecord(history, random);
    records.push(record);
    store.append(record);
    if (n % 9 === 0) await store.log.whenCommitted(store.log.nextSequence - 1);
  }
  await store.close();
  return { disk: disk.copy(), history, records };
}

const isOfCompaction = ({ kind, path }: DiskOperation): boolean =>
  path.endsWith(".seg.tmp") || (kind === "syncDirectory" && path === META);

/** Opens what a crash left: nothing is lost, and compaction does the rest. Gives what is wrong. */
async function judge({ history, records }: Store, disk: SimulatedDisk, what: string): Promise<string[]> {
  const faults: string[] = [];
  const expect = (found: boolean, fault: string): void => {
    if (!found) faults.push(`${what}: ${fault}`);
  };
  const random = createRandom(SEED);
  const expected = JSON.stringify(stateAnswers(shadowOf(records), history));
  const look = async (store: CompactingStore, when: string): Promise<void> => {
    for (const difference of await differences(store.view, history, random, 2)) {
      faults.push(`${what}, ${when}: ${JSON.stringify(difference).slice(0, 200)}`);
    }
    expect(JSON.stringify(stateAnswers(store.state, history)) === expected, `${when}: another state`);
    expect(store.view.skippedRecords === 0, `${when}: skipped records`);
  };
  const store = await CompactingStore.open(disk, SEGMENT_BYTES);
  const { findings, corruptionCount } = store.log.recovery;
  expect(corruptionCount === 0 && findings.every(({ code }) => code === "temporary_file"), JSON.stringify(findings));
  await look(store, "opened");
  await store.compact();
  expect(store.fault === null, `compaction ended: ${store.fault}`);
  await look(store, "compacted");
  await store.close();
  const again = await CompactingStore.open(disk, SEGMENT_BYTES);
  await look(again, "opened again");
  await again.close();
  const { ok, findings: found } = await checkStore({
    dataDirectory: {
      path: "/data",
      metaPath: META,
      capturesPath: "/none",
      quarantinePath: QUARANTINE,
      snapshotPath: "/none",
      release: async () => {},
    },
    fileSystem: disk,
    understandsType: isChangeRecordType,
  });
  expect(ok && found.length === 0, `check: ${JSON.stringify(found)}`);
  return faults;
}

/** Opens the store and compacts it until the end, or until its disk dies. */
async function compactOn(disk: SimulatedDisk): Promise<CompactingStore | undefined> {
  try {
    const store = await CompactingStore.open(disk, SEGMENT_BYTES);
    await store.compact();
    return store;
  } catch {
    return undefined;
  }
}

t.test("a crash at every operation of compactions: nothing is lost, and the next start goes on", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  const store = await createStore(SEED);
  const operations: DiskOperation[] = [];
  const whole = store.disk.copy();
  whole.onOperation = (operation) => {
    operations.push(operation);
    return undefined;
  };
  const compacted = await compactOn(whole);
  t.ok((compacted?.compacted.length ?? 0) > 2, `${compacted?.compacted.length} segments compacted`);
  await compacted?.close();
  whole.onOperation = () => undefined;
  t.same(await judge(store, whole, "without a crash"), []);
  const faults: string[] = [];
  let crashes = 0;
  for (const { number, kind } of operations.filter((_, at) => at % STRIDE === 0)) {
    for (const mode of isFullSize ? MODES : [MODES[number % 3] ?? "drop"]) {
      const disk = store.disk.copy();
      const short = kind === "write" ? { short: random.integer(0, 3_000) } : {};
      disk.onOperation = (operation) => (operation.number === number ? { dies: true, ...short } : undefined);
      await compactOn(disk);
      faults.push(...(await judge(store, disk.crash(mode, random), `${mode} at ${number}, ${kind}`)));
      crashes++;
    }
  }
  t.same(faults.slice(0, 5), []);
  t.comment(
    `${crashes} crashes in ${operations.length} operations, ${compacted?.compacted.length} compactions: ` +
      `${faults.length} faults`,
  );
});

for (const [code, isForGood] of [
  ["EIO", true],
  ["ENOSPC", false],
] as const) {
  t.test(
    `${code} at every operation of compactions: no answer changes, and the log goes on but after a failed sync of its names`,
    async (t) => {
      const random = createRandom(SEED + 1);
      const store = await createStore(SEED + 1);
      const operations: DiskOperation[] = [];
      const whole = store.disk.copy();
      whole.onOperation = (operation) => {
        // The opening syncs the folder too.
        if (isOfCompaction(operation) && (operation.kind !== "syncDirectory" || operations.length > 0)) {
          operations.push(operation);
        }
        return undefined;
      };
      await (await compactOn(whole))?.close();
      t.ok(operations.length > 20);
      const faults: string[] = [];
      let ended = 0;
      for (const { number, kind, path } of operations.filter((_, at) => at % STRIDE === 0)) {
        const what = `${code} at ${number}, ${kind} ${path}`;
        const disk = store.disk.copy();
        disk.onOperation = (operation) => (operation.number === number ? { error: code } : undefined);
        const struck = await compactOn(disk);
        if (struck === undefined) {
          faults.push(`${what}: not opened`);
          continue;
        }
        const history = store.history;
        const differs = await differences(struck.view, history, random, 2);
        if (differs.length > 0) faults.push(`${what}: ${JSON.stringify(differs[0]).slice(0, 200)}`);
        if (disk.paths().some((name) => name.endsWith(".tmp"))) faults.push(`${what}: a temporary file is left`);
        if (kind === "syncDirectory") {
          // The names of new segments lie there too.
          if (struck.log.failure === null) faults.push(`${what}: the log goes on`);
          await struck.close().catch(() => {});
          faults.push(...(await judge(store, disk, what)));
          continue;
        }
        // A failed sync, also one that says that there was no room, is never tried again.
        const endsForGood = kind === "datasync" || (isForGood && kind !== "create");
        if ((struck.fault !== null) !== endsForGood) faults.push(`${what}: fault ${struck.fault}`);
        if (struck.fault !== null) ended++;
        // The log takes more, and what waited for room is done later.
        const refusal = { code: "not_found", message: "no run", params: {} } as const;
        const record = { ...encodeRefusal({ producer: "cell-1", sequence: 1 }, refusal), timeUs: history.timeUs };
        await struck.log.whenCommitted(struck.append(record));
        if (struck.log.failure !== null) faults.push(`${what}: the log failed`);
        if (struck.fault === null) {
          await struck.compact();
          if (struck.compacted.length === 0) faults.push(`${what}: nothing was compacted later`);
        }
        await struck.close();
        faults.push(...(await judge({ ...store, records: [...store.records, record] }, disk, what)));
      }
      t.same(faults.slice(0, 5), []);
      t.comment(`${code}: ${operations.length} operations failed, ${ended} ended compaction: ${faults.length} faults`);
    },
  );
}

t.test("what was judged by is durable before what it makes needless is gone, in every durability mode", async (t) => {
  let compactions = 0;
  for (const durability of ["full", "interval", "none"] as const) {
    for (let round = 0; round < sized(1, 6); round++) {
      const random = createRandom(SEED + round);
      const history = new CellHistory(random);
      const records: HistoryRecord[] = [];
      const disk = await createDisk();
      const store = await CompactingStore.open(disk, SEGMENT_BYTES, durability);
      const write = async (count: number): Promise<void> => {
        for (let n = 0; n < count; n++) {
          records.push(nextRecord(history, random));
          store.append(records.at(-1)!);
          if (n % 9 === 0) await store.log.whenCommitted(store.log.nextSequence - 1);
        }
        await store.log.whenCommitted(store.log.nextSequence - 1);
      };
      await write(400 + 100 * round);
      await store.compact();
      compactions += store.compacted.length;
      // Nothing was synced but by compaction and by new segments.
      const after = await CompactingStore.open(disk.crash("drop", random), SEGMENT_BYTES);
      t.equal(after.log.recovery.corruptionCount, 0);
      t.same(
        stateAnswers(after.state, history),
        stateAnswers(shadowOf(records), history),
        `${durability}, round ${round}`,
      );
      t.same(await differences(after.view, history, random, 10), []);
    }
  }
  t.ok(compactions > sized(3, 12));
  t.comment(`${compactions} compactions, then a power cut: no record that they were judged by is missing`);
});

t.test("a clean stop in the middle leaves the segment as it was", async (t) => {
  const { disk, history, records } = await createStore(SEED + 2);
  let stops = 0;
  for (let at = 0; at < 30; at++) {
    const copy = disk.copy();
    const store = await CompactingStore.open(copy, SEGMENT_BYTES);
    let turns = 0;
    const compacting = store.compact().catch(() => {});
    while (turns++ < at) await new Promise<void>((resolve) => setImmediate(resolve));
    await store.stopCompaction();
    if (copy.paths().some((path) => path.endsWith(".tmp")))
      t.fail(`stopped after ${at} turns: a temporary file is left`);
    t.same(
      store.lines.filter(({ level }) => level !== "info"),
      [],
    );
    await store.close();
    stops++;
    if (at % 10 === 0) t.same(await judge({ disk: copy, history, records }, copy, `stopped after ${at} turns`), []);
    void compacting;
  }
  t.equal(stops, 30);
});
