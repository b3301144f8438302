import { Agent, get } from "node:http";
import { json } from "node:stream/consumers";
import t from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_120);
const PROGRAMS = [1, 2, 3].map((n) => `019b76da-a800-7000-8000-00000000000${n}`);
const UNKNOWN_PROGRAM = "019b76da-a800-7000-8000-0000000000ff";
const ROUNDS = 8;
const CHANGES_A_ROUND = 60;
const QUERIES_A_ROUND = 400;

/** What a client can know of a run, kept as plainly as can be. */
interface Row {
  id: string;
  program_id: string;
  serial_number: string | null;
  revision: number;
  status: string;
  quality_status: string | null;
  created_at: string;
  updated_at: string;
  /** Statuses of its checks. */
  checks: string[];
}

const CHECK_STATUSES = ["passed", "failed", "warning", "not_evaluated", "error"] as const;

/** Of a run that neither failed nor was cancelled. */
function outcomeOf(checks: readonly string[]): string | null {
  if (checks.length === 0) return null;
  if (checks.includes("failed")) return "failed";
  return checks.includes("not_evaluated") || checks.includes("error") ? "indeterminate" : "passed";
}

type FetchJson = (path: string) => Promise<Record<string, unknown>>;

/** The runs of a cell as its producer makes and changes them. */
class RunModel {
  readonly rows: Row[] = [];
  readonly wrong: string[] = [];
  readonly #producer: ProducerClient;
  readonly #fetchJson: FetchJson;
  readonly #revisions = new Map<string, number>();
  readonly #changed = new Set<Row>();

  constructor(producer: ProducerClient, fetchJson: FetchJson) {
    this.#producer = producer;
    this.#fetchJson = fetchJson;
  }

  async create(programId: string, serial: string | null): Promise<Row> {
    const id = this.#producer.nextRunId();
    await this.#producer.send({ type: "run.create", id, program_id: programId, serial_number: serial });
    const revision = serial === null ? 1 : (this.#revisions.get(serial) ?? 0) + 1;
    if (serial !== null) this.#revisions.set(serial, revision);
    const row = { id, program_id: programId, serial_number: serial, revision, created_at: "", updated_at: "" };
    this.rows.push({ ...row, status: "pending", quality_status: null, checks: [] });
    return this.#change(this.rows.at(-1) as Row);
  }

  #change(row: Row): Row {
    this.#changed.add(row);
    return row;
  }

  async changeAny(random: Random): Promise<void> {
    const open = this.rows.filter((row) => row.status === "pending" || row.status === "running");
    if (open.length === 0 || random.chance(0.4)) {
      const serial = random.chance(0.7) ? `SN ${random.integer(1, 40)}` : null;
      await this.create(random.pick(PROGRAMS), serial);
      return;
    }
    const row = this.#change(random.pick(open));
    const kind = random.integer(1, 8);
    if (kind === 1) {
      await this.#producer.send({ type: "run.cancel", id: row.id });
      Object.assign(row, { status: "cancelled", quality_status: null });
    } else if (kind === 2) {
      await this.#producer.send({ type: "run.fail", id: row.id, error_message: "bent" });
      Object.assign(row, { status: "failed", quality_status: null });
    } else if (kind > 5 && row.status === "running") {
      const status = random.pick(CHECK_STATUSES);
      await this.#producer.send({ type: "check.add", run_id: row.id, check: { name: "gap", status } });
      row.checks.push(status);
      row.quality_status = outcomeOf(row.checks);
    } else if (kind === 3) {
      await this.#producer.send({ type: "event.add", run_id: row.id, event_type: "note", data: {} });
    } else if (row.status === "pending") {
      await this.#producer.send({ type: "run.start", id: row.id });
      row.status = "running";
    } else {
      await this.#producer.send({ type: "run.finish", id: row.id });
      row.status = "completed";
    }
  }

  /** Waits until the view shows all changes, and learns the times that only the service knows. */
  async learn(): Promise<void> {
    const last = await this.create(PROGRAMS[0] as string, null);
    await this.#detailWhen(last.id, ({ status }) => status === last.status);
    for (const row of this.#changed) {
      const run = await this.#detailWhen(row.id, ({ status }) => status === row.status);
      if (run.quality_status !== row.quality_status) this.wrong.push(`${row.id} is ${run.quality_status}`);
      const { quality_report: report } = (await this.#fetchJson(`/runs/${row.id}/quality-report`)) as {
        quality_report: { status: string; final: boolean } | null;
      };
      if ((report?.status ?? null) !== row.quality_status)
        this.wrong.push(`${row.id}: its report is ${report?.status}`);
      if (report !== null && report.final !== (row.status === "completed"))
        this.wrong.push(`${row.id}: ${report.final}`);
      row.created_at = run.created_at as string;
      row.updated_at = run.updated_at as string;
    }
    this.#changed.clear();
  }

