import { get, type IncomingMessage } from "node:http";
import { crc32 } from "node:zlib";
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { formatTimeUs, parseTimeUs } from "../../../core/timestamps.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { nextId, PROGRAM_ID, programPut, seriesAppend } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { peakResidentBytes, residentBytes } from "../../helpers/process/process-figures.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";

const MIB = 1024 * 1024;
const IS_LINUX = process.platform === "linux";
const ROWS = 1_000_000;
const CHANNELS = 8;
/** Rows that are written at a time (series-source.ts); appends end within these, and one is shorter. */
const STRETCH_ROWS = 4_096;
const APPENDS = [1, 100_000, 4_095, 333_333, 700, 250_000];
APPENDS.push(ROWS - APPENDS.reduce((sum, rows) => sum + rows));
const START_US = parseTimeUs("2026-11-20T10:00:00.000003Z") as number;
const PERIOD_US = 12.3;
const CODE = -99.9;

/** How far the service's memory grows while the CSV is made only for its sizes: by a thread and one row block. */
const MOST_WHILE_COUNTED = 80 * MIB;
/**
 * The same while clients take it: 64 MiB of pieces stay (http/README.md), each client has half a MiB, and 40 to 100 MiB
 * of garbage were seen. If each client held all of the CSV, it would take more than a hundred.
 */
const MOST_WHILE_SENT = 64 * MIB + 144 * MIB;
const CLIENTS_AT_ONCE = 4;

/** Values of all sizes that sensors have, some that no sensor has, and some that mean "no measurement". */
const random = createRandom(20_261_123);
const values = Float32Array.from({ length: 65_521 * CHANNELS }, () => {
  if (random.chance(0.01)) return random.pick([Number.NaN, CODE, Number.POSITIVE_INFINITY]);
  if (random.chance(0.01)) return random.pick([0, -0, 1e-7, -3e-42, 3.4e38, 16_777_216, 0.1]);
  return random.normal() * 10 ** random.integer(-3, 4);
});
const firstValueOf = (row: number): number => (row * CHANNELS) % values.length;

