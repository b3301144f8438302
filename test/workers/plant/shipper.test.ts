import { setTimeout } from "node:timers/promises";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import type { CaptureShipper } from "../../../workers/plant/capture-shipper.js";
import { type CaptureMark, decodeSender, logSubject } from "../../../workers/plant/log-message.js";
import { type PlantClient, serverFault } from "../../../workers/plant/plant-client.js";
import type { PlantConnection, ShipperOptions } from "../../../workers/plant/shipper.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { type Shipping, ship as shipLog, until, untilShipped } from "../../helpers/plant/shipped-log.js";
import { namesIn } from "../../helpers/plant/shipped-names.js";
import { createDisk, type OpenedLog, openLog, recordOf } from "../../helpers/store/log-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const STORE = "11111111-1111-4111-8111-111111111111";
const OTHER_STORE = "22222222-2222-4222-8222-222222222222";

/** With the store's id that most tests have. */
function ship(disk: SimulatedDisk, options: Pick<ShipperOptions, "connect"> & Partial<ShipperOptions>): Shipping {
  return shipLog({ disk, storeId: STORE, ...options });
}

const ROUNDS = sized(30, 60);
const SIZES = [0, 40, 3_000, 200_000, 700_000, 1_500_000];

t.test(
  "shipper, server and log go on after any stop: nothing lost, doubled or out of order",
  { skip: noNatsServer },
  async (t) => {
    const server = await NatsServer.startWithLog(t);
    const random = createRandom(SEED);
    const disk = await createDisk();
    const opened = await openLog(disk, { segmentBytes: 1_000_000 });
    const faults = { stopped: 0, unsent: 0, unanswered: 0, serverKilled: 0, serverPaused: 0 };
    // Ends the connection before or after the server has taken a message.
    const connect = async () => {
      const client = await server.client();
      const connection: PlantConnection = {
        get isClosed() {
          return client.isClosed;
        },
        requireLogStream: () => client.requireLogStream(),
        requireCaptureStream: () => client.requireCaptureStream(),
        lastMessage: (subjects: string) => client.lastMessage(subjects),
        previousMessage: (subject, before) => client.previousMessage(subject, before),
        close: () => client.close(),
        publish: async (...given: Parameters<PlantClient["publish"]>) => {
          if (random.chance(0.05)) throw new Error(`unsent ${++faults.unsent}`);
          const answer = await client.publish(...given);
          if (random.chance(0.1)) throw new Error(`unanswered ${++faults.unanswered}`);
          return answer;
        },
      };
      return connection;
    };
    let shipping = ship(disk, { connect });
    for (let round = 0; round < ROUNDS; round++) {
      const names = Array.from({ length: random.integer(1, 6) }, (_, at) => `record-${round}-${at}`);
      const sequences = names.map((name) => opened.log.append(recordOf(name, random.pick(SIZES))));
      await opened.log.whenCommitted(Math.max(...sequences));
      opened.timers.fire();
      switch (random.integer(0, 9)) {
        case 0:
        case 1:
          faults.stopped++;
          await shipping.stop();
          shipping = ship(disk, { connect });
          break;
        case 2:
          faults.serverKilled++;
          await server.kill();
          await setTimeout(random.integer(0, 50));
          await server.start();
          break;
        case 3:
          faults.serverPaused++;
          server.signal("SIGSTOP");
          await setTimeout(random.integer(0, 200));
          server.signal("SIGCONT");
          break;
        default:
          await setTimeout(random.integer(0, 20));
      }
    }
    await untilShipped(t, opened, shipping);
    await shipping.stop();
    const shipped = namesIn(await server.messages());
    t.strictSame(shipped, opened.names);
    t.comment(`seed ${SEED}: ${shipped.length} records, ${JSON.stringify(faults)}: 0 lost, 0 doubled, 0 out of order`);
    await opened.log.close();
  },
);

async function append({ log, timers }: OpenedLog, ...names: string[]): Promise<void> {
  await log.whenCommitted(Math.max(...names.map((name) => log.append(recordOf(name)))));
  timers.fire();
}

