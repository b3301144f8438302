import t from "tap";
import { isRepeatable } from "../../../storage/disk/file-system-error.js";
import type { WriteRoom } from "../../../storage/disk/retried-writes.js";
import type { CommittedBatch } from "../../../storage/log/committed-batch.js";
import { recordLength } from "../../../storage/log/record-format.js";
import { segmentBaseOf } from "../../../storage/log/segment.js";
import { outOfMemory, ShortMemory } from "../../helpers/short-memory.js";
import { appendAll, appendEach, createDisk, META, openLog, recordOf, until } from "../../helpers/store/log-harness.js";

/** A room in which what lacks something waits until the test says so. */
function waitingRoom() {
  const waiting: (() => void)[] = [];
  const room: WriteRoom = {
    isOver: false,
    async attempt(operation) {
      for (;;) {
        try {
          return await operation();
        } catch (error) {
          if (!isRepeatable(error)) throw error;
          await new Promise<void>((resolve) => waiting.push(resolve));
        }
      }
    },
  };
  const tryAgain = async (): Promise<void> => {
    await until(() => waiting.length > 0, "an operation that waits");
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { room, waiting, tryAgain };
}

t.test("a record that finds no memory takes no sequence number: the next start misses nothing", async (t) => {
  const memory = new ShortMemory(t);
  const disk = await createDisk();
  const { log } = await openLog(disk);
  await appendAll(log, ["a", "b"]);
  const large = recordOf("large", 200_000);
  memory.leastRefusedBytes = 100_000;
  t.throws(() => log.append(large), outOfMemory());
  t.same([log.nextSequence, log.pendingBytes], [3, 0]);
  await appendAll(log, ["c"]);
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  await appendAll(log, ["large"], 200_000);
  await log.close();
  const again = await openLog(disk);
  t.same(again.names, ["a", "b", "c", "large"]);
  t.equal(again.log.recovery.findingCount, 0);
});

t.test("a large group leaves its memory without asking for other memory", async (t) => {
  const memory = new ShortMemory(t);
  const disk = await createDisk();
  let shortAt = 0;
  const onCommitted = ({ lastSequence }: CommittedBatch): void => {
    if (lastSequence === shortAt) memory.leastRefusedBytes = 10_000;
  };
  const { log } = await openLog(disk, { onCommitted });
  await appendAll(log, ["large"], 5_000_000);
  const sequence = log.append(recordOf("large", 5_000_000));
  shortAt = sequence;
  await log.whenCommitted(sequence);
  memory.leastRefusedBytes = Number.POSITIVE_INFINITY;
  await appendEach(log, ["c", "d", "e"]);
  t.equal(log.failure, null);
  await log.close();
  t.equal(memory.refusals, 0);
});

t.test("the next segment waits for the memory of its opening state, and holds what came meanwhile", async (t) => {
  const disk = await createDisk();
  const { room, waiting, tryAgain } = waitingRoom();
  let isShort = false;
  const opened = await openLog(disk, { segmentBytes: 1_000, room });
  await opened.log.close();
  const names: string[] = [];
  const options = {
    ...{ segmentBytes: 1_000, room },
    openingState: () => {
      if (isShort) throw outOfMemory();
      return { index: new Uint8Array(0), body: new TextEncoder().encode(names.join(",")) };
    },
  };
  const { log } = await openLog(disk, options);
  const append = (name: string): Promise<void> => {
    names.push(name);
    return log.whenCommitted(log.append(recordOf(name, 600)));
  };
  await append("a");
  isShort = true;
  const waits = ["b", "c"].map(append);
  for (let nth = 0; nth < 3; nth++) await tryAgain();
  await until(() => waiting.length > 0, "another try");
  const later = append("d");
  t.equal(log.failure, null);
  t.equal(log.committedSequence, 1);
  isShort = false;
  await tryAgain();
  await Promise.all([...waits, later]);
  await log.close();
  const again = await openLog(disk);
  t.same(again.names, ["a", "b", "c", "d"]);
  t.equal(again.log.recovery.findingCount, 0);
  const bases = disk.paths().flatMap((path) => segmentBaseOf(path.slice(META.length + 1)) ?? []);
  t.same(again.openingNames, names.slice(0, Math.max(...bases) - 1), "all that came before its segment");
});

t.test("a group is not written before its owner has the memory that it needs to take it", async (t) => {
  const disk = await createDisk();
  const { room, tryAgain } = waitingRoom();
  const events: string[] = [];
  let isShort = true;
  const { log } = await openLog(disk, {
    room,
    beforeWrite: (lengthBytes) => {
      events.push(`needs ${lengthBytes}`);
      if (isShort) throw outOfMemory();
    },
    onCommitted: ({ bytes }) => events.push(`takes ${bytes.length}`),
  });
  disk.onOperation = ({ kind }) => {
    events.push(kind);
    return undefined;
  };
  const committed = log.whenCommitted(log.append(recordOf("a")));
  await tryAgain();
  isShort = false;
  await tryAgain();
  await committed;
  const { index, body } = recordOf("a");
  const length = recordLength(index.length, body.length);
  t.same(events, [...Array(3).fill(`needs ${length}`), "write", "datasync", `takes ${length}`]);
  t.equal(log.failure, null);
});

t.test("a stop ends the wait for memory: nothing is broken, and the record comes again", async (t) => {
  const disk = await createDisk();
  let isOver = false;
  const room: WriteRoom = {
    get isOver() {
      return isOver;
    },
    attempt: (operation) => operation(),
  };
  const { log } = await openLog(disk, {
    room,
    beforeWrite: () => {
      isOver = true;
      throw outOfMemory();
    },
  });
  await t.rejects(log.whenCommitted(log.append(recordOf("a"))), { code: "log_failed" });
  t.match(log.failure, { params: { without_room: true, cause: "Array buffer allocation failed" } });
  await t.rejects(log.close(), { code: "log_failed" });
  t.equal((await openLog(disk)).log.recovery.findingCount, 0);
});
