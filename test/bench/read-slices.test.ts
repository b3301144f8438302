import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import { ReadSlices, readerPid } from "../../bench/load/http/read-slices.js";
import { untilGone } from "../helpers/process/until-gone.js";

const IDS = ["a", "b"];

async function serve(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test(
  "lists and details are read in turn by a process of its own, and by another one when that has ended",
  async (t) => {
    const seen: (string | undefined)[] = [];
    const url = await serve(t, (request, response) => {
      seen.push(request.url);
      response.end("{}");
    });
    const slices = new ReadSlices();
    await slices.read(url, IDS, 20);
    const first = readerPid();
    t.ok(first !== undefined && first !== process.pid);
    await slices.read(url, IDS, 20);
    t.equal(readerPid(), first, "the same one for all slices");
    t.equal(seen.length, 40);
    t.equal(seen.filter((path) => path === "/runs?limit=50").length, 20);
    t.same(new Set(seen), new Set(["/runs?limit=50", "/runs/b"]));
    t.equal(slices.sample().latency?.count, 40);

    process.kill(first as number, "SIGKILL");
    while (readerPid() === first) await new Promise(setImmediate);
    await slices.read(url, IDS, 20);
    t.not(readerPid(), first);
    t.equal(slices.sample().latency?.count, 60);
  },
);

t.test(
  "how much of the slices it was that they are named after is told, with a warning where it is too little",
  async (t) => {
    const slices = new ReadSlices();
    slices.addShare("processing %", 0.2, 0.25, 90);
    slices.addShare("processing %", 0.25, 0.25, 90);
    t.match(slices.sample(), { details: { "processing %": 90 } });
    t.notMatch(slices.sample().warnings?.join(), /processing/);
    slices.addShare("processing %", 0.2, 0.25, 90);
    t.same(slices.sample().warnings, ["processing % is below 90"]);
  },
);

t.test("what went wrong with a read is told, and the next one is made", async (t) => {
  let count = 0;
  const url = await serve(t, (_request, response) => {
    count++;
    if (count === 5) response.statusCode = 500;
    response.end("{}");
  });
  const slices = new ReadSlices();
  await t.rejects(slices.read(url, IDS, 20), { message: /^GET \/runs.* answered 500$/ });
  await slices.read(url, IDS, 20);
  t.equal(slices.sample().latency?.count, 20);
});

t.test("one that ends while it reads is told at once", async (t) => {
  const url = await serve(t, () => {
    const pid = readerPid();
    if (pid !== undefined) process.kill(pid, "SIGKILL");
  });
  await t.rejects(new ReadSlices().read(url, IDS, 2_000), { message: "the reader ended with SIGKILL" });
});

t.test("it ends with the benchmark, also in the midst of reads that nobody answers", async (t) => {
  let asked: () => void = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const url = await serve(t, () => asked());
  const module = new URL("../../bench/load/http/read-slices.js", import.meta.url).href;
  const source = `import { ReadSlices, readerPid } from ${JSON.stringify(module)};
    process.stdin.once("data", () => process.exit(3));
    new ReadSlices().read(${JSON.stringify(url)}, ["a"], 10);
    console.log(readerPid());`;
  const script = join(t.testdir({ "benchmark.mjs": source }), "benchmark.mjs");
  const child = spawn(process.execPath, [script], { stdio: ["pipe", "pipe", "inherit"] });
  t.teardown(() => child.kill("SIGKILL"));
  const ended = once(child, "close");
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const pid = Number(line);
  t.ok(pid > 0, line.toString());
  await isAsked;
  child.stdin.write("end\n");
  t.equal((await ended)[0], 3, "its output is not held open either");
  await untilGone(pid);
});
