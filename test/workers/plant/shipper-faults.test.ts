import t from "tap";
import { LOG_RECORD_TYPE, RECORD_HEADER_BYTES, readRecordHeader } from "../../../storage/log/record-format.js";
import { segmentName } from "../../../storage/log/segment.js";
import { logSubject } from "../../../workers/plant/log-message.js";
import { LogTail } from "../../../workers/plant/log-tail.js";
import { verifyPlant } from "../../../workers/plant/verify-plant.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import {
  type ShippedLog,
  type Shipping,
  shipAll,
  ship as shipLog,
  until,
  untilShipped,
} from "../../helpers/plant/shipped-log.js";
import { namesIn } from "../../helpers/plant/shipped-names.js";
import {
  createDisk,
  META,
  type OpenedLog,
  openLog,
  recordOf,
  type SeenRecord,
} from "../../helpers/store/log-harness.js";

const STORE = "11111111-1111-4111-8111-111111111111";
const OTHER_STORE = "22222222-2222-4222-8222-222222222222";

function ship(disk: ShippedLog["disk"], options: Omit<ShippedLog, "disk" | "storeId">): Shipping {
  return shipLog({ disk, storeId: STORE, ...options });
}

async function append({ log, timers }: OpenedLog, ...names: string[]): Promise<void> {
  await log.whenCommitted(Math.max(...names.map((name) => log.append(recordOf(name)))));
  timers.fire();
}

t.test("a foreign message is told and passed over", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  const subject = logSubject("cell-7", STORE);
  const stray = async (): Promise<number> =>
    server.with(async (client) => {
      const expected = (await client.lastMessage(subject))?.streamSequence ?? 0;
      return client.publish(subject, {}, Buffer.from("stray"), { subjects: "inspection.log.cell-7.*", expected });
    });
  await server.with((client) => client.createLogStream(1));
  const disk = await createDisk();
  const opened = await openLog(disk);
  const strays: number[] = [];
  for (const name of ["a", "b", "c"]) {
    await append(opened, name);
    strays.push(await stray());
    if (name === "c") strays.push(await stray());
    const shipping = ship(disk, { connect: () => server.client() });
    await untilShipped(t, opened, shipping);
    t.equal(shipping.status.foreign, strays.at(-1));
    await shipping.stop();
  }
  const own = (await server.messages()).filter(({ streamSequence }) => !strays.includes(streamSequence));
  t.strictSame(namesIn(own), ["a", "b", "c"]);
  await opened.log.close();
});

t.test("a stray message beside the cell's own is no other store", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const disk = await createDisk();
  const opened = await openLog(disk);
  await append(opened, "a");
  await shipAll(t, { disk, opened, storeId: STORE, connect: () => server.client() });
  const strays: number[] = [];
  for (const name of ["test", OTHER_STORE]) {
    const subjects = "inspection.log.cell-7.*";
    await server.with(async (client) => {
      const expected = (await client.lastMessage(subjects))?.streamSequence ?? 0;
      strays.push(await client.publish(`inspection.log.cell-7.${name}`, {}, Buffer.from("x"), { subjects, expected }));
    });
  }
  await append(opened, "b");
  const shipping = ship(disk, { connect: () => server.client() });
  await untilShipped(t, opened, shipping);
  t.equal(shipping.status.foreign, strays.at(-1));
  await shipping.stop();
  const own = (await server.messages()).filter(({ streamSequence }) => !strays.includes(streamSequence));
  t.strictSame(namesIn(own), ["a", "b"]);
  await opened.log.close();
});

t.test("a batch that a power cut has divided is still the same", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  const connect = () => server.client();
  await server.with((client) => client.createLogStream(1));
  const disk = await createDisk();
  const opened = await openLog(disk);
  for (let group = 0; group < 4; group++) await append(opened, `${group}`, `${group}b`);
  await shipAll(t, { disk, opened, storeId: STORE, connect });
  // The last mark is written, and a power cut takes it before it is durable. So recovery moves what it had proven.
  const after = disk.copy();
  const path = `${META}/${segmentName(1)}`;
  const bytes = after.bytesOf(path);
  t.equal(readRecordHeader(new DataView(bytes.slice(-RECORD_HEADER_BYTES).buffer), 0).type, LOG_RECORD_TYPE.mark);
  after.setBytes(path, bytes.slice(0, -RECORD_HEADER_BYTES));
  const again = await openLog(after);
  t.equal(new Set(again.seen.map(({ location }) => location.segmentBase)).size, 2, "it is divided");
  await append(again, "later");
  await shipAll(t, { disk: after, opened: again, storeId: STORE, connect });
  t.strictSame(namesIn(await server.messages()), again.names);
  await again.log.close();
});

