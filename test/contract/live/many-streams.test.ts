import { setTimeout as pause } from "node:timers/promises";
import t, { type Test } from "tap";
import type { JsonObject } from "../../../core/json/json.js";
import { createRandom, type Random } from "../../../core/random.js";
import type { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { FRONTS_HERE } from "../../helpers/http/fronts-here.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { EventStream } from "../../helpers/live/event-stream.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { quietAssert } from "../../helpers/quiet-assert.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { sized } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_126);
const STREAMS = sized(24, 200);
const RUNS = sized(120, 3_000);
const KILLS = sized(1, 5);
const LANES = 8;
const PROGRAMS = [PROGRAM_ID, PROGRAM_ID.replace(/.$/, "7")];
const POLL_MS = 20;
/** A client that still lacks the right rows after this time has missed something. */
const CATCH_UP_MS = 60_000;
const SERIALS = ["SN-1", "SN-2", "SN-3"];

interface Row {
  id: string;
  program_id: string;
  status: string;
  serial_number?: string | null;
  updated_at: string;
}
type Filter = { program_id?: string; status?: string; serial_number?: string };

/** All fields: a row that comes by a stream is the row of the list. */
const shown = (row: Row) => JSON.stringify(row);
/** Without a base URL, the links in a row would contain the port, which is another one after a kill. */
const SERVE = ["serve", "--base-url", "http://cell"];

function matches(row: Row, filter: Filter): boolean {
  return Object.entries(filter).every(([name, value]) => row[name as keyof Row] === value);
}

async function allRows(client: ContractClient, query: Filter = {}): Promise<Row[]> {
  const rows: Row[] = [];
  for (let total = 1; rows.length < total; ) {
    const page = await client.get("/runs", { query: { ...query, limit: 1000, offset: rows.length } as never });
    rows.push(...page.runs);
    total = page.runs.length === 0 ? 0 : page.total;
  }
  return rows;
}

/** A client as the guide tells to write one: connect, wait for `ready`, list, then apply. */
class Follower {
  readonly filter: Filter;
  readonly rows = new Map<string, Row>();
  stalls = 0;
  connects = 0;
  readonly #random: Random;
  readonly #place: { service: ServiceProcess; client: ContractClient };
  #mark: string | undefined;
  #stream: EventStream | undefined;
  #isOver = false;

  constructor(random: Random, place: { service: ServiceProcess; client: ContractClient }) {
    this.#random = random;
    this.#place = place;
    this.filter = {
      ...(random.chance(0.3) && { program_id: random.pick(PROGRAMS) }),
      ...(random.chance(0.5) && { status: random.pick(["pending", "running", "finalizing", "completed", "failed"]) }),
      ...(random.chance(0.3) && { serial_number: random.pick(SERIALS) }),
    };
  }

  get mark(): string | undefined {
    return this.#mark;
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      const query = new URLSearchParams(this.filter).toString();
      const headers: Record<string, string> = this.#mark === undefined ? {} : { "Last-Event-ID": this.#mark };
      try {
        this.#stream = await EventStream.open({ port: this.#place.service.port, query: `?${query}`, headers });
        this.connects++;
        await this.#follow(this.#stream);
      } catch {
        // The service was killed, or we have left. It is there again before long.
        await pause(POLL_MS);
      }
    }
  }

  async #follow(stream: EventStream): Promise<void> {
    let applied = 0;
    for (;;) {
      await stream.until(({ events }) => events.length > applied);
      for (; applied < stream.events.length; applied++) {
        const { event, id, data } = stream.events[applied] as EventStream["events"][number];
        if ((event === "ready" && this.#mark === undefined) || event === "reset") await this.#list();
        if (event === "run") this.#apply(JSON.parse(data) as Row);
        this.#mark = id;
      }
      if (this.#random.chance(0.05)) stream.close();
      else if (this.#random.chance(0.1)) await this.#stall(stream);
    }
  }

  async #list(): Promise<void> {
    const rows = await allRows(this.#place.client, this.filter);
    this.rows.clear();
    for (const row of rows) this.#apply(row);
  }

  #apply(row: Row): void {
    const known = this.rows.get(row.id);
    if (known !== undefined && known.updated_at > row.updated_at) return;
    if (matches(row, this.filter)) this.rows.set(row.id, row);
    else this.rows.delete(row.id);
  }

  async #stall(stream: EventStream): Promise<void> {
    this.stalls++;
    stream.response.pause();
    for (let turns = this.#random.integer(1, 200); turns > 0; turns--) await new Promise((go) => setImmediate(go));
    stream.response.resume();
  }

  end(): void {
    this.#isOver = true;
    this.#stream?.close();
  }
}

async function produce(producer: ProducerClient, random: Random): Promise<void> {
  const id = producer.nextRunId();
  const say = (message: JsonObject) => producer.deliver(message);
  const serial = random.pick([null, ...SERIALS]);
  await say({
    ...{ type: "run.create", id, program_id: random.pick(PROGRAMS) },
    ...(serial !== null && { serial_number: serial }),
  });
  await say({ type: "run.start", id });
  for (let events = random.integer(0, 4); events > 0; events--) {
    await say({ type: "event.add", run_id: id, event_type: "note", data: { events } });
  }
  const end = random.pick(["run.finish", "run.finish", "run.fail", "run.cancel"]);
  await say({ type: end, id, ...(end === "run.fail" && { error_message: "no part" }) });
}

async function endWithTheRows(t: Test, environment: Record<string, string>): Promise<void> {
  const random = createRandom(seed);
  const dataDirectory = temporaryDirectory(t);
  const options = { args: SERVE, dataDirectory, environment, descriptorLimit: "2048" };
  const start = () => ServiceProcess.startFor(t, options);
  const service = await start();
  const place = { service, client: new ContractClient(quietAssert(t), service.port) };
  const producer = service.producerFor(t);
  for (const id of PROGRAMS) await producer.deliver(programPut(id));

  let begun = 0;
  let kills = 0;
  const followers = Array.from(
    { length: STREAMS },
    () => new Follower(createRandom(random.integer(0, 2 ** 31)), place),
  );
  const following = followers.map((follower) => follower.run());
  t.teardown(() => Promise.all([...followers.map((follower) => follower.end()), ...following]));
  const lane = async (): Promise<void> => {
    while (begun++ < RUNS) await produce(producer, random);
  };
  const killing = async (): Promise<void> => {
    while (kills < KILLS) {
      await place.client.until("/runs", ({ total }) => total > ((kills + 1) * RUNS) / (KILLS + 1), {
        query: { limit: 1 },
      });
      await place.service.end("SIGKILL");
      place.service = await start();
      place.client = new ContractClient(quietAssert(t), place.service.port);
      kills++;
    }
  };
  await Promise.all([killing(), ...Array.from({ length: LANES }, lane)]);
  for (const status of ["pending", "running", "finalizing"] as const) {
    await place.client.until("/runs", ({ total }) => total === 0, { query: { status, limit: 1 } });
  }

  const rows = await allRows(place.client);
  t.equal(rows.length, RUNS);
  let missed = 0;
  const deadlineMs = performance.now() + CATCH_UP_MS;
  for (const follower of followers) {
    const expected = rows
      .filter((row) => matches(row, follower.filter))
      .map(shown)
      .sort();
    const has = () => [...follower.rows.values()].map(shown).sort();
    while (has().join() !== expected.join() && performance.now() < deadlineMs) await pause(POLL_MS);
    if (has().join() !== expected.join()) {
      missed++;
      t.strictSame(has(), expected, JSON.stringify(follower.filter));
    }
  }
  t.equal(missed, 0);
  const sum = (of: (follower: Follower) => number) => followers.reduce((total, one) => total + of(one), 0);
  t.comment(
    `${RUNS} runs, ${kills} kills, ${sum((one) => one.connects)} connects, ${sum((one) => one.stalls)} stalls, ${missed} missed`,
  );
  await producer.close();
}

for (const { name, environment } of FRONTS_HERE) {
  t.test(
    `${STREAMS} streams end with the rows that a list gives, through stalls and kills (${name}, seed ${seed})`,
    (t) => endWithTheRows(t, environment),
  );
}
