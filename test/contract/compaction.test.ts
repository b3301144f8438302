import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import t, { type Test } from "tap";
import { createRandom } from "../../core/random.js";
import { runWithCaptures } from "../helpers/captures/kept-captures.js";
import { rawRequest } from "../helpers/http/raw-http.js";
import { RawProducer } from "../helpers/link/raw-producer.js";
import { openFilesByKind } from "../helpers/process/process-figures.js";
import { runCommand, ServiceProcess } from "../helpers/process/service-process.js";
import { sized } from "../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_121);
const RUNS = sized(20, 600);
/** What front and recorder may have open at any moment of files that are gone, far fewer than the compactions. */
const MOST_DELETED = 3;
const SCRIPT = new URL("../helpers/compaction/compacting-service.js", import.meta.url).pathname;

interface Run {
  id: string;
  status: string;
  updated_at: string;
}

async function get(port: number, path: string): Promise<string> {
  const response = await rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`);
  if (response?.status !== 200) throw new Error(`${path}: ${response?.status} ${response?.body.toString()}`);
  return response.body.toString();
}

/** A run shows a moment after it was acknowledged, on a busy machine after its end was. */
async function whenShown(port: number, id: string): Promise<void> {
  for (;;) {
    const response = await rawRequest(port, `GET /runs/${id} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`);
    if (response?.status === 200) return;
    if (response?.status !== 404) throw new Error(`/runs/${id}: ${response?.status} ${response?.body.toString()}`);
  }
}

/**
 * What clients have seen of ended runs, by id and update time: whoever sees that version again must see the same bytes, whatever was
 * moved meanwhile. Retention makes one more version of each.
 */
class Seen {
  readonly #answers = new Map<string, string>();
  looks = 0;

  look(t: Test, what: string, run: Run, answer: string): void {
    this.looks++;
    if (!["completed", "failed", "cancelled"].includes(run.status)) return;
    const key = `${what} ${run.id} ${run.updated_at}`;
    const before = this.#answers.get(key);
    if (before === undefined) this.#answers.set(key, answer);
    else if (before !== answer) t.fail(`${key}: another answer`, { before, answer }) || t.bailout();
  }
}

async function readRandomly(
  t: Test,
  port: number,
  ids: readonly string[],
  seen: Seen,
  seed: number,
  isOver: () => boolean,
) {
  const random = createRandom(seed);
  while (!isOver()) {
    if (ids.length === 0) {
      await get(port, "/runs");
    } else if (random.chance(0.5)) {
      const answer = await get(port, `/runs/${random.pick(ids)}`);
      seen.look(t, "run", JSON.parse(answer) as Run, answer);
    } else {
      const offset = random.integer(0, ids.length);
      const page = JSON.parse(await get(port, `/runs?limit=${random.integer(1, 50)}&offset=${offset}`)) as {
        runs: Run[];
      };
      for (const run of page.runs) seen.look(t, "entry", run, JSON.stringify(run));
    }
  }
}

t.test(
  "a service that compacts while clients read answers the same, then, after a start, and check agrees",
  async (t) => {
    t.comment(`TEST_SEED=${SEED}`);
    let service = await ServiceProcess.start({ script: SCRIPT });
    const owner = service;
    t.teardown(async () => {
      await service.dispose();
      await owner.dispose();
    });
    const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
    const ids: string[] = [];
    const seen = new Seen();
    let isOver = false;
    const clients = [1, 2, 3].map((nth) => readRandomly(t, service.port, ids, seen, SEED + nth, () => isOver));
    for (let n = 0; n < RUNS; n++) {
      const { id } = await runWithCaptures(producer, n);
      for (let k = 0; k < 6; k++) {
        const data = { n, k, padding: "x".repeat(300) };
        await producer.accept({ type: "event.add", run_id: id, event_type: "e", data });
      }
      await producer.accept({ type: n % 7 === 0 ? "run.cancel" : "run.finish", id });
      await whenShown(service.port, id);
      ids.push(id);
    }
    isOver = true;
    await Promise.all(clients);
    // What is made of the last captures may still be on its way: then the run ends, in this life or in the next, and reads differently.
    const finalizing = async (): Promise<number> =>
      (JSON.parse(await get(service.port, "/runs?status=finalizing&limit=1")) as { total: number }).total;
    // The last one's end shows a moment after it was acknowledged.
    while (/^(running|pending)$/.test((JSON.parse(await get(service.port, `/runs/${ids.at(-1)}`)) as Run).status));
    while ((await finalizing()) > 0);
    const answers = async (): Promise<string[]> => {
      const lists = ["/runs?limit=1000", "/runs?limit=1000&status=completed", "/runs?limit=9&offset=17", "/programs"];
      return Promise.all([...lists, ...ids.map((id) => `/runs/${id}`)].map((path) => get(service.port, path)));
    };
    producer.socket.destroy();
    const metrics = await get(service.port, "/metrics");
    t.match(metrics, /^inspection_compaction_segments_total [1-9]\d*$/m);
    t.match(metrics, /^inspection_compaction_bytes_total [1-9]\d*$/m);
    // Of what was removed, or replaced, nobody keeps a file open for long.
    while ((openFilesByKind(service.pid).get("deleted") ?? 0) > MOST_DELETED) await pause(20);
    const { stderr } = await service.end();
    const compactions = stderr.split("\n").filter((line) => line.includes("compacted a segment of the log")).length;
    t.ok(compactions >= sized(1, 50), `${compactions} compactions`);
    t.notMatch(stderr, /"level":"?(?:50|error)|cannot be read|damaged/, "no line of an error");
    t.comment(`${RUNS} runs, ${compactions} compactions, ${seen.looks} answers beside them: none was another one`);

    service = await ServiceProcess.start({ script: SCRIPT, dataDirectory: service.dataDirectory });
    const first = await answers();
    for (const [nth, id] of ids.entries()) {
      const answer = first[4 + nth] as string;
      t.equal((JSON.parse(answer) as Run).id, id);
      seen.look(t, "run", JSON.parse(answer) as Run, answer);
    }
    await service.end();
    service = await ServiceProcess.start({ dataDirectory: service.dataDirectory });
    t.same(await answers(), first, "and once more, with the segments of before");
    await service.end();
    const check = await runCommand(["check", "--data", service.dataDirectory]);
    t.equal(check.code, 0, check.stdout);
    t.match(check.stdout, /, 0 damages\nok/);
    const inspected = await runCommand(["inspect", "--data", service.dataDirectory, "--run", ids[0] as string]);
    t.match(inspected.stdout, /"type":"runEnded"/);
    t.notMatch(inspected.stdout, /"type":"runCreated"/, "what came before the end is gone");
    const to = join(service.dataDirectory, "out");
    const exported = await runCommand([
      ...["export", "--data", service.dataDirectory],
      ...["--run", ids[0] as string, "--to", to],
    ]);
    t.match(exported, { code: 0, stderr: "" }, "and no loss of the run");
    t.notOk(existsSync(join(to, "incomplete.json")));
  },
);