t.test("a replaced disk begins anew; of two cells of one name, one is refused", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const connect = () => server.client();
  const disks = [await createDisk(), await createDisk()] as const;
  const [first, second] = [await openLog(disks[0]), await openLog(disks[1])];
  await append(first, "a", "b");
  const older = ship(disks[0], { connect });
  await untilShipped(t, first, older);
  await append(second, "c");
  const newer = ship(disks[1], { connect, storeId: OTHER_STORE });
  await untilShipped(t, second, newer);
  await append(first, "d");
  await until(
    t,
    () => /^another store ships as the cell cell-7 \(.*2222\): give each/.test(older.status.fault ?? ""),
    () => JSON.stringify(older.status),
  );
  await append(second, "e");
  await untilShipped(t, second, newer);
  await Promise.all([older.stop(), newer.stop()]);
  const messages = await server.messages();
  const of = (store: string) => namesIn(messages.filter(({ subject }) => subject === logSubject("cell-7", store)));
  t.strictSame(
    [of(STORE), of(OTHER_STORE)],
    [
      ["a", "b"],
      ["c", "e"],
    ],
  );
  t.strictSame(first.names, ["a", "b", "d"], "the refused cell keeps all of its records");
});

/** In full size a day. */
const SECONDS = sized(20_000, 86_400);

t.test("after a long time without a link everything is shipped", { skip: noNatsServer }, async (t) => {
  const disk = await createDisk();
  const opened = await openLog(disk, { segmentBytes: 4_000_000 });
  let server: NatsServer | undefined;
  const connect = async () => {
    if (server === undefined) throw new Error("no link");
    return server.client();
  };
  const shipping = ship(disk, { connect });
  const beganUs = 1_700_000_000_000_000;
  for (let second = 0; second < SECONDS; second++) {
    const sequence = opened.log.append({ ...recordOf(`${second}`, 60), timeUs: beganUs + 1e6 * second });
    if (second % 1_000 === 999) await opened.log.whenCommitted(sequence);
  }
  opened.timers.fire();
  await until(
    t,
    () => shipping.status.lagBytes > 60 * SECONDS,
    () => JSON.stringify(shipping.status),
  );
  t.match(shipping.status, { fault: "the plant does not take messages: no link", oldestUnshippedUs: beganUs });
  server = await NatsServer.startFor(t);
  await server.with((client) => client.createLogStream(1));
  await untilShipped(t, opened, shipping);
  await shipping.stop();
  t.equal(opened.names.length, SECONDS);
  t.strictSame(namesIn(await server.messages()), opened.names);
  await opened.log.close();
});

t.test("a copy of a store is refused when its log goes another way", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const connect = () => server.client();
  const disk = await createDisk();
  const log = await openLog(disk);
  await append(log, "a");
  const copy = disk.copy();
  const fork = await openLog(copy);
  await append(log, "b");
  await append(fork, "another");
  const own = ship(disk, { connect });
  await untilShipped(t, log, own);
  const other = ship(copy, { connect });
  await until(
    t,
    () => /of this store, but its log has others/.test(other.status.fault ?? ""),
    () => JSON.stringify(other.status),
  );
  await Promise.all([own.stop(), other.stop()]);
  t.strictSame(namesIn(await server.messages()), ["a", "b"]);
});

t.test("an old backup is refused under another name, too", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const connect = () => server.client();
  const disk = await createDisk();
  const log = await openLog(disk);
  await append(log, "a");
  const backup = disk.copy();
  await append(log, "b");
  const own = ship(disk, { connect });
  await untilShipped(t, log, own);
  const restored = await openLog(backup);
  await append(restored, "another", "and one more");
  const other = ship(backup, { connect, cell: "cell-8" });
  await until(
    t,
    () =>
      /of this store, but its log has others: .* the store was put back from a backup/.test(other.status.fault ?? ""),
    () => JSON.stringify(other.status),
  );
  await Promise.all([own.stop(), other.stop()]);
  t.strictSame(namesIn(await server.messages()), ["a", "b"]);
  t.ok(restored.names.includes("and one more"), "the store keeps its records");
  const renamed = ship(disk, { connect, cell: "cell-9" });
  await untilShipped(t, log, renamed);
  await renamed.stop();
  const under9 = (await server.messages()).filter(({ subject }) => subject === logSubject("cell-9", STORE));
  t.strictSame(namesIn(under9), ["a", "b"], "the store itself may have another name");
});

