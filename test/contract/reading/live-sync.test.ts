import { rmSync } from "node:fs";
import t from "tap";
import type { JsonObject } from "../../../core/json/json.js";
import { createRandom, type Random } from "../../../core/random.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RunSync, type SyncedRun } from "../../helpers/live/run-sync.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { quietAssert } from "../../helpers/quiet-assert.js";
import { sized } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_123);
const RUNS = sized(150, 6_000);
const KILLS = sized(1, 10);
/** Runs that go on at the same time. */
const LANES = 12;

/** Counts what is acknowledged, for who waits for more of it. */
class Progress {
  #count = 0;
  #isOver = false;
  #wake: () => void = () => {};

  add(): void {
    this.#count++;
    this.#wake();
  }

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  /** Resolves when so many more are acknowledged, or no more will be. */
  async more(count: number): Promise<void> {
    const target = this.#count + count;
    while (this.#count < target && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** One run, from its creation to its end; resolves when all of it is acknowledged. */
async function produce(client: ProducerClient, random: Random, progress: Progress): Promise<void> {
  const id = client.nextRunId();
  const say = async (message: JsonObject): Promise<void> => {
    await client.deliver(message);
    progress.add();
  };
  await say({ type: "run.create", id, program_id: PROGRAM_ID });
  await say({ type: "run.start", id });
  for (let events = random.integer(0, 4); events > 0; events--) {
    await say({ type: "event.add", run_id: id, event_type: "note", data: { events } });
  }
  const end = random.pick(["run.finish", "run.fail", "run.cancel"]);
  await say({ type: end, id, ...(end === "run.fail" && { error_message: "no part" }) });
}

t.test(`a sync beside ingest, through kills of the service, ends with every run as it is (seed ${seed})`, async (t) => {
  const random = createRandom(seed);
  let service = await ServiceProcess.start();
  const { dataDirectory } = service;
  t.teardown(() => service.dispose());
  t.teardown(() => rmSync(dataDirectory, { recursive: true, force: true }));
  const refused: unknown[] = [];
  const producer = new ProducerClient({
    address: { path: service.cellSocketPath },
    producer: "controller",
    onRefused: (refusal) => refused.push(refusal),
  });
  t.teardown(() => producer.close());
  await producer.deliver(programPut());

  const progress = new Progress();
  let begun = 0;
  let ended = 0;
  const lane = async (): Promise<void> => {
    while (begun++ < RUNS) {
      await produce(producer, random, progress);
      ended++;
    }
  };
  let isProducing = true;
  const producing = Promise.all(Array.from({ length: LANES }, lane)).finally(() => {
    isProducing = false;
    progress.end();
  });

  const copy = new RunSync();
  const sync = () => copy.sync(client, 3 + random.integer(0, 9), () => progress.more(random.integer(0, 4)));
  let client = new ContractClient(quietAssert(t), service.port);
  let syncs = 0;
  for (let kills = 0; isProducing; syncs++) {
    if (kills < KILLS && ended > ((kills + 1) * RUNS) / (KILLS + 1)) {
      await service.end("SIGKILL");
      service = await ServiceProcess.start({ dataDirectory });
      client = new ContractClient(quietAssert(t), service.port);
      kills++;
    }
    await progress.more(random.integer(0, 40));
    await sync();
  }
  await producing;
  t.same(refused, []);
  // The service ends finished runs by itself, after their last message.
  for (const status of ["pending", "running", "finalizing"] as const) {
    await client.until("/runs", ({ total }) => total === 0, { query: { status, limit: 1 } });
  }
  while ((await sync()) > 0);

  const rows: SyncedRun[] = [];
  for (let total = 1; rows.length < total; ) {
    const page = await client.get("/runs", { query: { limit: 1000, offset: rows.length } });
    rows.push(...page.runs);
    total = page.total;
  }
  t.equal(rows.length, RUNS);
  const state = ({ id, status, updated_at }: SyncedRun) => `${id} ${status} ${updated_at}`;
  t.same([...copy.seen.values()].map(state).sort(), rows.map(state).sort());
  const { furtherPages } = copy;
  t.ok(furtherPages > 0, "some syncs took several pages");
  t.comment(`${RUNS} runs, ${KILLS} kills, ${syncs} syncs while they were produced, ${furtherPages} further pages`);
  await producer.close();
  await service.end();
});
