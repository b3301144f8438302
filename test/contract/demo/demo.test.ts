import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { npyHeader } from "../../../core/capture/npy-header.js";
import { readGreyPng } from "../../helpers/captures/png-reader.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { endedRuns, settledDeliveries, startDemo } from "../../helpers/process/demo-results.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";

const ONE_RUN = ["demo", "--runs", "1", "--seed", "7"];

/** A collection of one recorded capture. @returns its heights, and their NPY */
function recordedCapture(folder: string): { heights: Uint16Array; npy: Buffer } {
  const [rows, columns] = [40, 60];
  const heights = Uint16Array.from({ length: rows * columns }, (_, at) => (at % 53 === 0 ? 0 : 1_000 + (at % columns)));
  const npy = Buffer.concat([npyHeader("u16", rows, columns), new Uint8Array(heights.buffer)]);
  writeFileSync(join(folder, "plate.npy"), npy);
  const pitches = { x_pitch_mm: 0.1, y_pitch_mm: 0.1, z_scale_mm_per_count: 0.01, z_offset_mm: 0 };
  const capture = { name: "plate", sensor: "made", height_file: "plate.npy", rows, cols: columns, ...pitches };
  writeFileSync(join(folder, "index.json"), JSON.stringify([{ ...capture, invalid: [0] }]));
  return { heights, npy };
}

