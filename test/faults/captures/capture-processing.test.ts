/** Processing of captures by the real service, seen from outside: over the cell link, HTTP, and the files of its store. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { readPly } from "../../helpers/captures/ply-reader.js";
import { readGreyPng } from "../../helpers/captures/png-reader.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import {
  frameBegin,
  frameLines,
  nextId,
  PROGRAM_ID,
  programPut,
  seriesAppend,
} from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { sized } from "../../helpers/test-size.js";
import { startReceiver } from "../../helpers/webhooks/receiver.js";

const SEED = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${SEED}`);
const KILLS = sized(2, 100);
const WIDTH = 400;
const LINES = 500;
const FORMATS = ["npy", "raw.ply", "png", "luminance.png", "ply"];
/** What a frame lists: a preview is not in the manifest. */
const OFFERED = [...FORMATS, "preview.png"];

interface Run {
  status: string;
  files: { name: string; size_in_bytes: number; deleted_at: string | null; href: string }[];
  event_log: { event_type: string; data: Record<string, unknown> }[];
}

/** A surface with steps, u16 height and u16 luminance. */
function surface(): Buffer {
  const height = new Uint16Array(WIDTH * LINES).map((_, at) => 20_000 + ((at % WIDTH) >> 6) * 400 + ((at * 31) % 17));
  const luminance = new Uint16Array(WIDTH * LINES).map((_, at) => at % 1024);
  return Buffer.concat([Buffer.from(height.buffer), Buffer.from(luminance.buffer)]);
}

const SURFACE = surface();

class Cell {
  readonly service: ServiceProcess;
  readonly client: ContractClient;
  readonly producer: RawProducer;

  private constructor(t: Test, service: ServiceProcess, producer: RawProducer) {
    this.service = service;
    this.client = new ContractClient(t, service.port);
    this.producer = producer;
  }

  static async start(t: Test, dataDirectory?: string, ...args: string[]): Promise<Cell> {
    const service = await ServiceProcess.startFor(t, {
      args: ["serve", ...args],
      ...(dataDirectory !== undefined && { dataDirectory }),
    });
    return new Cell(t, service, await RawProducer.connect({ path: service.cellSocketPath }, "cell"));
  }

  async startRun(): Promise<string> {
    const id = nextId();
    await this.producer.accept(programPut());
    await this.producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
    await this.producer.accept({ type: "run.start", id });
    return id;
  }

  /** The lines of a frame; it is not whole yet. */
  async sendLines(runId: string): Promise<string> {
    const id = nextId();
    await this.producer.accept({ ...frameBegin(id, runId), width: WIDTH });
    await this.producer.accept(frameLines(id, 0, LINES), SURFACE);
    return id;
  }

  async sendFrame(runId: string): Promise<string> {
    const id = await this.sendLines(runId);
    await this.producer.accept({ type: "frame.end", id });
    return id;
  }

  async formats(frameId: string): Promise<string[]> {
    const files = await this.client.get("/sensor/frames/{frame_id}/files", { path: { frame_id: frameId } });
    return files.available_formats;
  }

  run(id: string): Promise<Run> {
    return this.client.get("/runs/{run_id}", { path: { run_id: id } }) as Promise<Run>;
  }

  async untilFormats(frameId: string, count: number): Promise<string[]> {
    const path = { frame_id: frameId };
    const isMade = (files: { available_formats: string[] }) => files.available_formats.length >= count;
    return (await this.client.until("/sensor/frames/{frame_id}/files", isMade, { path })).available_formats;
  }

  untilRun(id: string, isWanted: (run: Run) => boolean): Promise<Run> {
    return this.client.until("/runs/{run_id}", (run) => isWanted(run as Run), { path: { run_id: id } }) as Promise<Run>;
  }

  untilStatus(id: string, status: string): Promise<Run> {
    return this.untilRun(id, (run) => run.status === status);
  }
}

async function assertSound(t: Test, dataDirectory: string): Promise<void> {
  const { code, stdout } = await runCommand(["check", "--data", dataDirectory, "--json"]);
  t.equal(code, 0, stdout.slice(0, 500));
  t.match(JSON.parse(stdout), { ok: true, summary: { damages: 0 } });
}

