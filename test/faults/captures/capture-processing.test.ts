/** Processing of captures by the real service, seen from outside: over the cell link, HTTP, and the files of its store. */
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { readPly } from "../../helpers/captures/ply-reader.js";
import { readGreyPng } from "../../helpers/captures/png-reader.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { frameBegin, frameLines, nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20261122);
t.comment(`TEST_SEED=${SEED}`);
const KILLS = sized(2, 100);
const WIDTH = 400;
const LINES = 500;
const OFFERED = ["npy", "raw.ply", "png", "luminance.png", "ply", "preview.png"];

interface Run {
  files: { name: string }[];
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

  static async start(t: Test, dataDirectory?: string): Promise<Cell> {
    const service = await ServiceProcess.startFor(t, dataDirectory === undefined ? {} : { dataDirectory });
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

  run(id: string): Promise<Run> {
    return this.client.get("/runs/{run_id}", { path: { run_id: id } }) as Promise<Run>;
  }

  async untilFormats(frameId: string, count: number): Promise<string[]> {
    const path = { frame_id: frameId };
    const isMade = (files: { available_formats: string[] }) => files.available_formats.length >= count;
    return (await this.client.until("/sensor/frames/{frame_id}/files", isMade, { path })).available_formats;
  }
}

async function assertSound(t: Test, dataDirectory: string): Promise<void> {
  const { code, stdout } = await runCommand(["check", "--data", dataDirectory, "--json"]);
  t.equal(code, 0, stdout.slice(0, 500));
  t.match(JSON.parse(stdout), { ok: true, summary: { damages: 0 } });
}

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