t.test("a record whose last parts never come is void", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const disk = await createDisk();
  const opened = await openLog(disk);
  await append(opened, "a");
  await shipAll(t, { disk, opened, storeId: STORE, connect: () => server.client() });
  // As a store that was restored: it ends before the record.
  const restored = disk.copy();
  await opened.log.whenCommitted(opened.log.append(recordOf("large", 1_500_000)));
  opened.timers.fire();
  let isDead = false;
  const dying = ship(disk, {
    connect: async () => {
      const client = await server.client();
      const publish = client.publish.bind(client);
      client.publish = async (subject, fields, ...rest) => {
        isDead ||= fields["Inspection-Part"] === "3/3";
        if (isDead) throw new Error("the cell has died");
        return publish(subject, fields, ...rest);
      };
      return client;
    },
  });
  await until(
    t,
    () => {
      opened.timers.fire();
      return isDead;
    },
    () => JSON.stringify(dying.status),
  );
  await dying.stop();
  t.equal((await server.messages()).at(-1)?.header("Inspection-Part"), "2/3");
  const again = await openLog(restored);
  await append(again, "b");
  await again.log.whenCommitted(again.log.append(recordOf("another large one", 1_200_000)));
  await shipAll(t, { disk: restored, opened: again, storeId: STORE, connect: () => server.client() });
  t.strictSame(namesIn(await server.messages()), ["a", "b", "another large one"]);
  const differences: string[] = [];
  const tail = new LogTail({ fileSystem: restored, directory: META });
  await server.with((plant) =>
    verifyPlant({ plant, storeId: STORE, tail, onDifference: ({ message }) => differences.push(message) }),
  );
  t.strictSame(differences, []);
  await again.log.close();
});

t.test("damage of what was shipped last is told from another history", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const disk = await createDisk();
  const opened = await openLog(disk);
  await append(opened, "a", "b", "c");
  await shipAll(t, { disk, opened, storeId: STORE, connect: () => server.client() });
  const { segmentBase, offset } = opened.seen[1]?.location ?? { segmentBase: 0, offset: 0 };
  const file = await disk.open(`${META}/${segmentName(segmentBase)}`, "update");
  await file.write(Buffer.of(0xff), offset + 60);
  await file.close();
  await append(opened, "d");
  await shipAll(t, { disk, opened, storeId: STORE, connect: () => server.client() });
  t.strictSame(namesIn(await server.messages()), ["a", "b", "c", "d"]);
  await opened.log.close();
});

t.test("damage in the newest segment is told, and what follows is shipped", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const disk = await createDisk();
  const opened = await openLog(disk);
  for (const name of ["a", "b", "c", "d"]) await append(opened, name);
  const hurt = opened.seen[1] as SeenRecord;
  const file = await disk.open(`${META}/${segmentName(hurt.location.segmentBase)}`, "update");
  await file.write(Buffer.alloc(30, 0xff), hurt.location.offset);
  await file.close();
  const shipping = ship(disk, { connect: () => server.client() });
  await untilShipped(t, opened, shipping);
  t.strictSame(shipping.status.lost, { records: 1, first: hurt.sequence, last: hurt.sequence });
  await shipping.stop();
  const messages = await server.messages();
  const previous = messages.map(({ header }) =>
    [header("Inspection-Previous"), header("Inspection-First")].map(Number),
  );
  t.strictSame(
    previous.filter(([before = 0, first = 0]) => first !== before + 1),
    [[hurt.sequence - 1, hurt.sequence + 1]],
  );
  await opened.log.close();
});

t.test(
  "a gap that damage leaves in a sealed segment is told, and what follows is shipped",
  { skip: noNatsServer },
  async (t) => {
    const server = await NatsServer.startWithLog(t);
    const disk = await createDisk();
    const opened = await openLog(disk, { segmentBytes: 100_000 });
    for (let record = 0; record < 12; record++) {
      await opened.log.whenCommitted(opened.log.append(recordOf(`record-${record}`, 30_000)));
      opened.timers.fire();
    }
    const hurt = opened.seen[1]?.location;
    const file = await disk.open(`${META}/${segmentName(hurt?.segmentBase ?? 0)}`, "update");
    await file.write(Buffer.alloc(64, 0xff), (hurt?.offset ?? 0) + 1_000);
    await file.close();
    const shipping = ship(disk, { connect: () => server.client() });
    await untilShipped(t, opened, shipping);
    const sequence = opened.seen[1]?.sequence as number;
    t.strictSame(shipping.status.lost, { records: 1, first: sequence, last: sequence });
    await shipping.stop();
    const numbers = (await server.messages()).map(({ header }) => [
      header("Inspection-First"),
      header("Inspection-Last"),
    ]);
    t.notOk(numbers.some(([first, last]) => Number(first) <= sequence && sequence <= Number(last)));
    await opened.log.close();
  },
);
