import t from "tap";
import { createRandom } from "../../../core/random.js";
import type { LogOptions } from "../../../storage/log/log-options.js";
import type { DiskFault, DiskOperation, SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { createDisk, META, openLog, QUARANTINE, recordOf } from "../../helpers/store/log-harness.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
/** Small, so that the workload rotates several times. */
const SEGMENT_BYTES = 1_200;

interface Outcome {
  acknowledged: string[];
  appended: string[];
  failure: string | null;
  /** Acknowledged after the fault had struck. */
  acknowledgedAfter: number;
}

/** Opens the log and appends in groups of varying size until done or until it fails. */
async function work(disk: SimulatedDisk, overrides: Partial<LogOptions> = {}): Promise<Outcome> {
  const outcome: Outcome = { acknowledged: [], appended: [], failure: null, acknowledgedAfter: 0 };
  try {
    const { log } = await openLog(disk, { segmentBytes: SEGMENT_BYTES, ...overrides });
    const acknowledgements: Promise<void>[] = [];
    for (let group = 0; group < 8; group++) {
      for (let i = 0; i <= group % 3; i++) {
        const name = `${group}.${i}`;
        const sequence = log.append(recordOf(name, 50 + 130 * (group % 2)));
        outcome.appended.push(name);
        const acknowledge = (): void => {
          outcome.acknowledged.push(name);
          if (log.failure !== null) outcome.acknowledgedAfter++;
        };
        const acknowledged = log.whenCommitted(sequence).then(acknowledge);
        acknowledged.catch(() => undefined);
        acknowledgements.push(acknowledged);
      }
      // Some groups wait for the ones before, some are appended while one is being written.
      if (group % 2 === 0) await Promise.all(acknowledgements);
      else await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await Promise.all(acknowledgements);
    await log.close();
  } catch (error) {
    outcome.failure = error instanceof Error ? error.message : String(error);
  }
  // Whoever still waits is told.
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  return outcome;
}

/** The operations that the workload makes without a fault. */
async function operationsOf(overrides: Partial<LogOptions> = {}): Promise<DiskOperation[]> {
  const disk = await createDisk();
  const operations: DiskOperation[] = [];
  disk.onOperation = (operation) => {
    operations.push(operation);
    return undefined;
  };
  const outcome = await work(disk, overrides);
  if (outcome.failure !== null) throw new Error(outcome.failure);
  return operations;
}

/** A fault at the nth operation from now on. */
function strike(disk: SimulatedDisk, at: number, fault: DiskFault): void {
  const first = disk.operations;
  disk.onOperation = ({ number }) => (number - first === at ? fault : undefined);
}

/** What is wrong with the records that are there: acknowledged ones missing, or no prefix of what was appended. */
function judge(names: string[], outcome: Outcome): { lost: number; isPrefix: boolean } {
  const there = new Set(names);
  const lost = outcome.acknowledged.filter((name) => !there.has(name)).length;
  return { lost, isPrefix: names.join() === outcome.appended.slice(0, names.length).join() };
}

t.test("a crash at every operation loses no acknowledged record, whatever of the rest the disk kept", async (t) => {
  t.comment(`seed ${SEED}`);
  const random = createRandom(SEED);
  const operations = await operationsOf();
  let crashes = 0;
  let lost = 0;
  let notPrefix = 0;
  let corrupt = 0;
  let acknowledged = 0;
  for (const mode of ["drop", "keep", "tear", "tear", "tear"] as const) {
    for (const [at, operation] of operations.entries()) {
      const disk = await createDisk();
      strike(disk, at, operation.kind === "write" ? { dies: true, short: random.integer(0, 200) } : { dies: true });
      const outcome = await work(disk);
      const after = disk.crash(mode, random);
      const { names, log } = await openLog(after, { segmentBytes: SEGMENT_BYTES });
      const judged = judge(names, outcome);
      crashes++;
      acknowledged += outcome.acknowledged.length;
      lost += judged.lost;
      if (!judged.isPrefix) notPrefix++;
      if (log.recovery.corruptionCount > 0) corrupt++;
    }
  }
  t.same({ lost, notPrefix, corrupt }, { lost: 0, notPrefix: 0, corrupt: 0 });
  t.comment(
    `${crashes} crashes at ${operations.length} operations: ${lost} of ${acknowledged} acknowledged records lost`,
  );
});

/** A log with an unproven tail, damage in the middle, and a leftover file: recovery has everything to do. */
async function damagedLog(): Promise<SimulatedDisk> {
  const template = await createDisk();
  const { log, seen } = await openLog(template, { segmentBytes: SEGMENT_BYTES });
  for (let i = 0; i < 12; i++) await log.whenCommitted(log.append(recordOf(`r${i}`, 150)));
  const start = template.kill().copy();
  const path = start.paths().find((name) => name.startsWith(META))!;
  const bytes = start.bytesOf(path);
  bytes[seen[1]!.location.offset + 60]! ^= 1;
  start.setBytes(path, bytes);
  start.setBytes(`${META}/0000000000000099.seg.tmp`, new Uint8Array(10));
  return start;
}

t.test(
  "the process's end at every operation of a recovery, then a power cut at every one of the next: nothing is lost",
  async (t) => {
    const random = createRandom(SEED);
    const start = await damagedLog();
    const counting = start.copy();
    const reference = await openLog(counting, { segmentBytes: SEGMENT_BYTES });
    t.ok(counting.operations >= 10, `${counting.operations} operations`);
    t.equal(reference.log.recovery.lostRecords, 1);
    t.equal(reference.names.length, 11);
    t.ok(counting.paths().some((name) => name.startsWith(QUARANTINE)));
    let wrong = 0;
    let crashes = 0;
    // If the process ends before it has done anything, the power cuts strike a first recovery.
    for (let killedAt = 0; killedAt < counting.operations; killedAt++) {
      // Made anew each time: a copy of a disk has nothing that is not durable.
      const killed = async (): Promise<SimulatedDisk> => {
        const disk = start.copy();
        strike(disk, killedAt, { dies: true });
        await openLog(disk, { segmentBytes: SEGMENT_BYTES }).catch(() => undefined);
        return disk.kill();
      };
      const whole = await killed();
      const before = whole.operations;
      await openLog(whole, { segmentBytes: SEGMENT_BYTES });
      for (let at = 0; at < whole.operations - before; at++) {
        for (const mode of ["drop", "keep", "tear", "tear", "tear"] as const) {
          const next = await killed();
          strike(next, at, { dies: true });
          await openLog(next, { segmentBytes: SEGMENT_BYTES }).catch(() => undefined);
          const again = await openLog(next.crash(mode, random), { segmentBytes: SEGMENT_BYTES });
          crashes++;
          if (again.names.join() !== reference.names.join() || again.log.recovery.lostRecords !== 1) wrong++;
        }
      }
    }
    t.equal(wrong, 0);
    t.ok(crashes > 500);
    t.comment(`${crashes} power cuts within recoveries after ended processes: ${wrong} with another result`);
  },
);

for (const kind of ["datasync", "write", "rename", "syncDirectory", "create"] as const) {
  t.test(`a failed ${kind} ends the log: nothing is acknowledged after it, nothing before it is lost`, async (t) => {
    const random = createRandom(SEED);
    const operations = await operationsOf();
    let faults = 0;
    let afterFault = 0;
    let lost = 0;
    let silent = 0;
    let later = 0;
    for (const [at, operation] of operations.entries()) {
      if (operation.kind !== kind) continue;
      for (const code of ["EIO", "ENOSPC"]) {
        for (const mode of ["drop", "keep", "tear"] as const) {
          const disk = await createDisk();
          const first = disk.operations;
          let hasStruck = false;
          disk.onOperation = (next) => {
            if (hasStruck && (next.kind === "write" || next.kind === "datasync")) later++;
            if (next.number - first !== at) return undefined;
            hasStruck = true;
            return { error: code };
          };
          const outcome = await work(disk);
          faults++;
          afterFault += outcome.acknowledgedAfter;
          // A full disk need not be reported if everything appended was stored.
          const isUntouched = code === "ENOSPC" && outcome.acknowledged.length === outcome.appended.length;
          if (outcome.failure === null ? !isUntouched : !outcome.failure.includes(code)) silent++;
          disk.onOperation = () => undefined;
          const after = mode === "keep" ? disk.kill() : disk.crash(mode, random);
          lost += judge((await openLog(after, { segmentBytes: SEGMENT_BYTES })).names, outcome).lost;
        }
      }
    }
    t.ok(faults > 0);
    t.same({ afterFault, lost, silent, later }, { afterFault: 0, lost: 0, silent: 0, later: 0 });
    t.comment(
      `${faults} failures: ${afterFault} acknowledged after, ${lost} lost, ${silent} not told, ${later} tried again`,
    );
  });
}

t.test("records that a failed sync left in the page cache are made durable before they count", async (t) => {
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await log.whenCommitted(log.append(recordOf("a")));
  disk.onOperation = ({ kind }) => (kind === "datasync" ? { error: "EIO" } : undefined);
  await t.rejects(log.whenCommitted(log.append(recordOf("b"))), { code: "log_failed" });
  t.throws(() => log.append(recordOf("c")), { code: "log_failed" });
  t.match(log.failure, { code: "log_failed", params: { first_sequence: 2, cause: /EIO/ } });
  // The process starts anew, reads b from the page cache, goes on, and only then the power fails.
  disk.onOperation = () => undefined;
  const restarted = disk.kill();
  const second = await openLog(restarted);
  t.same(second.names, ["a", "b"]);
  await second.log.whenCommitted(second.log.append(recordOf("c")));
  const after = await openLog(restarted.crash("drop", createRandom(SEED)));
  t.same(after.names, ["a", "b", "c"]);
  t.equal(after.log.recovery.corruptionCount, 0);
});

t.test("short writes are continued, and a write of nothing fails", async (t) => {
  const random = createRandom(SEED);
  const disk = await createDisk();
  let shortened = 0;
  disk.onOperation = ({ kind }) => {
    if (kind !== "write") return undefined;
    shortened++;
    return { short: random.integer(1, 40) };
  };
  const outcome = await work(disk);
  t.equal(outcome.failure, null);
  t.equal(outcome.acknowledged.length, outcome.appended.length);
  disk.onOperation = () => undefined;
  t.same((await openLog(disk)).names, outcome.appended);
  t.comment(`${shortened} short writes, ${outcome.acknowledged.length} records acknowledged`);

  const stuck = await createDisk();
  const { log } = await openLog(stuck);
  stuck.onOperation = ({ kind }) => (kind === "write" ? { short: 0 } : undefined);
  await t.rejects(log.whenCommitted(log.append(recordOf("a"))), { code: "log_failed", message: /wrote nothing/ });
});

t.test("in the modes that do not wait for a sync, a crash leaves a prefix and no corruption", async (t) => {
  const random = createRandom(SEED);
  for (const durability of ["interval", "none"] as const) {
    const operations = await operationsOf({ durability });
    let wrong = 0;
    let unproven = 0;
    for (const [at] of operations.entries()) {
      for (const mode of ["drop", "tear", "keep"] as const) {
        const disk = await createDisk();
        strike(disk, at, { dies: true });
        const outcome = await work(disk, { durability });
        const after = mode === "keep" ? disk.kill() : disk.crash(mode, random);
        const { names, log } = await openLog(after, { durability, segmentBytes: SEGMENT_BYTES });
        const { lost, isPrefix } = judge(names, outcome);
        if (!isPrefix || log.recovery.corruptionCount > 0) wrong++;
        // The end of the process alone loses nothing in any mode.
        if (mode === "keep" && lost > 0) wrong++;
        unproven += lost;
      }
    }
    t.equal(wrong, 0);
    t.comment(
      `${durability}: ${operations.length * 3} crashes, ${wrong} wrong; power cuts took ${unproven} acknowledged`,
    );
  }
});