t.test("a frame's formats appear by themselves, and all of them are in what ProgramCompleted tells", async (t) => {
  const cell = await Cell.start(t);
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  await cell.client.post("/webhooks", {
    body: { name: "mes", url: receiver.url, subscribed_events: ["ProgramCompleted"] },
  });
  const runId = await cell.startRun();
  const first = await cell.sendFrame(runId);
  t.same(await cell.untilFormats(first, OFFERED.length), OFFERED);
  const png = await cell.client.raw("GET", `/runs/${runId}/files/frame-${first}.png`);
  t.match(readGreyPng(png.body), { width: WIDTH, height: LINES });
  const second = await cell.sendFrame(runId);
  await cell.producer.accept(seriesAppend(runId), Buffer.alloc(80_000));
  await cell.producer.accept({ type: "run.finish", id: runId });
  await receiver.received(1);
  const names = [first, second].flatMap((frame) => FORMATS.map((format) => `frame-${frame}.${format}`));
  names.push("step-1-cl_sweep.csv");
  const { data } = JSON.parse(String(receiver.requests[0]?.body)) as { data: Run };
  const run = await cell.run(runId);
  for (const [what, { files }] of [["event", { ...data }] as const, ["run", run] as const]) {
    t.same(files.map(({ name }) => name).sort(), [...names].sort(), what);
    t.ok(
      files.every(({ size_in_bytes }) => size_in_bytes > 0),
      `${what}: sizes`,
    );
  }
  t.same(run.event_log, []);
  for (const { name, size_in_bytes } of run.files) {
    const file = await cell.client.raw("GET", `/runs/${runId}/files/${name}`);
    t.same([file.status, file.body.length], [200, size_in_bytes], name);
  }
  t.equal(
    readPly((await cell.client.raw("GET", `/sensor/frames/${second}/file.raw.ply`)).body).vertices.length,
    WIDTH * LINES,
  );
  t.match(await cell.service.end(), { code: 0 });
  await assertSound(t, cell.service.dataDirectory);
});

t.test("kill -9 between a capture and what is made of it: the next start makes it, and nothing twice", async (t) => {
  const random = createRandom(SEED);
  let cell = await Cell.start(t);
  const { dataDirectory } = cell.service;
  const frames: [runId: string, frameId: string][] = [];
  const made: number[] = [];
  for (let nth = 0; nth < KILLS; nth++) {
    const runId = await cell.startRun();
    for (let count = random.integer(1, 2); count > 0; count--) frames.push([runId, await cell.sendFrame(runId)]);
    // Ended, finalizing or going on when it is killed.
    const fate = random.integer(0, 2);
    if (fate === 1) await cell.producer.accept({ type: "run.fail", id: runId, error_message: "stopped" });
    if (fate === 2) await cell.producer.accept({ type: "run.finish", id: runId });
    const [, last] = frames.at(-1) as [string, string];
    made.push((await cell.untilFormats(last, random.integer(1, OFFERED.length))).length);
    await cell.service.end("SIGKILL");
    cell = await Cell.start(t, dataDirectory);
  }
  for (const [runId, frameId] of frames) {
    t.same(await cell.untilFormats(frameId, OFFERED.length), OFFERED);
    const { files, event_log } = await cell.run(runId);
    const names = files.map(({ name }) => name);
    t.equal(new Set(names).size, names.length, "each name once");
    t.same(event_log, []);
    const png = await cell.client.raw("GET", `/sensor/frames/${frameId}/file.png`);
    t.equal(readGreyPng(png.body).samples.length, WIDTH * LINES);
    const ply = await cell.client.raw("GET", `/sensor/frames/${frameId}/file.ply`);
    t.ok(readPly(ply.body).vertices.length > 0.9 * WIDTH * LINES);
  }
  t.comment(`${KILLS} kills with ${made.join(", ")} formats there, ${frames.length} frames: all whole`);
  t.match(await cell.service.end(), { code: 0 });
  await assertSound(t, dataDirectory);
});