t.test("what is wrong with the plant is said in one line", { skip: noNatsServer }, async (t) => {
  const disk = await createDisk();
  const log = await openLog(disk);
  await append(log, "a");
  const faultOf = async (connect: () => Promise<PlantClient>, expected: RegExp): Promise<void> => {
    const shipping = ship(disk, { connect });
    await until(
      t,
      () => expected.test(shipping.status.fault ?? ""),
      () => `${expected}: ${JSON.stringify(shipping.status)}`,
    );
    t.notMatch(shipping.status.fault, /\n/);
    await shipping.stop();
  };
  const server = await NatsServer.startFor(t);
  await faultOf(() => server.client(), /^the stream INSPECTION_LOG is not there: make it with/);
  const small = await NatsServer.startFor(t, "max_payload: 100000");
  await faultOf(
    () => small.client(),
    /^the NATS server takes messages of at most 100000 bytes: set its max_payload to at least 528384$/,
  );
  await small.kill();
  await faultOf(
    () => small.client(),
    /^the plant does not take messages: no server answers at nats:\/\/127.0.0.1:\d+: .*refused/i,
  );
  const closed = await NatsServer.startFor(t, "authorization { user: a, password: b }");
  await faultOf(() => closed.client(), /^the server at nats:\S+ refuses the credentials \(/);
});

t.test("a user may ship as its own cell, and not as another one", { skip: noNatsServer }, async (t) => {
  const allowed = [
    ...["inspection.log.cell-7.*", "inspection.captures.cell-7.>", "$JS.API.STREAM.CREATE.*"],
    ...["INSPECTION_LOG", "INSPECTION_CAPTURES"].flatMap((stream) => [
      `$JS.API.STREAM.INFO.${stream}`,
      `$JS.API.STREAM.MSG.GET.${stream}`,
    ]),
  ];
  const user = `{ user: a, password: b, permissions: { publish: ${JSON.stringify(allowed)}, subscribe: ["_INBOX.>"] } }`;
  const server = await NatsServer.startFor(t, `authorization { users: [${user}] }\nno_auth_user: a`);
  await server.with((client) => client.createStreams({ replicas: 1, captureDays: 1, captureBytes: null }));
  const disk = await createDisk();
  const opened = await openLog(disk);
  await append(opened, "a");
  const own = ship(disk, { connect: () => server.client() });
  await untilShipped(t, opened, own);
  await own.stop();
  const other = ship(disk, { cell: "cell-8", connect: () => server.client() });
  await until(
    t,
    () => /^this user may not publish on inspection\.log\.cell-8\./.test(other.status.fault ?? ""),
    () => JSON.stringify(other.status),
  );
  t.ok((other.status.oldestUnshippedUs ?? 0) > 0 && other.status.lagBytes > 0, "the lag is told");
  await other.stop();
});

t.test("what a server must have", async (t) => {
  const info = { version: "2.12.0", max_payload: 1_048_576, jetstream: true };
  for (const version of ["2.12.0", "2.12.1-RC.1", "2.15.1", "3.0.0"]) t.equal(serverFault({ ...info, version }), null);
  for (const version of ["2.11.9", "2.2.0", "1.20.0"])
    t.equal(serverFault({ ...info, version }), `has version ${version}: 2.12 or newer is needed`);
  t.match(serverFault({}), /^has version unknown: /);
  t.equal(serverFault({ ...info, max_payload: 528_384 }), null);
  t.match(serverFault({ ...info, max_payload: 528_383 }), /^takes messages of at most 528383 bytes: /);
});

t.test("each message says how far captures are, and in which stream", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  await server.with((client) => client.createStreams({ replicas: 1, captureDays: 1, captureBytes: null }));
  const createdMs = (await server.with((client) => client.requireCaptureStream())).createdMs;
  t.ok(Math.abs(Date.now() - createdMs) < 60_000, `made ${createdMs} ms after 1970`);
  const disk = await createDisk();
  const opened = await openLog(disk);
  const begun: CaptureMark[] = [];
  const capturesAt = (mark: CaptureMark | null) =>
    ({
      ...{ mark, figures: { sequence: 0 }, step: async () => false },
      begin: async (_: unknown, known: CaptureMark) => begun.push(known),
    }) as unknown as CaptureShipper;
  const mark = { sequence: 7, streamMs: createdMs };
  for (const [at, captures] of [capturesAt(mark), capturesAt(null)].entries()) {
    await append(opened, `record-${at}`);
    const shipping = ship(disk, { connect: () => server.client(), captures });
    await untilShipped(t, opened, shipping);
    await until(
      t,
      () => begun.length > at,
      () => "captures are not begun",
    );
    await shipping.stop();
    const last = await server.with((client) => client.lastMessage(logSubject("cell-7", STORE)));
    t.strictSame(decodeSender((name) => last?.header(name) ?? "").captures, mark, "also before captures are begun");
  }
  t.strictSame(begun, [{ sequence: 0, streamMs: 0 }, mark], "after a start the last message says it");
  await opened.log.close();
});