/** The fewest digits that read back to the same f32, found by trying them all. */
function cellOf(value: number): string {
  if (!Number.isFinite(value) || value === Math.fround(CODE)) return "";
  if (Object.is(value, -0)) return "-0";
  for (let digits = 1; ; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
}

function lineOf(row: number): string {
  let inAppend = row;
  let nth = 0;
  for (; inAppend >= (APPENDS[nth] as number); nth++) inAppend -= APPENDS[nth] as number;
  const timeUs = START_US + nth * 3_600_000_000 + Math.round(inAppend * PERIOD_US);
  const cells = Array.from(values.subarray(firstValueOf(row), firstValueOf(row) + CHANNELS), cellOf);
  return [formatTimeUs(timeUs), ...cells].join(",");
}

/** Rows at both sides of every place where appends and row blocks meet, and some everywhere. */
function sampledRows(): Set<number> {
  const rows = new Set<number>();
  let end = 0;
  for (const count of APPENDS) {
    end += count;
    for (const row of [end - 2, end - 1, end, end + 1]) rows.add(row);
  }
  for (let row = 0; row < ROWS; row += STRETCH_ROWS) for (const near of [row - 1, row, row + 1]) rows.add(near);
  for (let row = 0; row < ROWS; row += 997) rows.add(row);
  for (let row = ROWS - 3; row < ROWS; row++) rows.add(row);
  return new Set([...rows].filter((row) => row >= 0 && row < ROWS));
}

t.test("a million rows of eight channels come as they were appended, and take no more memory than a few", async (t) => {
  const service = await ServiceProcess.startFor(t, { args: ["serve", "--artefact-threads", "2"] });
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "sweep");
  const runId = await appendRows(t, producer);
  const beforeCounting = memoryOf(service);
  await producer.accept({ type: "step.finish", run_id: runId, index: 1, status: "completed" });
  await producer.close();

  const path = `/runs/${runId}/steps/1/cl_sweep.csv`;
  const request = (headers = ""): string => `GET ${path} HTTP/1.1\r\nHost: cell\r\n${headers}\r\n`;
  await until("the CSV", async () => {
    const first = await rawRequest(service.port, request("Range: bytes=0-0\r\n"));
    if (first?.status === 206) return true;
    // What cannot come any more is told so.
    const refused = first?.json() as { code: string; retryable: boolean } | undefined;
    if (refused?.code !== "format_not_available" || !refused.retryable) throw new Error(`no CSV: ${first?.body}`);
    return false;
  });
  const beforeSending = memoryOf(service);
  const whole = await rawRequest(service.port, request());
  const body = whole?.body as Buffer;
  t.equal(whole?.status, 200);
  t.equal(whole?.headers["content-length"], String(body.length));
  const files = (await rawRequest(service.port, `GET /runs/${runId}/files HTTP/1.1\r\nHost: cell\r\n\r\n`))?.json();
  t.match(files, { 0: { name: "step-1-cl_sweep.csv", size_in_bytes: body.length } });

  const ends = checkLines(t, body);

  const rowAt = (row: number): number => (ends[row] as number) + 1;
  for (const [first, last] of [
    [rowAt(987_654), rowAt(987_654) + 12],
    [rowAt(700_000) + 5, rowAt(720_000) + 17],
    [rowAt(ROWS - 1), body.length - 1],
    [rowAt(STRETCH_ROWS * 200) - 1, rowAt(STRETCH_ROWS * 200)],
  ] as const) {
    const part = await rawRequest(service.port, request(`Range: bytes=${first}-${last}\r\n`));
    t.equal(part?.status, 206);
    t.equal(part?.headers["content-range"], `bytes ${first}-${last}/${body.length}`);
    t.ok(part?.body.equals(body.subarray(first, last + 1)), `bytes ${first} to ${last}`);
  }
  const resumed = await rawRequest(service.port, request(`Range: bytes=${rowAt(950_000)}-\r\n`));
  t.ok(resumed?.body.equals(body.subarray(rowAt(950_000))), "what a client that was cut off lacks");

  // Some clients take it as fast as they can. Others begin, and take nothing more.
  const idle = [await RawConnection.open(service.port), await RawConnection.open(service.port)];
  for (const connection of idle) {
    connection.send(request());
    connection.socket.pause();
  }
  const taken = Array.from({ length: CLIENTS_AT_ONCE }, () => digestOf(service.port, path));
  const expected = { status: 200, lengthBytes: body.length, crc32: crc32(body) };
  t.same(await Promise.all(taken), new Array(CLIENTS_AT_ONCE).fill(expected));
  for (const connection of idle) connection.close();

  const metrics =
    (await rawRequest(service.port, "GET /metrics HTTP/1.1\r\nHost: cell\r\n\r\n"))?.body.toString() ?? "";
  const kept = Number(/^inspection_made_bytes (\d+)$/m.exec(metrics)?.[1]);
  t.ok(kept > 32 * MIB && kept <= 64 * MIB, `${kept} bytes of pieces are kept`);
  t.test("memory", { skip: IS_LINUX ? false : "only /proc says what it is" }, async (t) => {
    const whileCounted = beforeSending.peakBytes - beforeCounting.residentBytes;
    const whileSent = memoryOf(service).peakBytes - beforeSending.residentBytes;
    const mib = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`;
    t.comment(`CSV of ${mib(body.length)}: ${mib(whileCounted)} more while counted, ${mib(whileSent)} while sent`);
    t.ok(whileCounted <= MOST_WHILE_COUNTED, `${mib(whileCounted)} of ${mib(MOST_WHILE_COUNTED)}`);
    t.ok(whileSent <= MOST_WHILE_SENT, `${mib(whileSent)} of ${mib(MOST_WHILE_SENT)}`);
  });
});

/** A run whose first step has all the appends, and is not finished. @returns its id */
async function appendRows(t: Test, producer: RawProducer): Promise<string> {
  const runId = nextId();
  await producer.accept(programPut());
  await producer.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await producer.accept({ type: "run.start", id: runId });
  await producer.accept({ type: "step.start", run_id: runId, index: 1 });
  let row = 0;
  for (const [nth, rows] of APPENDS.entries()) {
    const appended = new Float32Array(rows * CHANNELS);
    for (let done = 0; done < appended.length; ) {
      const from = firstValueOf(row + done / CHANNELS);
      const part = values.subarray(from, from + appended.length - done);
      appended.set(part, done);
      done += part.length;
    }
    row += rows;
    const time = { first_timestamp: formatTimeUs(START_US + nth * 3_600_000_000), sample_period_us: PERIOD_US };
    const body = { ...seriesAppend(runId, 1, CHANNELS), ...time, invalid: [CODE] };
    await producer.accept(body, new Uint8Array(appended.buffer));
  }
  t.equal(row, ROWS);
  return runId;
}

/** The sampled lines are as they were appended. @returns where each line ends */
function checkLines(t: Test, body: Buffer): Uint32Array {
  const ends = new Uint32Array(ROWS + 1);
  for (let line = 0, at = -1; line <= ROWS; line++) {
    at = body.indexOf(10, at + 1);
    ends[line] = at;
  }
  t.equal(ends[ROWS], body.length - 1, "a header, a million rows, and nothing after them");
  t.equal(
    body.toString("latin1", 0, ends[0]),
    "timestamp,channel_1,channel_2,channel_3,channel_4,channel_5,channel_6,channel_7,channel_8",
  );
  const textOf = (row: number): string => body.toString("latin1", (ends[row] as number) + 1, ends[row + 1]);
  const sampled = sampledRows();
  const wrong = [...sampled].filter((row) => textOf(row) !== lineOf(row));
  t.same(
    wrong.slice(0, 3).map((row) => `row ${row}: ${textOf(row)} is not ${lineOf(row)}`),
    [],
  );
  t.ok(sampled.size > 1_700, `${sampled.size} rows looked at`);
  return ends;
}

/** Zeros on all systems but Linux, which have no such files. */
function memoryOf({ pid }: ServiceProcess): { residentBytes: number; peakBytes: number } {
  if (!IS_LINUX) return { residentBytes: 0, peakBytes: 0 };
  return { residentBytes: residentBytes(pid), peakBytes: peakResidentBytes(pid) };
}

/** Downloads without keeping. */
function digestOf(port: number, path: string): Promise<{ status: number; lengthBytes: number; crc32: number }> {
  return new Promise((resolve, reject) => {
    const onResponse = (response: IncomingMessage): void => {
      let lengthBytes = 0;
      let crc = 0;
      response.on("data", (chunk: Buffer) => {
        lengthBytes += chunk.length;
        crc = crc32(chunk, crc);
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, lengthBytes, crc32: crc }));
      response.on("error", reject);
    };
    get({ host: "127.0.0.1", port, path, agent: false }, onResponse).on("error", reject);
  });
}