t.test("retention removes captures while they are processed: nothing of them is left or comes back", async (t) => {
  const cell = await Cell.start(t, undefined, "--retain-bytes", "1");
  const runs: string[] = [];
  for (let nth = 0; nth < 4; nth++) {
    const runId = await cell.startRun();
    runs.push(runId);
    for (let count = 0; count < 3; count++) await cell.sendFrame(runId);
    await cell.producer.accept({ type: "run.fail", id: runId, error_message: "stopped" });
  }
  for (const runId of runs) {
    const run = await cell.untilRun(runId, ({ files }) => files.some((file) => file.deleted_at !== null));
    t.ok(run.files.every(({ deleted_at }) => deleted_at !== null));
    t.same(run.event_log, []);
  }
  // Their tombstones show first.
  const files = runs.map((runId) => join(cell.service.dataDirectory, "captures", capturePath(runId, "capture")));
  while (files.some((path) => existsSync(path))) await cell.untilRun(runs[0] as string, () => true);
  t.match(await cell.service.end(), { code: 0 });
  t.notOk(
    files.some((path) => existsSync(path)),
    "nor does one come back",
  );
  await assertSound(t, cell.service.dataDirectory);
});

/** The service and a run of one frame, of whose bytes one is damaged before anything is made of it. */
async function damagedFrame(t: Test, at: number) {
  const cell = await Cell.start(t);
  const runId = await cell.startRun();
  const frameId = await cell.sendLines(runId);
  const path = join(cell.service.dataDirectory, "captures", capturePath(runId, "capture"));
  const bytes = readFileSync(path);
  const place = bytes.length - SURFACE.length + at;
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
  writeFileSync(path, bytes);
  await cell.producer.accept({ type: "frame.end", id: frameId });
  await cell.producer.accept({ type: "run.finish", id: runId });
  return { cell, frameId, run: await cell.untilStatus(runId, "completed") };
}

/** Every format that is listed is there, every other says that it is not: none fails. */
async function assertServed(t: Test, cell: Cell, frameId: string, run: Run, listed: readonly string[]): Promise<void> {
  t.same(await cell.formats(frameId), [...listed, ...(listed.includes("png") ? ["preview.png"] : [])]);
  t.same(run.files.map(({ name }) => name).sort(), listed.map((format) => `frame-${frameId}.${format}`).sort());
  for (const format of FORMATS) {
    const { status } = await cell.client.raw("GET", `/sensor/frames/${frameId}/file.${format}`);
    t.equal(status, listed.includes(format) ? 200 : 404, format);
  }
}

t.test("damaged luminance is never shown: what needs it fails, and the heights are served as they are", async (t) => {
  const { cell, frameId, run } = await damagedFrame(t, SURFACE.length - 100);
  await assertServed(t, cell, frameId, run, ["npy", "png"]);
  t.match(
    run.event_log.map(({ event_type, data }) => [event_type, data.format, data.code]),
    ["raw.ply", "luminance.png", "ply"].map((format) => ["artefact_failed", format, "capture_damaged"]),
  );
  const npy = await cell.client.raw("GET", `/sensor/frames/${frameId}/file.npy`);
  t.ok(npy.body.subarray(-SURFACE.length / 2).equals(SURFACE.subarray(0, SURFACE.length / 2)));
});

t.test("a damaged capture marks its formats failed, in the event log too, and the run ends", async (t) => {
  const { cell, frameId, run } = await damagedFrame(t, 1_000);
  await assertServed(t, cell, frameId, run, ["luminance.png"]);
  t.match(
    run.event_log.map(({ event_type, data }) => [event_type, data.format, data.code]),
    ["raw.ply", "png", "ply"].map((format) => ["artefact_failed", format, "capture_damaged"]),
  );
  const luminance = readGreyPng((await cell.client.raw("GET", `/sensor/frames/${frameId}/file.luminance.png`)).body);
  t.ok(
    luminance.samples.every((sample, at) => sample === (at % 1024) >> 2),
    "what does not depend on the heights is right",
  );
  const { params } = await cell.client.refusal(
    "get",
    "/sensor/frames/{frame_id}/file.ply",
    404,
    "format_not_available",
    { path: { frame_id: frameId } },
  );
  t.match(params, { available_formats: listOf("luminance.png") });
  const { components } = await cell.client.get("/health");
  t.match(components.artefacts, { status: "degraded", detail: String });
  t.match(await cell.service.end(), { code: 0 });
  t.match(await runCommand(["check", "--data", cell.service.dataDirectory]), { code: 1, stdout: /capture_damaged/ });
});
