import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join, relative } from "node:path";
import t from "tap";
import { someFronts } from "../../helpers/http/fronts-here.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
} from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";

/** More than a front sends at a time, of heights alone. */
const BATCH_LINES = Math.ceil(700_000 / LINE_BYTES);
const NPY_HEAD_BYTES = 128;

interface Download {
  status: number;
  body: Buffer;
  /** The connection was cut before the length that was promised. */
  isCut: boolean;
}

async function download(service: ServiceProcess, path: string, range?: string): Promise<Download> {
  const headers = range === undefined ? {} : { range: `bytes=${range}` };
  const response = await fetch(`http://127.0.0.1:${service.port}${path}`, { headers });
  const chunks: Uint8Array[] = [];
  let isCut = false;
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) chunks.push(chunk);
  } catch {
    isCut = true;
  }
  return { status: response.status, body: Buffer.concat(chunks), isCut };
}

async function json(service: ServiceProcess, path: string) {
  return JSON.parse((await download(service, path)).body.toString());
}

function flipBit(path: string, at: number): void {
  const byte = readFileSync(path)[at] as number;
  const file = openSync(path, "r+");
  writeSync(file, Uint8Array.of(byte ^ 0x10), 0, 1, at);
  closeSync(file);
}

function fileIn(directory: string, suffix: string): string {
  const [name] = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((one) => one.endsWith(suffix));
  return join(directory, name as string);
}

/** A store with one run: a frame of two batches and what was made of it, two reports; and what its files are before any damage. */
async function storedRun() {
  const service = await ServiceProcess.startFor(t);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "cell");
  const [run, frame] = [nextId(), nextId()];
  await producer.accept(programPut());
  await producer.accept({ type: "run.create", id: run, program_id: PROGRAM_ID });
  await producer.accept({ type: "run.start", id: run });
  await producer.accept(frameBegin(frame, run));
  const lines = (salt: number) =>
    Buffer.from(Uint8Array.from({ length: BATCH_LINES * LINE_BYTES }, (_, at) => ((at * 2_654_435_761) >>> 13) ^ salt));
  await producer.accept(frameLines(frame, 0, BATCH_LINES), lines(1));
  await producer.accept(frameLines(frame, BATCH_LINES, BATCH_LINES), lines(2));
  await producer.accept({ type: "frame.end", id: frame });
  const put = { type: "file.put", run_id: run, content_type: "application/pdf" };
  await producer.accept({ ...put, name: "whole.pdf" }, lines(3));
  await producer.accept({ ...put, name: "damaged.pdf" }, lines(4));
  await producer.accept({ type: "run.finish", id: run });
  await until("the end of the run", async () => (await json(service, `/runs/${run}`)).status === "completed");
  t.equal((await json(service, `/sensor/frames/${frame}/files`)).available_formats.length, 6);
  const paths = {
    npy: `/sensor/frames/${frame}/file.npy`,
    png: `/sensor/frames/${frame}/file.png`,
    luminance: `/sensor/frames/${frame}/file.luminance.png`,
    cloud: `/sensor/frames/${frame}/file.raw.ply`,
    whole: `/runs/${run}/files/whole.pdf`,
    damaged: `/runs/${run}/files/damaged.pdf`,
  };
  const stored = new Map<string, Buffer>();
  for (const path of Object.values(paths)) stored.set(path, (await download(service, path)).body);
  const bytes = (path: string) => stored.get(path) as Buffer;
  t.match(await service.end(), { code: 0 });
  return { directory: service.dataDirectory, paths, bytes };
}

t.test("a flipped bit in stored bytes reaches no client, however it asks, and health tells of it", async (t) => {
  const { directory, paths, bytes } = await storedRun();
  const captures = fileIn(join(directory, "captures"), ".cap");
  const reports = fileIn(join(directory, "captures"), ".rep");
  const batchBytes = BATCH_LINES * LINE_BYTES;
  flipBit(captures, batchBytes + 100_000);
  const png = bytes(paths.png);
  const pngOffset = readFileSync(captures).indexOf(png);
  t.ok(pngOffset >= 2 * batchBytes, "the picture is stored after the lines");
  flipBit(captures, pngOffset + png.length - 20);
  flipBit(reports, batchBytes + 600_000);

  for (const { name, environment } of someFronts(t)) {
    const service = await ServiceProcess.startFor(t, { dataDirectory: directory, args: ["serve"], environment });
    const refused = async (path: string, range: string | undefined, file: string, offset: number): Promise<void> => {
      const { status, body } = await download(service, path, range);
      t.equal(status, 500, `${name}: ${path} ${range}`);
      const answer = JSON.parse(body.toString());
      const shown = relative(directory, file);
      t.match(answer, { code: "internal_error", params: { cause: "capture_damaged", path: shown, offset } });
      t.match(answer.message, `${shown}, offset ${offset}: the bytes do not match their CRC`);
      t.notOk(body.includes(directory), "no folder of the machine");
    };
    const served = async (path: string, first: number, last: number): Promise<void> => {
      const { status, body, isCut } = await download(service, path, `${first}-${last}`);
      t.equal(status, 206, `${name}: ${path} ${first}-${last}`);
      t.ok(!isCut && body.equals(bytes(path).subarray(first, last + 1)));
    };
    const health = async () => (await json(service, "/health")).components.log;
    t.match(await health(), { status: "healthy" });

    const npy = bytes(paths.npy);
    const wholeBytes = NPY_HEAD_BYTES + batchBytes / 2;
    const cut = await download(service, paths.npy);
    t.match(cut, { status: 200, isCut: true });
    t.ok(cut.body.length > 0 && cut.body.length <= wholeBytes, `${cut.body.length} bytes before the damaged batch`);
    t.ok(cut.body.equals(npy.subarray(0, cut.body.length)), "and they are right");
    const log = await health();
    t.match(log, { status: "degraded" }, "told although the answer had begun");
    t.match(log.detail, /^since \d{4}-.*Z reads found 1 damaged place, first /);
    t.match(
      log.detail,
      `first ${relative(directory, captures)}, offset ${batchBytes}: the bytes do not match their CRC`,
    );

    await served(paths.npy, 0, 1_999);
    await served(paths.npy, cut.body.length - 1, wholeBytes - 1);
    await refused(paths.npy, `${wholeBytes}-`, captures, batchBytes);
    await refused(paths.npy, `${npy.length - 10}-`, captures, batchBytes);
    await refused(paths.npy, "-1", captures, batchBytes);
    for (const range of [undefined, "0-1999", "1-", "600000-600000", "699000-"]) {
      await refused(paths.damaged, range, reports, batchBytes);
    }
    for (const range of [undefined, "0-7", "8-"]) await refused(paths.png, range, captures, pngOffset);
    t.equal((await download(service, paths.cloud, "1000-1999")).status, 500, "points of the batch beside it");

    await served(paths.whole, 1, 1_999);
    await served(paths.luminance, 8, bytes(paths.luminance).length - 1);
    t.ok((await download(service, paths.whole)).body.equals(bytes(paths.whole)));
    t.match((await health()).detail, /reads found 3 damaged places/);
    t.match(await service.end(), { code: 0 });
  }
});
