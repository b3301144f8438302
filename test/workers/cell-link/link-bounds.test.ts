import { once } from "node:events";
import { connect, type Socket } from "node:net";
import t, { type Test } from "tap";
import { LIMITS } from "../../../core/limits.js";
import { connectionLimits, PendingConnections } from "../../../workers/cell-link/bounds/connection-limits.js";
import { TokenFailures } from "../../../workers/cell-link/bounds/token-failures.js";
import { encodeFrame } from "../../../workers/cell-link/frame-codec.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const MIB = 1024 * 1024;
const TOKEN = "a token of some length";
const component = (key: string) => ({ type: "component.put", key, status: "healthy" });

async function startWithTcp(t: Test) {
  const options = { cellListen: { host: "127.0.0.1", port: 0 }, cellToken: TOKEN };
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), options);
  return { recorder, tcp: recorder.ready.cellListen as { host: string; port: number } };
}

/** Connections that say nothing, and how many of them were closed. */
class Idlers {
  closed = 0;
  readonly #sockets: Socket[] = [];

  async open(t: Test, address: { path: string } | { host: string; port: number }, count: number): Promise<void> {
    t.teardown(() => {
      for (const socket of this.#sockets) socket.destroy();
    });
    for (let nth = 0; nth < count; nth++) {
      const socket = connect(address);
      socket.on("error", () => {});
      socket.on("close", () => this.closed++);
      this.#sockets.push(socket);
      await once(socket, "connect");
    }
  }

  async untilClosed(count: number): Promise<void> {
    while (this.closed < count) await new Promise((resolve) => setImmediate(resolve));
  }
}

t.test("connections that say nothing take no producer's place, on neither transport, and do not stay", async (t) => {
  const { recorder, tcp } = await startWithTcp(t);
  const { pending } = LIMITS.linkConnections.tcp;
  const before = await recorder.connect("before");
  const overTcp = new Idlers();
  await overTcp.open(t, tcp, pending + 70);
  await overTcp.untilClosed(70);
  const overSocket = new Idlers();
  await overSocket.open(t, recorder.address, LIMITS.linkConnections.socket.pending + 25);
  await overSocket.untilClosed(25);
  t.equal(overTcp.closed, 70, "those of the Unix socket cost none of the others");
  await before.accept(component("before"));
  await (await recorder.connect("local")).accept(component("local"));
  const remote = await RawProducer.connect(tcp, "remote", { token: TOKEN });
  await remote.accept(component("remote"));
  t.equal(overTcp.closed, 71, "the oldest went for it");
  t.equal(recorder.row("recorder").detail, "3 producers connected", "pending connections are none");
  recorder.timers.advance(LIMITS.linkHelloTimeoutMs);
  await overTcp.untilClosed(pending + 70);
  await overSocket.untilClosed(LIMITS.linkConnections.socket.pending + 25);
  await remote.accept(component("still"));
});

t.test("a hello that comes byte by byte has no more time; half-open connections end", async (t) => {
  const { recorder, tcp } = await startWithTcp(t);
  for (const address of [recorder.address, tcp]) {
    const slow = new RawProducer(address);
    const [hello] = encodeFrame({ kind: "hello", sequence: 0, body: { protocol: 1, producer: "slow", token: TOKEN } });
    for (let at = 0; at < LIMITS.linkHelloTimeoutMs / 1000; at++) {
      slow.write((hello as Uint8Array).subarray(at, at + 1));
      await new Promise<void>((resolve) => slow.socket.write("", () => resolve()));
      // By then the service has read what was written.
      await (await recorder.connect("beside")).close();
      recorder.timers.advance(1_000);
    }
    t.strictSame(await slow.rest(), [], "closed");
    const half = new RawProducer(address);
    half.socket.end();
    t.strictSame(await half.rest(), []);
  }
});

t.test("wrong tokens are logged once in ten seconds, and slow down who guesses", async (t) => {
  const { recorder, tcp } = await startWithTcp(t);
  const lines = () => recorder.lines.filter(({ message }) => message === "wrong token for the cell link");
  const guess = async () => {
    const raw = new RawProducer(tcp);
    raw.hello({ protocol: 1, producer: "guesser", token: "not this one" });
    return raw.rest();
  };
  const { free, spanMs } = LIMITS.linkWrongTokens;
  for (let nth = 0; nth < free; nth++) t.match(await guess(), listOf({ body: { code: "unauthorized" } }));
  t.strictSame(lines(), [
    { level: "warn", message: "wrong token for the cell link", fields: { address: "127.0.0.1" } },
  ]);
  const slowed = guess();
  // From the same address, with the right token.
  const honest = RawProducer.connect(tcp, "honest", { token: TOKEN });
  let answered = 0;
  for (const one of [slowed, honest]) void one.then(() => answered++);
  const local = await recorder.connect("local");
  for (let nth = 0; nth < 5; nth++) await local.untilPong();
  t.equal(answered, 0, "not even looked at");
  recorder.timers.advance(2_000);
  t.match(await slowed, listOf({ body: { code: "unauthorized" } }));
  await (await honest).accept(component("honest"));
  recorder.timers.advance(spanMs);
  t.match(lines().slice(1), listOf({ fields: { count: free } }));
  recorder.timers.advance(2 * spanMs);
  t.equal(lines().length, 2);
  t.match(await guess(), listOf({ body: { code: "unauthorized" } }), "at once again");
});

/** Writes, and resolves when the service has read it: it serves the connection beside it in the order of what came. */
async function written(raw: RawProducer, bytes: Uint8Array, beside: RawProducer): Promise<void> {
  await new Promise<void>((resolve) => raw.socket.write(bytes, () => resolve()));
  for (let nth = 0; nth < 3; nth++) await beside.untilPong();
}

function announced(lengthBytes: number): Buffer {
  const message = { kind: "message", sequence: 1, body: { type: "x" }, payload: new Uint8Array(1) } as const;
  const head = Buffer.from(encodeFrame(message)[0] as Uint8Array);
  head.writeUInt32LE(lengthBytes, 20);
  return head;
}

/** Connections that announce the largest payload and send so much of it. */
async function announcing(recorder: RecorderHarness, beside: RawProducer, count: number, bytes: number) {
  const holders: RawProducer[] = [];
  for (let nth = 0; nth < count; nth++) {
    const holder = await recorder.connect(`holder-${bytes}-${nth}`);
    await written(holder, announced(LIMITS.linkPayloadBytes), beside);
    if (bytes > 0) await written(holder, new Uint8Array(bytes), beside);
    holders.push(holder);
  }
  return holders;
}

t.test("payloads that are announced and do not come take no room from others", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const beside = await recorder.connect("beside");
  const before = process.memoryUsage().arrayBuffers;
  await announcing(recorder, beside, 20, 0);
  t.ok(process.memoryUsage().arrayBuffers - before < 10 * MIB, "headers alone take no memory");
  const honest = await recorder.connect("honest");
  for (const bytes of [1, 100_000]) {
    await announcing(recorder, beside, 20, bytes);
    t.match(await honest.deliver({ type: "y" }, new Uint8Array(9 * MIB)), { code: "invalid_message" }, "at once");
  }
  const held = (process.memoryUsage().arrayBuffers - before) / MIB;
  t.ok(held < 40 + 64, `${Math.round(held)} MiB`);
});

