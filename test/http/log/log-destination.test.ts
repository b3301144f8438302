import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { type LineSink, LogDestination } from "../../../http/log/log-destination.js";
import { someFronts } from "../../helpers/http/fronts-here.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const failure = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

/** Takes at most so many bytes at once, or fails as told. */
class FakeSink implements LineSink {
  #taken: Uint8Array[] = [];
  attempts = 0;
  fault: string | undefined;
  most = Number.POSITIVE_INFINITY;
  #wake: () => void = () => {};

  write(bytes: Uint8Array, done: (error: NodeJS.ErrnoException | null, written: number) => void): void {
    setImmediate(() => {
      let written = 0;
      let error: NodeJS.ErrnoException | null = null;
      try {
        written = this.writeNow(bytes);
      } catch (thrown) {
        error = thrown as NodeJS.ErrnoException;
      }
      done(error, written);
      this.#wake();
    });
  }

  writeNow(bytes: Uint8Array): number {
    this.attempts++;
    if (this.fault !== undefined) throw failure(this.fault);
    const part = bytes.subarray(0, this.most);
    this.#taken.push(part);
    return part.length;
  }

  get taken(): string {
    this.#taken = [Buffer.concat(this.#taken)];
    return String(this.#taken[0]);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

const droppedLine = (lines: number) => `dropped ${lines}\n`;
const keepAlive = (t: Test) => {
  // Its own timers keep no process alive.
  const timer = setInterval(() => {}, 1_000);
  t.teardown(() => clearInterval(timer));
};

t.test("lines come out whole and in order, however little is taken at once", async (t) => {
  const sink = new FakeSink();
  sink.most = 7;
  const log = new LogDestination(sink, droppedLine);
  const lines = Array.from({ length: 300 }, (_, nth) => `line ${nth} é\n`);
  for (const line of lines) log.write(line);
  const expected = lines.join("");
  await sink.until(() => sink.taken.length >= expected.length);
  t.equal(sink.taken, expected);
});

t.test("what a full disk does not take waits for room; what is too much is dropped, counted and told", async (t) => {
  keepAlive(t);
  const sink = new FakeSink();
  sink.fault = "ENOSPC";
  const log = new LogDestination(sink, droppedLine);
  const line = `${"x".repeat(1023)}\n`;
  for (let nth = 0; nth < 5_000; nth++) log.write(line);
  await sink.until(() => sink.attempts > 1);
  sink.fault = undefined;
  await sink.until(() => sink.taken.includes("dropped"));
  await sink.until(() => sink.taken.length >= 4096 * 1024 + "dropped 904\n".length);
  t.equal(sink.taken.replaceAll(line, ""), "dropped 904\n");
  t.equal(sink.taken.split(line).length - 1, 4096);
  log.write("next\n");
  await sink.until(() => sink.taken.endsWith("next\n"));
});

t.test("who is gone is not written to again", async (t) => {
  const sink = new FakeSink();
  sink.fault = "EPIPE";
  const log = new LogDestination(sink, droppedLine);
  log.write("a\n");
  await sink.until(() => sink.attempts > 0);
  for (let nth = 0; nth < 10; nth++) log.write("b\n");
  log.flushSync();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(sink.attempts, 1);
});

t.test("at the end what waits is written, and what fails ends it", async (t) => {
  const sink = new FakeSink();
  const log = new LogDestination(sink, droppedLine);
  for (const line of ["a\n", "b\n", "c\n"]) log.write(line);
  // The first is with the system already.
  log.flushSync();
  t.equal(sink.taken, "b\nc\n");
  sink.fault = "ENOSPC";
  const full = new LogDestination(sink, droppedLine);
  full.write("a\n");
  full.write("b\n");
  await sink.until(() => sink.attempts >= 3);
  const before = sink.attempts;
  full.flushSync();
  t.equal(sink.attempts, before + 1, "tried once, not for ever");
});

/** At this level each refused request has a line of its own. */
const EVERY_REQUEST = ["serve", "--log-level", "debug"];

/** More lines than a pipe holds. */
async function askForNothing(port: number): Promise<void> {
  const connection = await RawConnection.open(port);
  for (let nth = 0; nth < 300; nth++) {
    connection.send(`GET /nowhere/${"x".repeat(900)} HTTP/1.1\r\nHost: cell\r\n\r\n`);
    const answer = await connection.response();
    if (answer?.status !== 404) throw new Error(`answered ${answer?.status}`);
  }
  connection.close();
}

// The log is the same whichever front serves: in a commit's size beside the first of them.
for (const { name, environment } of someFronts(t)) {
  t.test(`a disk that is full behind stderr keeps no answer and no end waiting (${name})`, async (t) => {
    const stderrFd = openSync("/dev/full", "w");
    t.teardown(() => closeSync(stderrFd));
    const service = await ServiceProcess.startFor(t, { args: EVERY_REQUEST, environment, stderrFd });
    await askForNothing(service.port);
    t.equal((await service.end()).code, 0);
  });

  t.test(`a pipe behind stderr that nobody reads keeps no answer and no end waiting (${name})`, async (t) => {
    const directory = temporaryDirectory(t);
    const path = join(directory, "stderr");
    execFileSync("mkfifo", [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    t.teardown(() => closeSync(reader));
    const stderrFd = openSync(path, "w");
    const service = await ServiceProcess.start({ args: EVERY_REQUEST, environment, stderrFd });
    closeSync(stderrFd);
    t.teardown(() => service.dispose());
    await askForNothing(service.port);
    t.equal((await service.end()).code, 0);
    const piece = Buffer.alloc(1024 * 1024);
    const lines = piece.toString("utf8", 0, readSync(reader, piece)).split("\n");
    const refused = lines.filter((line) => line.includes("/nowhere/"));
    t.ok(refused.length > 10, "what it took is there");
    t.match(JSON.parse(refused[0] as string), { level: 30, status: 404, service_version: /./, time: /^20/ });
  });
}

t.test("an end that is an error says so by its exit code, with a full disk behind stderr too", async (t) => {
  const stderrFd = openSync("/dev/full", "w");
  t.teardown(() => closeSync(stderrFd));
  await t.rejects(ServiceProcess.start({ args: ["serve", "--host", "0.0.0.0"], stderrFd }), /ended before/);
});
