import t, { type Test } from "tap";
import { cellSubjects, logSubject } from "../../../workers/plant/log-message.js";
import { LogTail } from "../../../workers/plant/log-tail.js";
import type { StoredMessage } from "../../../workers/plant/plant-client.js";
import { type Difference, verifyPlant } from "../../../workers/plant/verify-plant.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { shipAll } from "../../helpers/plant/shipped-log.js";
import { createDisk, META, openLog, recordOf } from "../../helpers/store/log-harness.js";

const STORE = "11111111-1111-4111-8111-111111111111";
const OTHER_STORE = "22222222-2222-4222-8222-222222222222";
const HEADERS = ["First", "Last", "Count", "Previous", "Crc32", "Part"].map((name) => `Inspection-${name}`);

type Sent = Pick<StoredMessage, "subject" | "bytes"> & { fields: Record<string, string> };

function sentOf({ subject, header, bytes }: StoredMessage): Sent {
  const fields = HEADERS.map((name) => [name, header(name)]).filter(([, value]) => value !== "");
  return { subject, bytes, fields: Object.fromEntries(fields) };
}

/** A server whose stream has these messages. */
async function serverWith(t: Test, messages: readonly Sent[]): Promise<NatsServer> {
  const server = await NatsServer.startFor(t);
  await server.with(async (client) => {
    await client.createLogStream(1);
    let expected = 0;
    for (const { subject, fields, bytes } of messages)
      expected = await client.publish(subject, fields, bytes, { subjects: cellSubjects("cell-7"), expected });
  });
  return server;
}

t.test(
  "verify finds a batch that is missing, changed, doubled, damaged or of another epoch",
  { skip: noNatsServer },
  async (t) => {
    const disk = await createDisk();
    const opened = await openLog(disk, { segmentBytes: 1_000_000 });
    const source = await NatsServer.startWithLog(t);
    for (const size of [40, 600_000, 3_000, 1_300_000, 200_000, 0]) {
      await opened.log.whenCommitted(opened.log.append(recordOf(`record-${size}`, size)));
      opened.timers.fire();
      await shipAll(t, { disk, opened, storeId: STORE, connect: () => source.client() });
    }
    const sent = (await source.messages()).map(sentOf);
    const whole = sent.findIndex(
      ({ fields }) => fields["Inspection-Part"] === undefined && fields["Inspection-First"] !== "1",
    );
    const part = sent.findIndex(({ fields }) => fields["Inspection-Part"]?.startsWith("2/"));
    t.ok(whole > 0 && part > 0 && sent.length > 6, `${sent.length} messages, some of them parts`);
    const at = (index: number): Sent => sent[index] as Sent;
    const without = (index: number) => sent.filter((_, nth) => nth !== index);
    const instead = (index: number, ...others: Sent[]) => sent.toSpliced(index, 1, ...others);
    const swapped = at(sent.findIndex(({ fields }, nth) => nth !== whole && fields["Inspection-Part"] === undefined));
    const cases: [name: string, messages: readonly Sent[], codes: string[]][] = [
      ["the same", sent, []],
      ["a batch is missing", without(whole), ["missing"]],
      ["the first one is missing", sent.slice(1), ["missing"]],
      ["a part is missing", without(part), ["missing"]],
      ["the last one is missing", sent.slice(0, -1), ["unshipped"]],
      ["all are missing", [], ["unshipped"]],
      [
        "a batch has other bytes",
        instead(whole, { ...at(whole), bytes: flipped(at(whole).bytes) }),
        ["damaged", "missing"],
      ],
      [
        "a batch has other records",
        instead(whole, {
          ...at(whole),
          bytes: swapped.bytes,
          fields: { ...at(whole).fields, "Inspection-Crc32": swapped.fields["Inspection-Crc32"] as string },
        }),
        ["changed"],
      ],
      ["a batch is doubled", instead(whole, at(whole), at(whole)), ["doubled"]],
      ["a stray message", [...sent, { ...at(whole), fields: {}, bytes: Buffer.from("stray") }], ["damaged"]],
      [
        "a stray message of another id",
        [...sent, { subject: logSubject("cell-7", OTHER_STORE), fields: {}, bytes: Buffer.from("stray") }],
        ["damaged"],
      ],
      ["another store goes on", [...sent, { ...at(0), subject: logSubject("cell-7", OTHER_STORE) }], ["other_epoch"]],
    ];
    for (const [name, messages, codes] of cases) {
      const server = await serverWith(t, messages);
      const found: Difference[] = [];
      const tail = new LogTail({ fileSystem: disk, directory: META });
      const result = await server.with((plant) =>
        verifyPlant({ plant, storeId: STORE, tail, onDifference: (difference) => found.push(difference) }),
      );
      t.strictSame(
        found.map(({ code }) => code),
        codes,
        `${name}: ${JSON.stringify(found)}`,
      );
      t.equal(result.differences, codes.length);
      await server.kill();
    }
    t.comment(`${cases.length - 1} kinds of difference: each is found`);
    await opened.log.close();
  },
);

t.test("a record whose parts are arriving is under way, and not missing", { skip: noNatsServer }, async (t) => {
  const source = await NatsServer.startWithLog(t);
  const disk = await createDisk();
  const opened = await openLog(disk, { segmentBytes: 4_000_000 });
  await opened.log.whenCommitted(opened.log.append(recordOf("large", 1_300_000)));
  opened.timers.fire();
  await shipAll(t, { disk, opened, storeId: STORE, connect: () => source.client() });
  const sent = (await source.messages()).map(sentOf);
  const firstParts = sent.slice(0, sent.findIndex(({ fields }) => fields["Inspection-Part"]?.startsWith("2/")) + 1);
  const server = await serverWith(t, firstParts);
  const verify = async (laterMs: number) => {
    const found: string[] = [];
    const tail = new LogTail({ fileSystem: disk, directory: META });
    const nowMs = () => Date.now() + laterMs;
    const onDifference = ({ code, message }: Difference): void => void found.push(`${code}: ${message}`);
    const { underWay } = await server.with((plant) =>
      verifyPlant({ plant, storeId: STORE, tail, onDifference, nowMs }),
    );
    return { found, underWay };
  };
  // The record itself is old in this log: only its parts are new.
  t.strictSame(await verify(0), { found: [], underWay: 1 });
  const { found } = await verify(60_000);
  t.equal(found.length, 2);
  t.match(found[0], /^missing: record \d+: the plant has only its first 2 parts$/);
  t.match(found[1], /^unshipped: records \d+ to \d+ have not been shipped yet$/);
  await opened.log.close();
});

t.test("a store that got another name is compared with what came under it", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const disk = await createDisk();
  const opened = await openLog(disk);
  for (const cell of ["cell-7", "cell-8"]) {
    await opened.log.whenCommitted(opened.log.append(recordOf(`for ${cell}`)));
    opened.timers.fire();
    await shipAll(t, { disk, opened, storeId: STORE, cell, connect: () => server.client() });
  }
  const found: Difference[] = [];
  const tail = new LogTail({ fileSystem: disk, directory: META });
  const onDifference = (difference: Difference): void => void found.push(difference);
  const result = await server.with((plant) =>
    verifyPlant({ plant, storeId: STORE, tail, onDifference, nowMs: () => Date.now() + 1e12 }),
  );
  t.strictSame(found, []);
  t.equal(result.cell, "cell-8");
  await opened.log.close();
});

function flipped(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(bytes);
  copy[20] = (copy[20] as number) ^ 1;
  return copy;
}
