import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
} from "../../helpers/link/link-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_264);
const SCRIPT = new URL("../../helpers/snapshot/snapshot-service.js", import.meta.url).pathname;
const LOOK_MS = 20;
const CYCLES = sized(1, 60);

interface Cell {
  runIds: string[];
  frameIds: string[];
  /** Runs that were ended, with a whole frame each. */
  ended: { runId: string; frameId: string }[];
}

/** Some runs of every kind of end, some of which go on in the next call. */
async function work(client: ProducerClient, cell: Cell, random: ReturnType<typeof createRandom>): Promise<void> {
  for (let nth = 0; nth < 12; nth++) {
    const runId = nextId();
    cell.runIds.push(runId);
    await client.deliver({
      type: "run.create",
      id: runId,
      program_id: PROGRAM_ID,
      ...(random.chance(0.7) && { serial_number: `SN-${random.integer(0, 9)}` }),
    });
    if (random.chance(0.2)) continue;
    await client.deliver({ type: "run.start", id: runId });
    await client.deliver({ type: "step.start", run_id: runId, index: 1 });
    const frameId = nextId();
    cell.frameIds.push(frameId);
    await client.deliver(frameBegin(frameId, runId));
    await client.deliver(frameLines(frameId, 0, 4), random.bytes(4 * LINE_BYTES));
    if (random.chance(0.2)) continue;
    await client.deliver({ type: "frame.end", id: frameId });
    const data = { text: "x".repeat(random.integer(0, 2_000)) };
    await client.deliver({ type: "event.add", run_id: runId, event_type: "note", data });
    cell.ended.push({ runId, frameId });
    await client.deliver(
      random.chance(0.7) ? { type: "run.finish", id: runId } : { type: "run.fail", id: runId, error_message: "broke" },
    );
  }
  const key = `camera-${random.integer(0, 3)}`;
  await client.deliver({ type: "component.put", key, status: random.pick(["healthy", "degraded"]) });
}

/** Until all captures are processed: what is still to be made would have another time in each copy of the store. */
async function untilProcessed(service: ServiceProcess, { ended }: Cell): Promise<void> {
  const answer = async (path: string) => (await fetch(`http://127.0.0.1:${service.port}${path}`)).text();
  for (const { runId, frameId } of ended) {
    while (!/"status":"(completed|failed)"/.test(await answer(`/runs/${runId}`))) await delay(LOOK_MS);
    while (!/file\.ply"/.test(await answer(`/sensor/frames/${frameId}/files`))) await delay(LOOK_MS);
  }
}

/** What a service on that data directory answers, and what it said of where it began. */
async function answersOf(t: Test, dataDirectory: string, cell: Cell) {
  const service = await ServiceProcess.start({ dataDirectory, args: ["serve", "--finalize-timeout", "3600"] });
  t.teardown(() => service.dispose());
  const filters = ["", "status=completed", "status=running", "serial_number=SN-3", `program_id=${PROGRAM_ID}&limit=3`];
  const paths = [
    ...filters.map((filter) => `/runs?limit=1000&${filter}`),
    ...["/runs?limit=7&offset=5", "/runs/active", "/programs", `/programs/${PROGRAM_ID}`],
    ...cell.runIds.flatMap((id) => [`/runs/${id}`, `/runs/${id}/files`, `/runs/${id}/quality-report`]),
    ...cell.frameIds.flatMap((id) => [`/sensor/frames/${id}`, `/sensor/frames/${id}/file.npy`]),
  ];
  const answers: string[] = [];
  for (const path of paths) {
    const response = await rawRequest(service.port, `GET ${path} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`);
    // The trace id of an error is its own.
    const body = response?.body.toString("latin1").replace(/"trace_id":"[0-9a-f]{32}"/, "");
    answers.push(`${path}: ${response?.status} ${response?.headers.etag ?? ""} ${body}`);
  }
  const health = await rawRequest(service.port, "GET /health HTTP/1.1\r\nHost: cell:8000\r\n\r\n");
  answers.push(JSON.stringify(camerasIn(health?.json())));
  const { stderr } = await service.end();
  return { answers, began: /"began from a snapshot"/.test(stderr), discarded: /of no use, and removed/.test(stderr) };
}

function camerasIn(health: unknown): unknown[] {
  const { components } = health as { components: { key: string }[] | Record<string, unknown> };
  const rows = Array.isArray(components) ? components : Object.entries(components);
  return rows.filter((row) => JSON.stringify(row).includes("camera"));
}

t.test(`a service stopped and killed answers the same with its snapshot and without, TEST_SEED=${SEED}`, async (t) => {
  const random = createRandom(SEED);
  const directory = temporaryDirectory(t);
  const cell: Cell = { runIds: [], frameIds: [], ended: [] };
  const client = new ProducerClient({
    address: { path: join(directory, "cell.sock") },
    producer: "cell",
    reconnectFirstMs: 2,
    reconnectLongestMs: 20,
  });
  t.teardown(() => client.destroy());
  let began = 0;
  let compared = 0;
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const service = await ServiceProcess.start({ script: SCRIPT, dataDirectory: directory });
    t.teardown(() => service.dispose());
    if (cycle === 0) await client.deliver(programPut());
    await work(client, cell, random);
    await untilProcessed(service, cell);
    const isKilled = cycle % 2 === 1;
    const { stderr } = await service.end(isKilled ? "SIGKILL" : "SIGTERM");
    t.notMatch(stderr, /"level":[456]0/, "nothing to warn of");
    if (cycle > 0) t.match(stderr, /"began from a snapshot"/);
    if (!isKilled) t.match(readdirSync(join(directory, "snapshot")), listOf(/\.snap$/), "a clean stop leaves one");

    const [withSnapshot, without] = [temporaryDirectory(t), temporaryDirectory(t)];
    for (const copy of [withSnapshot, without]) {
      cpSync(directory, copy, { recursive: true, filter: (path) => !/(lock|cell\.sock)$/.test(path) });
    }
    rmSync(join(without, "snapshot"), { recursive: true });
    const [one, other] = [await answersOf(t, withSnapshot, cell), await answersOf(t, without, cell)];
    t.equal(
      one.began,
      readdirSync(join(directory, "snapshot")).some((name) => name.endsWith(".snap")),
    );
    t.same([one.discarded, other.began], [false, false]);
    t.same(one.answers, other.answers, `cycle ${cycle}`);
    if (one.began) began++;
    compared += one.answers.length;
  }
  t.comment(`${CYCLES} ends, ${began} openings from a snapshot, ${compared} answers, ${cell.runIds.length} runs`);
  t.ok(began >= CYCLES / 2);
});