  /** The run's detail, once it is as it should be: a commit is acknowledged a moment before the view shows it. */
  async #detailWhen(id: string, isRight: (run: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    for (;;) {
      const run = await this.#fetchJson(`/runs/${id}`);
      if (isRight(run)) return run;
    }
  }
}

interface ListQuery {
  /** The list of this program, or of all runs. */
  ofProgram: string | undefined;
  program_id: string | undefined;
  serial_number: string | undefined;
  status: string | undefined;
  quality_status: string | undefined;
  updated_since: string | undefined;
  offset: number | undefined;
  limit: number | undefined;
}

function randomQuery(random: Random, rows: readonly Row[]): ListQuery {
  const ofProgram = random.chance(0.2) ? random.pick(PROGRAMS) : undefined;
  const isAllOf = ofProgram === undefined;
  const statuses = ["pending", "running", "completed", "failed", "cancelled", "exploded"];
  const outcomes = ["passed", "failed", "indeterminate", "none", "null"];
  return {
    ofProgram,
    program_id: isAllOf && random.chance(0.3) ? random.pick([...PROGRAMS, UNKNOWN_PROGRAM]) : undefined,
    serial_number: random.chance(0.3) ? `SN ${random.integer(1, 42)}` : undefined,
    status: isAllOf && random.chance(0.3) ? random.pick(statuses) : undefined,
    quality_status: random.chance(0.3) ? random.pick(outcomes) : undefined,
    updated_since: random.chance(0.3) ? random.pick(rows).updated_at : undefined,
    offset: random.chance(0.5) ? random.integer(0, rows.length + 3) : undefined,
    limit: random.chance(0.7) ? random.pick([1, 7, 50, 1000]) : undefined,
  };
}

function pathOf({ ofProgram, ...filters }: ListQuery): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) parameters.set(name, String(value));
  return `${ofProgram === undefined ? "" : `/programs/${ofProgram}`}/runs?${parameters}`;
}

function expectedPage(query: ListQuery, newestFirst: readonly Row[]): object {
  const { ofProgram, program_id, serial_number, status, quality_status, updated_since } = query;
  const program = ofProgram ?? program_id;
  const matching = newestFirst.filter(
    (row) =>
      (program === undefined || row.program_id === program) &&
      (serial_number === undefined || row.serial_number === serial_number) &&
      (status === undefined || row.status === status) &&
      (quality_status === undefined || (row.quality_status ?? "none") === quality_status) &&
      (updated_since === undefined || row.updated_at > updated_since),
  );
  const { limit = ofProgram === undefined ? 50 : 100, offset = 0 } = query;
  return { total: matching.length, limit, offset, runs: matching.slice(offset, offset + limit).map(rowText) };
}

t.test(`list queries over the wire against a plain model, at changing data (seed ${seed})`, async (t) => {
  const random = createRandom(seed);
  const service = await ServiceProcess.start();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "lists" });
  t.teardown(async () => {
    agent.destroy();
    producer.destroy();
    await service.dispose();
  });
  const fetchJson: FetchJson = (path) =>
    new Promise((resolve, reject) => {
      const request = get({ host: "127.0.0.1", port: service.port, path, agent }, (response) => {
        json(response).then((body) => resolve(body as Record<string, unknown>), reject);
      });
      request.on("error", reject);
    });
  await producer.welcomed();
  for (const id of PROGRAMS) {
    const program = { id, name: "p", status: "active", steps: [{ type: "wait" }] };
    await producer.deliver({ type: "program.put", program });
  }
  const model = new RunModel(producer, fetchJson);
  const { rows, wrong } = model;
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < CHANGES_A_ROUND; i++) await model.changeAny(random);
    await model.learn();
    const newestFirst = [...rows].reverse();
    t.equal(new Set(rows.map((row) => row.updated_at)).size, rows.length, "no two runs share an updated_at");
    for (let i = 0; i < QUERIES_A_ROUND; i++) {
      const query = randomQuery(random, rows);
      const { total, limit, offset, runs } = await fetchJson(pathOf(query));
      const found = JSON.stringify({ total, limit, offset, runs: (runs as Row[])?.map(rowText) });
      const expected = JSON.stringify(expectedPage(query, newestFirst));
      if (found !== expected) wrong.push(`${pathOf(query)}: ${found.slice(0, 400)}, not ${expected.slice(0, 400)}`);
    }
  }
  t.strictSame(wrong.slice(0, 3), []);
  t.comment(`${rows.length} runs, ${ROUNDS * QUERIES_A_ROUND} list queries over HTTP: ${wrong.length} mismatches`);
});

function rowText(row: Row): string {
  const { id, program_id, serial_number, revision, status, quality_status, created_at, updated_at } = row;
  return [id, program_id, serial_number, revision, status, quality_status, created_at, updated_at].join(" ");
}
