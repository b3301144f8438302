import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { pythonWith, runPython } from "../../helpers/captures/python-checker.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const FOLDER = "http/client/examples";
const run = promisify(execFile);

const pandas = pythonWith("numpy", "pandas");
const sqlite = pythonWith("sqlite3");

const [WIDTH, LINES, PITCH_MM, SCALE_MM] = [50, 40, 0.5, 0.001];
/** The part is tilted in x, and has one bump. */
const [TILT, BUMP_MM, BUMP_LINE, BUMP_COLUMN] = [0.02, 0.5, 30, 20];

function tiltedPlane(): Uint16Array {
  const heights = new Uint16Array(WIDTH * LINES);
  for (let line = 0; line < LINES; line++) {
    for (let column = 0; column < WIDTH; column++) {
      const isBump = line === BUMP_LINE && column === BUMP_COLUMN;
      const zMm = 5 + TILT * column * PITCH_MM + (isBump ? BUMP_MM : 0);
      heights[line * WIDTH + column] = Math.round(zMm / SCALE_MM);
    }
  }
  // 0 means that nothing was measured.
  heights.fill(0, 0, 7);
  return heights;
}

t.test(
  "the walk through a frame finds tilt and bump, and takes no missing point for a height",
  {
    skip: pandas === undefined && "numpy and pandas are not there",
  },
  async (t) => {
    const service = await ServiceProcess.startFor(t);
    const producer = service.producerFor(t);
    await producer.welcomed();
    const [id, frame] = [producer.nextRunId(), nextId()];
    await producer.deliver(programPut(PROGRAM_ID, 1));
    await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.deliver({ type: "run.start", id });
    await producer.deliver({ type: "step.start", run_id: id, index: 1 });
    const planes = { height: { dtype: "u16", scale_mm: SCALE_MM, offset_mm: 0, invalid: [0] } };
    const place = { session_id: "s", frame_type: "profile", capture_timestamp: "2026-01-31T12:00:00Z" };
    const pitch = { x_pitch_mm: PITCH_MM, y_pitch_mm: PITCH_MM, x_origin_mm: 100 };
    const shape = { width: WIDTH, height: LINES, planes, ...pitch };
    await producer.deliver({ type: "frame.begin", id: frame, run_id: id, step_index: 1, ...place, ...shape });
    const heights = Buffer.from(tiltedPlane().buffer);
    await producer.deliver({ type: "frame.lines", id: frame, first_line: 0, line_count: LINES }, heights);
    await producer.deliver({ type: "frame.end", id: frame });
    const script = join(FOLDER, "frame_in_millimetres.py");
    const { stdout } = await run(pandas as string, [script, `http://127.0.0.1:${service.port}`, frame]);
    const lines = stdout.trim().split("\n");
    t.equal(lines.length, 2 + LINES + 1, "a row for each line");
    const found = JSON.parse(lines.pop() as string) as Record<string, number> & { tilt_mm_per_m: number[] };
    t.match(found, { points: WIDTH * LINES - 7, missing: 7 });
    t.same(found.highest_at_mm, [100 + BUMP_COLUMN * PITCH_MM, BUMP_LINE * PITCH_MM]);
    t.ok(Math.abs((found.tilt_mm_per_m[0] as number) - 1000 * TILT) < 0.2, `tilt ${found.tilt_mm_per_m}`);
    t.ok(Math.abs((found.flatness_mm as number) - BUMP_MM) < 0.01, `flatness ${found.flatness_mm}`);
  },
);

const READ = `
import json, sqlite3, sys
store = sqlite3.connect(sys.argv[1])
read = lambda query: [list(row) for row in store.execute(query)]
print(json.dumps([read("SELECT id, status, quality_status, updated_at FROM runs ORDER BY created_at"),
    read("SELECT serial_number, name, value, canonical_units FROM checks JOIN runs ON runs.id = run_id ORDER BY value")]))
`;

t.test(
  "the copy in SQLite follows the service, by pages and by marks",
  {
    skip: sqlite === undefined && "Python is not there",
  },
  async (t) => {
    const keys = join(temporaryDirectory(t), "keys.json");
    const added = await runCommand(["keys", "add", "--file", keys, "--scope", "read"]);
    const key = added.stdout.trim();
    const service = await ServiceProcess.startFor(t, { args: ["serve", "--api-keys", keys] });
    const base = `http://127.0.0.1:${service.port}`;
    const producer = service.producerFor(t);
    await producer.welcomed();
    await producer.deliver(programPut(PROGRAM_ID, 1));
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      const id = producer.nextRunId();
      ids.push(id);
      await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID, serial_number: `SN-${n}` });
      await producer.deliver({ type: "run.start", id });
      await producer.deliver({ type: "check.add", run_id: id, check: { name: "gap", status: "passed", value: n } });
      if (n < 3) await producer.deliver({ type: "run.finish", id });
    }
    const file = join(temporaryDirectory(t), "runs.sqlite");
    const sync = async (environment: Record<string, string> = {}): Promise<string> => {
      const env = { ...process.env, SERVICE_KEY: key, PAGE_RUNS: "2", ...environment };
      return (await run(sqlite as string, [join(FOLDER, "sync_into_sqlite.py"), base, file], { env })).stdout.trim();
    };
    const isCompleted = async (at: number): Promise<boolean> => {
      const answer = await fetch(`${base}/runs/${ids[at]}`, { headers: { Authorization: `Bearer ${key}` } });
      return ((await answer.json()) as { status: string }).status === "completed";
    };
    for (const at of [0, 1, 2]) while (!(await isCompleted(at)));
    const copy = () => JSON.parse(runPython(sqlite as string, READ, file)) as [string[][], unknown[][]];

    await t.rejects(sync({ SERVICE_KEY: "" }), { message: /HTTP Error 401/ });
    t.equal(await sync(), "5 runs");
    const [runs, checks] = copy();
    t.same(
      runs.map(([id, status]) => [id, status]),
      ids.map((id, at) => [id, at < 3 ? "completed" : "running"]),
    );
    t.same(
      checks,
      [0, 1, 2].map((n) => [`SN-${n}`, "gap", n, "mm"]),
    );
    t.equal(await sync(), "0 runs");
    await producer.deliver({ type: "run.finish", id: ids[4] });
    while (!(await isCompleted(4)));
    t.equal(await sync(), "1 run");
    const [later, laterChecks] = copy();
    t.same(later[4]?.slice(0, 3), [ids[4], "completed", "passed"]);
    t.equal(later[3]?.[1], "running");
    t.equal(laterChecks.length, 4);
    const { runs: served } = (await (
      await fetch(`${base}/runs`, { headers: { Authorization: `Bearer ${key}` } })
    ).json()) as {
      runs: { updated_at: string }[];
    };
    t.same(
      later.map((row) => row[3]).reverse(),
      served.map((row) => row.updated_at),
    );
  },
);
