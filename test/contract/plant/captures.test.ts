import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { CAPTURE_STREAM, CHUNK_BYTES, decodeChunk, parseChunkSubject } from "../../../workers/plant/capture-message.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { untilShippedWhole } from "../../helpers/plant/shipping-service.js";
import { startDemo } from "../../helpers/process/demo-results.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { until } from "../../helpers/until.js";

const LIMITS = ["--replicas", "1", "--capture-days", "90"];

/** Ranges of the stream, as a hub would put them together; every CRC and number is checked. */
async function rangesIn(
  t: Test,
  server: NatsServer,
): Promise<Map<string, { path: string; offset: number; bytes: Buffer }>> {
  const seen = new Set<string>();
  const ranges = new Map<string, { path: string; offset: number; bytes: Buffer }>();
  for (const { subject, header, bytes } of await server.messages(CAPTURE_STREAM)) {
    const parsed = parseChunkSubject(subject);
    const fields = decodeChunk(header, bytes);
    if (parsed === null || fields === null) throw new Error(`${subject} is damaged`);
    if (seen.has(subject)) t.fail(`${subject} came twice`);
    seen.add(subject);
    const { range, index } = parsed;
    t.equal(fields.path, capturePath(range.runId, range.kind));
    t.equal(fields.offset, range.offset + (index - 1) * CHUNK_BYTES);
    const name = subject.slice(0, subject.lastIndexOf("."));
    const known = ranges.get(name) ?? { path: fields.path, offset: range.offset, bytes: Buffer.alloc(0) };
    if (known.bytes.length !== (index - 1) * CHUNK_BYTES) t.fail(`${subject} is out of order`);
    ranges.set(name, { ...known, bytes: Buffer.concat([known.bytes, bytes]) });
  }
  return ranges;
}

function filesIn(dataDirectory: string): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const name of readdirSync(join(dataDirectory, "captures"), { recursive: true }) as string[])
    if (/\.(cap|rep)$/.test(name)) files.set(name, readFileSync(join(dataDirectory, "captures", name)));
  return files;
}

for (const policy of ["all", "reports"] as const) {
  t.test(`captures are shipped when their runs have ended: ${policy}`, { skip: noNatsServer }, async (t) => {
    const server = await NatsServer.startFor(t);
    t.match(await runCommand(["plant", "init", "--plant", server.url, ...LIMITS]), { code: 0 });
    const dataDirectory = temporaryDirectory(t);
    const start = (runs: number) =>
      startDemo(t, {
        args: ["demo", "--runs", String(runs), "--plant", server.url, "--cell", "cell-7", "--plant-captures", policy],
        dataDirectory,
      });
    const first = await start(2);
    // The service and the server end at any time; what is there is asked of the stream.
    for (let looks = 0; looks < 6_000; looks++) {
      const state = await server.with((client) => client.streamState(CAPTURE_STREAM));
      if ((state?.messages ?? 0) > 0) break;
      await setTimeout(20);
    }
    await server.kill();
    await server.start();
    await first.end("SIGKILL");
    const second = await start(2);
    await untilShippedWhole(second.port, 3, server);
    // A fourth run may still be on its way: the first service may have ended both of its own.
    await until("all files are in the stream", async () => {
      const shipped = new Set([...(await rangesIn(t, server)).values()].map(({ path }) => path));
      const wanted = [...filesIn(dataDirectory)].filter(([name]) => policy === "all" || name.endsWith(".rep"));
      return wanted.every(([name, file]) => shipped.has(name) || file.length === 0);
    });
    t.equal((await second.end()).code, 0);
    // At once: what is recorded at the end is under way for ten seconds, and a difference then.
    const verified = await runCommand(["plant", "verify", "--plant", server.url, "--data", dataDirectory]);
    const told =
      /^cell cell-7: \d+ messages, \d+ records the same, (\d+ new records? under way, )?0 differences\nok\n$/;
    t.match(verified, { code: 0, stdout: told });
    const files = filesIn(dataDirectory);
    const ranges = await rangesIn(t, server);
    let bytes = 0;
    for (const [name, range] of ranges) {
      const file = files.get(range.path) as Buffer;
      bytes += range.bytes.length;
      if (!file.subarray(range.offset, range.offset + range.bytes.length).equals(range.bytes))
        t.fail(`${name} differs`);
    }
    const reports = [...files].filter(([name]) => name.endsWith(".rep"));
    const whole = new Map(
      [...ranges.values()].filter(({ offset }) => offset === 0).map((range) => [range.path, range.bytes]),
    );
    if (policy === "all") {
      for (const [name, file] of files) t.ok(whole.has(name) || file.length === 0, `${name} is there whole`);
    } else {
      for (const [name] of reports) t.ok(whole.has(name), `${name} is there`);
      const previews = [...ranges.values()].filter(({ path }) => path.endsWith(".cap"));
      t.ok(previews.length > 0, "previews are there");
      for (const { bytes } of previews) t.equal(bytes.subarray(1, 4).toString(), "PNG");
    }
    t.comment(`${policy}: ${ranges.size} ranges, ${bytes} bytes: 0 lost, 0 doubled, 0 out of order`);
  });
}

t.test("retention waits for the plant", { skip: noNatsServer }, async (t) => {
  const refused = await runCommand(["serve", "--retain-after-shipping", "--plant", "nats://a", "--cell", "a"]);
  t.match(refused, { code: 1, stderr: /--retain-after-shipping needs --plant and --plant-captures all/ });
  const server = await NatsServer.startFor(t);
  t.match(await runCommand(["plant", "init", "--plant", server.url, ...LIMITS]), { code: 0 });
  await server.kill();
  const dataDirectory = temporaryDirectory(t);
  const more = ["--plant-captures", "all", "--retain-after-shipping", "--retain-bytes", "1"];
  const args = ["demo", "--runs", "2", "--plant", server.url, "--cell", "cell-7", ...more];
  const service = await startDemo(t, { args, dataDirectory });
  // Names first: retention may remove a file before it is read.
  const names = () => readdirSync(join(dataDirectory, "captures"), { recursive: true }) as string[];
  const isCaptured = () => names().some((name) => name.endsWith(".cap"));
  const captured = () => [...filesIn(dataDirectory)].filter(([name]) => name.endsWith(".cap"));
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN);
  };
  await until("runs", async () => (await metric("inspection_runs")) >= 2 && captured().length >= 2);
  const kept = captured();
  t.equal(await metric("inspection_retention_runs_total"), 0, "nothing is removed while the plant is away");
  await server.start();
  await until("retention", () => !isCaptured());
  t.equal((await service.end()).code, 0);
  const ranges = [...(await rangesIn(t, server)).values()];
  const has = ([name, bytes]: [string, Buffer]) =>
    ranges.some(({ path, bytes: theirs }) => path === name && theirs.subarray(0, bytes.length).equals(bytes));
  t.ok(kept.every(has), "the plant has all that was removed");
  t.comment(`${kept.length} files of captures removed, each after it was shipped`);
});
