import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { BreakingProxy } from "../../helpers/link/breaking-proxy.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { type Python, pythonWithMessagePack } from "../../helpers/system/message-pack-python.js";

const EXAMPLE = "workers/cell-link/examples/inspect_part.py";
const RUNS = 12;
const seed = Number(process.env.TEST_SEED ?? 20_261_128);

interface ReadRun {
  id: string;
  status: string;
  serial_number: string;
  quality_status: string;
}

const python = pythonWithMessagePack();

t.test(
  "the producer in Python: each message counts once, however often the connection breaks",
  {
    skip: "missing" in python && python.missing,
  },
  async (t) => {
    t.comment(`TEST_SEED=${seed}`);
    const random = createRandom(seed);
    const service = await ServiceProcess.startFor(t);
    const path = join(temporaryDirectory(t), "cell.sock");
    const proxy = await BreakingProxy.listen(path, service.cellSocketPath, () => random.integer(200, 6_000));
    t.teardown(() => proxy.close());
    const { binary, environment } = python as Python;
    const child = spawn(binary, [EXAMPLE, path, String(RUNS)], { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    t.equal(stderr, "");
    t.equal(code, 0);
    t.ok(proxy.broken > 3, `${proxy.broken} breaks, ${proxy.brokenAnswers} of answers`);

    const get = async (path: string) => (await fetch(`http://127.0.0.1:${service.port}${path}`)).json();
    const { runs, total } = (await get("/runs?limit=100")) as { runs: ReadRun[]; total: number };
    t.equal(total, RUNS);
    t.same(runs.map(({ id }) => id).reverse(), stdout.trim().split("\n"), "in the order in which it printed them");
    t.same(
      runs.map((run) => run.serial_number).reverse(),
      Array.from({ length: RUNS }, (_, at) => `PY-${at}`),
    );
    for (const { id, quality_status } of runs) {
      t.equal(quality_status, "passed");
      const { quality_report } = (await get(`/runs/${id}/quality-report`)) as { quality_report: { checks: object[] } };
      t.equal(quality_report.checks.length, 1, "one check");
      const run = (await get(`/runs/${id}`)) as { results: { frame_ids: string[] } };
      const [frame] = run.results.frame_ids;
      const answer = await fetch(`http://127.0.0.1:${service.port}/sensor/frames/${frame}/file.npy`);
      const heights = new Uint16Array((await answer.arrayBuffer()).slice(-24));
      t.same(
        [...heights],
        Array.from({ length: 12 }, (_, at) => 1000 + at),
      );
    }
  },
);

t.test(
  "the producer in Python says what is refused, and goes no further",
  {
    skip: "missing" in python && python.missing,
  },
  async (t) => {
    const service = await ServiceProcess.startFor(t);
    const { binary, environment } = python as Python;
    const script = `
import sys; sys.path.insert(0, ${JSON.stringify("workers/cell-link/examples")})
from producer import Producer
cell = Producer(sys.argv[1], "python-example")
first, second = cell.new_run_id(), cell.new_run_id()
assert first < second
cell.send({"type": "run.start", "id": first})
cell.send({"type": "cell.put", "unit_system": "metric"})
try:
    cell.wait()
except ValueError as error:
    print(error)
cell.wait()
print(len(cell.unanswered))
try:
    Producer(sys.argv[1], "A name")
except RuntimeError as error:
    print(error)
`;
    const { stdout, stderr } = spawnSync(binary, ["-c", script, service.cellSocketPath], {
      env: environment,
      encoding: "utf8",
    });
    t.equal(stderr, "");
    t.match(stdout, /refused: .*run\.start.*not_found.*\n0\nthe service refuses this producer: .*invalid_message/);
  },
);