t.test("payloads that begin and do not go on take room from others for seconds, all of them together", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const beside = await recorder.connect("beside");
  const before = process.memoryUsage().arrayBuffers;
  // One has the room that is the oldest's alone. With 2 MiB each, 32 have that of all others.
  const holders = await announcing(recorder, beside, 45, MIB + 1);
  const honest = await recorder.connect("honest");
  const answer = honest.deliver({ type: "y" }, new Uint8Array(9 * MIB));
  let isAnswered = false;
  void answer.then(() => {
    isAnswered = true;
  });
  for (let nth = 0; nth < 30; nth++) await beside.untilPong();
  t.notOk(isAnswered, "it waits");
  const held = (process.memoryUsage().arrayBuffers - before) / MIB;
  t.ok(held < 64 + 64 + 45 + 64, `${Math.round(held)} MiB`);
  for (let seconds = 0; seconds < 6; seconds++) {
    recorder.timers.advance(1_000);
    for (let nth = 0; nth < 30; nth++) await beside.untilPong();
  }
  // The payload itself may take longer to come, on a busy machine: no more time passes for those that hold the room.
  t.match(await answer, { code: "invalid_message" });
  for (const holder of holders.slice(0, 12)) t.strictSame(await holder.rest(), [], "closed");
});

t.test("a large payload that goes on at a fair pace keeps its room while others wait", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const beside = await recorder.connect("beside");
  const { bytesPerSecond } = LIMITS.linkSlowPayload;
  const begin = async (name: string, lengthBytes: number, bytes: number) => {
    const raw = await recorder.connect(name);
    await written(raw, announced(lengthBytes), beside);
    await written(raw, new Uint8Array(bytes), beside);
    return raw;
  };
  const oldest = await begin("oldest", LIMITS.linkPayloadBytes, MIB + 1);
  const steady = await begin("steady", 3 * MIB, MIB + 1);
  // The one waits for the second half of its room, the other for the second quarter.
  await begin("half", LIMITS.linkPayloadBytes, LIMITS.linkPayloadBytes / 2 + 1);
  await begin("quarter", LIMITS.linkPayloadBytes, LIMITS.linkPayloadBytes / 4 + 1);
  for (let second = 0; second < 6; second++) {
    for (const one of [oldest, steady]) await written(one, new Uint8Array(bytesPerSecond), beside);
    recorder.timers.advance(1_000);
  }
  await written(steady, new Uint8Array(2 * MIB - 1 - 6 * bytesPerSecond), beside);
  t.match(await steady.next(), { kind: "refuse", sequence: 1, body: { code: "invalid_message" } });
  recorder.timers.advance(1_000);
  t.strictSame(await steady.untilPong(), [], "what is whole is not slow, however long it took");
});

