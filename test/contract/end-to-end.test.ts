import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createRandom } from "../../core/random.js";
import { ProducerClient } from "../../workers/cell-link/producer-client.js";
import { pythonWith, runPython, skipWithout } from "../helpers/captures/python-checker.js";
import { ContractClient } from "../helpers/http/contract-client.js";
import { listOf } from "../helpers/list-of.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const HEIGHT_MAP = "../shared/data/heightmaps/disc_fixture_a_height.npy";

const CHECK = { name: "flatness", status: "failed", value: 0.3, nominal: 0, delta: 0.3, threshold: 0.2 };
const REPORT = Buffer.from("%PDF-1.7 all good");
const numpy = pythonWith("numpy");

interface Plane {
  rows: number;
  columns: number;
  values: Buffer;
}

/** Rows, columns and the values of a little-endian u16 array in a file that numpy wrote. */
function readHeightMap(path: string): (Plane & { file: Buffer }) | undefined {
  let file: Buffer;
  try {
    file = readFileSync(path);
  } catch {
    return undefined;
  }
  const headerEnd = 10 + file.readUInt16LE(8);
  const shape = /'<u2'.*\((\d+), (\d+)\)/.exec(file.subarray(10, headerEnd).toString("latin1"));
  if (shape === null) throw new Error(`${path} is not a plane of u16`);
  return { rows: Number(shape[1]), columns: Number(shape[2]), values: file.subarray(headerEnd), file };
}

function madeHeightMap(): Plane {
  const random = createRandom(7);
  const values = Buffer.alloc(200 * 333 * 2);
  for (let i = 0; i < values.length; i += 2) values.writeUInt16LE(Math.floor(random.next() * 65_536), i);
  return { rows: 200, columns: 333, values };
}

t.test("what a producer says over the cell link is what clients read, before and after a kill -9", async (t) => {
  const recorded = readHeightMap(HEIGHT_MAP);
  const plane = recorded ?? madeHeightMap();
  const { rows, columns, values } = plane;
  let service = await ServiceProcess.start();
  t.teardown(() => service.dispose());
  const folder = service.dataDirectory;

  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "test-cell" });
  await producer.welcomed();
  const runId = producer.nextRunId();
  const frameId = runId.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  await produce(producer, runId, frameId, plane);

  // The acknowledgement of run.finish comes before the run has been finalized.
  const reader = new ContractClient(t, service.port);
  const run = await reader.until("/runs/{run_id}", ({ status }) => status === "completed", { path: { run_id: runId } });
  t.match(run, { program_id: PROGRAM_ID, serial_number: "D-1", revision: 1, results: { frame_ids: listOf(frameId) } });

  const before = await readAll(t, reader, runId, frameId);
  const npy = before.get(`/sensor/frames/${frameId}/file.npy`) as Buffer;
  t.ok(npy.subarray(-values.length).equals(values), "the plane is bit-equal");
  const skip = recorded === undefined && `${HEIGHT_MAP} is absent: a made height map took its place`;
  t.ok(recorded === undefined || npy.equals(recorded.file), "the file is the one that numpy wrote", { skip });
  t.ok(before.get(`/runs/${runId}/files/report.pdf`)?.equals(REPORT));
  t.match(JSON.parse(String(before.get(`/runs/${runId}/quality-report`))), {
    quality_report: { status: "failed", summary: "bent", checks: listOf(CHECK), defects: listOf({ type: "dent" }) },
  });

  await t.test("numpy loads the source's values", { skip: skipWithout(numpy, "numpy") }, (t) => {
    const file = join(t.testdir(), "frame.npy");
    writeFileSync(file, npy);
    const script = `
import sys, hashlib, numpy
plane = numpy.load(sys.argv[1])
print(plane.shape, plane.dtype, hashlib.sha1(plane.tobytes()).hexdigest())`;
    t.equal(runPython(numpy as string, script, file).trim(), `(${rows}, ${columns}) uint16 ${hash("sha1", values)}`);
    t.end();
  });

  await producer.close();
  await service.end("SIGKILL");
  service = await ServiceProcess.start({ dataDirectory: folder });
  const after = await readAll(t, new ContractClient(t, service.port), runId, frameId);
  for (const [path, bytes] of before) t.ok(after.get(path)?.equals(bytes), `${path} after the kill`);
  await service.end();
});

/** A run with one frame, a failed check, a defect and a report. */
async function produce(producer: ProducerClient, runId: string, frameId: string, plane: Plane): Promise<void> {
  const { rows, columns, values } = plane;
  const luminance = Buffer.alloc(rows * columns, 0x5a);
  await producer.deliver({
    type: "program.put",
    program: { id: PROGRAM_ID, name: "Disc", status: "active", robot_ids: ["r1"], steps: [{ type: "capture_frame" }] },
  });
  await producer.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID, serial_number: "D-1" });
  await producer.deliver({ type: "run.start", id: runId });
  await producer.deliver({ type: "step.start", run_id: runId, index: 1 });
  await producer.deliver({
    type: "frame.begin",
    id: frameId,
    run_id: runId,
    step_index: 1,
    session_id: "s",
    frame_type: "heightmap",
    width: columns,
    height: rows,
    planes: {
      height: { dtype: "u16", scale_mm: 0.02, offset_mm: 0, invalid: [0] },
      luminance: { dtype: "u8", bits: 8 },
    },
    x_pitch_mm: 0.2,
    y_pitch_mm: 0.2,
    capture_timestamp: "2026-01-31T12:00:00.5Z",
  });
  for (let line = 0; line < rows; line += 97) {
    const count = Math.min(97, rows - line);
    const heights = values.subarray(line * columns * 2, (line + count) * columns * 2);
    const brightness = luminance.subarray(line * columns, (line + count) * columns);
    const message = { type: "frame.lines", id: frameId, first_line: line, line_count: count };
    await producer.send(message, Buffer.concat([heights, brightness]));
  }
  await producer.deliver({ type: "frame.end", id: frameId });
  await producer.deliver({
    type: "step.finish",
    run_id: runId,
    index: 1,
    status: "completed",
    result: { frame_id: frameId, checks: [CHECK], defects: [{ type: "dent" }] },
  });
  await producer.deliver(
    { type: "file.put", run_id: runId, name: "report.pdf", file_type: "report", content_type: "application/pdf" },
    REPORT,
  );
  await producer.deliver({ type: "run.finish", id: runId, summary: "bent" });
}

/** The bytes of every answer about the run, by their paths. */
async function readAll(t: Test, client: ContractClient, runId: string, frameId: string): Promise<Map<string, Buffer>> {
  const answers = new Map<string, Buffer>();
  for (const path of [
    `/runs/${runId}`,
    "/runs",
    `/programs/${PROGRAM_ID}`,
    `/programs/${PROGRAM_ID}/runs`,
    `/runs/${runId}/quality-report`,
    `/runs/${runId}/defects`,
    `/runs/${runId}/files`,
    `/runs/${runId}/files/report.pdf`,
    `/runs/${runId}/files/frame-${frameId}.npy`,
    `/sensor/frames/${frameId}`,
    `/sensor/frames/${frameId}/files`,
    `/sensor/frames/${frameId}/file.npy`,
  ]) {
    const response = await client.raw("GET", path);
    t.equal(response.status, 200, path);
    answers.set(path, response.body);
  }
  return answers;
}