t.test("one run of a recorded capture: what is shown answers, the capture as it was recorded", async (t) => {
  const recorded = temporaryDirectory(t);
  const { heights, npy } = recordedCapture(recorded);
  const service = await startDemo(t, { args: [...ONE_RUN, "--captures", recorded] });
  const client = new ContractClient(t, service.port);
  const [runId = ""] = await endedRuns(client, 1);
  await service.untilStdout(/^open http:\/\/127\.0\.0\.1:\d+$/m);
  await service.untilStdout(/^run /m);
  t.equal(service.stdout.match(/http:/g)?.length, 2, "it listens, and one address to open");
  const webhooks = await client.get("/webhooks");
  t.strictSame(
    webhooks.map(({ name }) => name),
    ["demo receiver", "demo receiver, busy at first", "demo receiver, down"],
  );
  const delivered = await settledDeliveries(client, String(webhooks[0]?.id), 2);
  t.same([...new Set(delivered.map(({ status }) => status))], ["delivered"]);
  const { results } = await client.get("/runs/{run_id}", { path: { run_id: runId } });
  const frame = `/sensor/frames/${results?.frame_ids?.[0]}`;
  const body = async (path: string): Promise<Buffer> =>
    (await rawRequest(service.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`))?.body ?? Buffer.alloc(0);
  t.ok((await body(`${frame}/file.npy`)).equals(npy), "the capture as it was recorded");
  const png = readGreyPng(await body(`${frame}/file.png`));
  t.same([...png.samples], [...heights]);
  t.match(await service.end("SIGINT"), { code: 0 });

  const inspect = await runCommand(["inspect", "--data", service.dataDirectory, "--from", "1", "--limit", "20"]);
  t.equal(inspect.code, 0);
  const records = inspect.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  t.strictSame(
    records.map((record) => record.sequence),
    Array.from({ length: 20 }, (_, at) => at + 1),
  );
  t.match(records[0], { type: "webhook", content: { origin: null } }, "of the receivers");
  const changes = records.find(({ type }) => type === "cellChanges");
  t.match(changes, { content: { origin: { producer: "demo-cell", sequence: 1 } } });
  const cut = await promisify(execFile)("/bin/sh", [
    "-c",
    `"${process.execPath}" dist/http/main.js inspect --data "${service.dataDirectory}" | head -n 1`,
  ]);
  t.match(cut, { stdout: /^\{.*\}\n$/, stderr: /^$/ }, "a reader that leaves early ends it quietly");

  // What is wrong with the store is told.
  const [month] = readdirSync(join(service.dataDirectory, "captures")) as [string];
  const folder = join(service.dataDirectory, "captures", month);
  const capture = readdirSync(folder).find((name) => name.endsWith(".cap")) as string;
  const bytes = readFileSync(join(folder, capture));
  bytes.writeUInt8(bytes.readUInt8(1000) ^ 1, 1000);
  writeFileSync(join(folder, capture), bytes);
  const damaged = await runCommand(["check", "--data", service.dataDirectory]);
  t.equal(damaged.code, 1);
  t.match(damaged.stdout, new RegExp(`capture_damaged: captures/${month}/${capture}`));
  t.match(damaged.stdout, /\nDAMAGED\n$/);
});

t.test("it has no receivers where the interface wants a key", async (t) => {
  const keys = join(temporaryDirectory(t), "keys.json");
  t.match(await runCommand(["keys", "add", "--file", keys, "--scope", "manage"]), { code: 0 });
  const closed = await startDemo(t, { args: [...ONE_RUN, "--api-keys", keys] });
  await closed.untilStdout(/the demo's webhooks could not be registered: GET \/webhooks answered 401\n/);
  await closed.untilStdout(/^run /m);
  t.notMatch(closed.stdout, /deliver/);
  t.match(await closed.end(), { code: 0, signal: null });
});

t.test("somebody else's store: its webhooks, programs, captures and cell stay as they are", async (t) => {
  const owner = await startDemo(t);
  const producer = await RawProducer.connect({ path: owner.cellSocketPath }, "controller");
  await producer.accept({ type: "cell.put", kiosk_serial_number: "KIOSK-9", unit_system: "imperial" });
  await producer.accept({ type: "component.put", key: "plc", status: "healthy", detail: "the real one" });
  await producer.accept(programPut());
  const runId = nextId();
  await producer.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID, serial_number: "SN" });
  const put = { type: "file.put", run_id: runId, name: "large.bin", content_type: "application/octet-stream" };
  await producer.accept({ ...put, file_type: "array" }, Buffer.alloc(100_000, 7));
  await producer.accept({ type: "run.start", id: runId });
  await producer.accept({ type: "run.fail", id: runId, error_message: "over" });
  await producer.close();
  const client = new ContractClient(t, owner.port);
  const settings = { subscribed_events: ["ProgramFailed" as const], enabled: false };
  const own = { ...settings, name: "demo receiver", url: "http://10.1.2.3:8080/demo-receiver" };
  const kept = await client.post("/webhooks", { body: own });
  const program = await client.get("/programs/{program_id}", { path: { program_id: PROGRAM_ID } });
  t.match(await owner.end(), { code: 0 });

  const demo = await startDemo(t, { args: ["demo", "--runs", "1"], dataDirectory: owner.dataDirectory });
  await demo.untilStdout(/^run /m);
  t.match(
    demo.stdout,
    /the demo did not make this store[^\n]*\n[^\n]*webhooks registered in it\ncaptures are kept without a limit[^\n]*--retain-bytes/,
  );
  const guest = new ContractClient(t, demo.port);
  await endedRuns(guest, 2);
  t.strictSame(await guest.get("/webhooks/{webhook_id}", { path: { webhook_id: kept.id } }), kept);
  const { run_count, ...fields } = await guest.get("/programs/{program_id}", { path: { program_id: PROGRAM_ID } });
  t.match(program, fields);
  t.equal(run_count, 1);
  const download = await guest.raw("GET", `/runs/${runId}/files/large.bin`);
  t.equal(download.body.length, 100_000);
  t.match(await guest.get("/health"), { components: { plc: { detail: "the real one" } } });
  const webhooks = await guest.get("/webhooks");
  t.equal(webhooks.length, 4);
  const path = { path: { webhook_id: String(webhooks[1]?.id) } };
  const [event] = await guest.until("/webhooks/{webhook_id}/deliveries", ({ length }) => length > 0, path);
  t.match(event?.payload, { kiosk_serial_number: "KIOSK-9", data: { unit_system: "imperial" } });
  t.match(await demo.end(), { code: 0 });
  t.notOk(existsSync(join(owner.dataDirectory, "demo.json")), "and stays somebody else's");
  const after = await startDemo(t, { dataDirectory: owner.dataDirectory });
  const left = await new ContractClient(t, after.port).get("/webhooks");
  t.strictSame(left, [kept], "the demo's own webhooks are gone with it");
});

t.test("a folder that is no store is refused, and what is in it stays", async (t) => {
  const folder = temporaryDirectory(t);
  writeFileSync(join(folder, "notes.txt"), "mine");
  const ended = await runCommand(["demo", "--data", folder, "--port", "0"]);
  t.match(ended, { code: 1, stderr: /holds no store, but other files \(notes\.txt\)/ });
  t.strictSame(readdirSync(folder), ["notes.txt"]);
});

t.test("a cell that cannot start ends both with 1, saying why, and leaves the directory free", async (t) => {
  const folder = temporaryDirectory(t);
  const absent = join(folder, "absent");
  const data = join(folder, "data");
  const ended = await runCommand(["demo", "--data", data, "--port", "0", "--captures", absent, "--runs", "1"]);
  t.equal(ended.code, 1);
  t.match(ended.stderr, /inspection-service: the demo cell ended with 1: .*absent/);
  t.match(await checkDirectory(data), { ok: true });
});

// closed-terminal.test.ts is about a terminal that closes.
t.test("a reader that leaves ends it cleanly", async (t) => {
  const folder = temporaryDirectory(t);
  const command = [process.execPath, "dist/http/main.js", "demo", "--port", "0", "--runs", "1"].join(" ");
  const line = `(${command} --data ${folder}/one 2>${folder}/log; echo $? >${folder}/code) | head -n 1`;
  const { stdout } = await promisify(execFile)("/bin/sh", ["-c", line]);
  t.match(stdout, /^listening on http:\S+ \(front: .+\)\n$/);
  t.equal(readFileSync(join(folder, "code"), "utf8"), "0\n");
  t.notMatch(readFileSync(join(folder, "log"), "utf8"), /EPIPE|^\s+at /m);
  t.match(await runCommand(["check", "--data", join(folder, "one")]), { code: 0 });
});