t.test("memory that the process is not given costs the connection that wanted it, and no other", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const beside = await recorder.connect("beside");
  const allocate = Buffer.allocUnsafeSlow;
  t.teardown(() => {
    Buffer.allocUnsafeSlow = allocate;
  });
  const longBody = await recorder.connect("long-body");
  const body = { type: "x", text: "x".repeat(950_000) };
  const long = Buffer.concat(encodeFrame({ kind: "message", sequence: 1, body }));
  let refusals = 0;
  Buffer.allocUnsafeSlow = (size) => {
    if (size < 900_000) return allocate(size);
    refusals++;
    throw new RangeError("Array buffer allocation failed");
  };
  const large = await recorder.connect("large");
  large.message({ type: "x" }, new Uint8Array(7 * MIB));
  t.match(await large.rest(), listOf({ kind: "refuse", sequence: 0, body: { code: "unavailable" } }));
  longBody.write(long);
  t.match(await longBody.rest(), listOf({ kind: "refuse", sequence: 0, body: { code: "unavailable" } }));
  t.equal(refusals, 2);
  await beside.accept(component("beside"));
  Buffer.allocUnsafeSlow = allocate;
  const again = await recorder.connect("large");
  t.match(
    await again.deliver({ type: "x" }, new Uint8Array(7 * MIB)),
    { code: "invalid_message" },
    "there is room again",
  );
});

t.test("a connection that does not read its answers is closed after a minute", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const beside = await recorder.connect("beside");
  const deaf = await recorder.connect("deaf");
  deaf.socket.pause();
  const pings = Buffer.concat(encodeFrame({ kind: "ping", sequence: 1 }));
  const closed = new Promise<void>((resolve) => deaf.socket.once("close", () => resolve()));
  const flood = Buffer.alloc(pings.length * 100_000, pings);
  for (let nth = 0; nth < 8; nth++) deaf.write(flood);
  const isStill = async (): Promise<boolean> => {
    const left = deaf.socket.writableLength;
    for (let nth = 0; nth < 30; nth++) await beside.untilPong();
    return left > 0 && deaf.socket.writableLength === left;
  };
  while (!(await isStill())) {}
  // A minute, in which another speaks.
  for (let nth = 0; nth < 3; nth++) {
    recorder.timers.advance(20_000);
    await beside.untilPong();
  }
  deaf.socket.resume();
  await closed;
});

t.test("limits by descriptors: full where there are many, a quarter of them where there are few", async (t) => {
  t.strictSame(connectionLimits(20_000), LIMITS.linkConnections);
  t.strictSame(connectionLimits(null), LIMITS.linkConnections);
  for (const limit of [64, 256, 1_024, 1_500]) {
    const { socket, tcp } = connectionLimits(limit);
    const all = socket.producers + socket.pending + tcp.producers + tcp.pending;
    t.ok(all <= limit / 4, `${all} of ${limit}`);
    t.ok(Math.min(socket.producers, socket.pending, tcp.producers, tcp.pending) > 0);
  }
});

t.test("who makes room is the oldest of the address that has most", async (t) => {
  const pending = new PendingConnections<string>(4);
  for (const [one, address] of [
    ["a1", "a"],
    ["b1", "b"],
    ["b2", "b"],
    ["a2", "a"],
  ] as const) {
    t.equal(pending.add(one, address), undefined);
  }
  t.equal(pending.add("c1", "c"), "a1");
  t.equal(pending.add("b3", "b"), "b1");
  pending.remove("b2");
  pending.remove("b2");
  t.equal(pending.add("d1", "d"), undefined);
  t.equal(pending.add("e1", "e"), "a2", "one each: the oldest of all");
  const single = new PendingConnections<string>(1);
  single.add("a1", "a");
  t.equal(single.add("b1", "b"), "a1");
  t.equal(single.add("b2", "b"), "b1");
});

t.test("wrong tokens of many addresses are counted in bounded memory", async (t) => {
  const timers = new ManualTimers();
  const failures = new TokenFailures(timers);
  const { addresses, free, spanMs } = LIMITS.linkWrongTokens;
  for (let nth = 0; nth < addresses + 50; nth++) failures.failed(`address-${nth}`);
  t.equal(timers.armed, addresses);
  for (let nth = 1; nth < free; nth++) {
    t.notOk(failures.isSlowed("address-900"));
    failures.failed("address-900");
  }
  t.ok(failures.isSlowed("address-900"));
  t.notOk(failures.isSlowed("address-901"));
  timers.advance(spanMs);
  t.ok(failures.isSlowed("address-900"), "for one span more");
  timers.advance(spanMs);
  t.notOk(failures.isSlowed("address-900"));
  t.equal(timers.armed, 0);
  failures.failed("x");
  failures.stop();
  t.equal(timers.armed, 0);
});
