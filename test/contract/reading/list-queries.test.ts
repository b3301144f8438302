import { Agent, get } from "node:http";
import t from "tap";
import { createRandom } from "../../../core/random.js";
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
}

const CHECK_STATUSES = ["passed", "failed", "warning", "not_evaluated", "error"] as const;

/** Of a run that neither failed nor was cancelled. */
function outcomeOf(checks: readonly string[]): string | null {
  if (checks.length === 0) return null;
  if (checks.includes("failed")) return "failed";
  return checks.includes("not_evaluated") || checks.includes("error") ? "indeterminate" : "passed";
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
  const fetchJson = (path: string) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const request = get({ host: "127.0.0.1", port: service.port, path, agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve(JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>));
        response.on("error", reject);
      });
      request.on("error", reject);
    });
  /** The run's detail, once it is as it should be: a commit is acknowledged a moment before the view shows it. */
  const detailWhen = async (id: string, isRight: (run: Record<string, unknown>) => boolean) => {
    for (;;) {
      const run = await fetchJson(`/runs/${id}`);
      if (isRight(run)) return run;
    }
  };

  await producer.welcomed();
  for (const id of PROGRAMS) {
    const program = { id, name: "p", status: "active", steps: [{ type: "wait" }] };
    await producer.deliver({ type: "program.put", program });
  }
  const model: Row[] = [];
  const revisions = new Map<string, number>();
  const changed = new Set<Row>();
  const checksOf = new Map<string, string[]>();

  const createRun = async () => {
    const id = producer.nextRunId();
    const serial = random.chance(0.7) ? `SN ${random.integer(1, 40)}` : null;
    const programId = random.pick(PROGRAMS);
    await producer.send({ type: "run.create", id, program_id: programId, serial_number: serial });
    const revision = serial === null ? 1 : (revisions.get(serial) ?? 0) + 1;
    if (serial !== null) revisions.set(serial, revision);
    const row = { id, program_id: programId, serial_number: serial, revision, created_at: "", updated_at: "" };
    model.push({ ...row, status: "pending", quality_status: null });
    changed.add(model.at(-1) as Row);
  };
  const changeRun = async () => {
    const open = model.filter((row) => row.status === "pending" || row.status === "running");
    if (open.length === 0 || random.chance(0.4)) return createRun();
    const row = random.pick(open);
    changed.add(row);
    const kind = random.integer(1, 8);
    if (kind === 1) {
      await producer.send({ type: "run.cancel", id: row.id });
      row.status = "cancelled";
      row.quality_status = null;
    } else if (kind === 2) {
      await producer.send({ type: "run.fail", id: row.id, error_message: "bent" });
      row.status = "failed";
      row.quality_status = null;
    } else if (kind > 5 && row.status === "running") {
      const status = random.pick(CHECK_STATUSES);
      await producer.send({ type: "check.add", run_id: row.id, check: { name: "gap", status } });
      checksOf.set(row.id, [...(checksOf.get(row.id) ?? []), status]);
      row.quality_status = outcomeOf(checksOf.get(row.id) as string[]);
    } else if (kind === 3) {
      await producer.send({ type: "event.add", run_id: row.id, event_type: "note", data: {} });
    } else if (row.status === "pending") {
      await producer.send({ type: "run.start", id: row.id });
      row.status = "running";
    } else {
      await producer.send({ type: "run.finish", id: row.id });
      row.status = "completed";
    }
    return undefined;
  };
  /** Waits until the view shows the round, and learns the times that only the service knows. */
  const wrong: string[] = [];
  const learn = async () => {
    const marker = producer.nextRunId();
    await producer.deliver({ type: "run.create", id: marker, program_id: PROGRAMS[0] as string });
    const row = { id: marker, program_id: PROGRAMS[0] as string, serial_number: null, revision: 1 };
    model.push({ ...row, status: "pending", quality_status: null, created_at: "", updated_at: "" });
    changed.add(model.at(-1) as Row);
    await detailWhen(marker, (run) => run.status === "pending");
    for (const one of changed) {
      const run = await detailWhen(one.id, ({ status }) => status === one.status);
      if (run.quality_status !== one.quality_status) wrong.push(`${one.id} is ${run.quality_status}`);
      const { quality_report: report } = (await fetchJson(`/runs/${one.id}/quality-report`)) as {
        quality_report: { status: string; final: boolean } | null;
      };
      if ((report?.status ?? null) !== one.quality_status) wrong.push(`${one.id}: its report is ${report?.status}`);
      if (report !== null && report.final !== (one.status === "completed")) wrong.push(`${one.id}: ${report.final}`);
      one.created_at = run.created_at as string;
      one.updated_at = run.updated_at as string;
    }
    changed.clear();
  };

  let queries = 0;
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < CHANGES_A_ROUND; i++) await changeRun();
    await learn();
    const newestFirst = [...model].reverse();
    t.equal(new Set(model.map((row) => row.updated_at)).size, model.length, "no two runs share an updated_at");
    for (let i = 0; i < QUERIES_A_ROUND; i++) {
      const ofProgram = random.chance(0.2);
      const program = ofProgram || random.chance(0.3) ? random.pick([...PROGRAMS, UNKNOWN_PROGRAM]) : undefined;
      if (ofProgram && program === UNKNOWN_PROGRAM) continue;
      const serial = random.chance(0.3) ? `SN ${random.integer(1, 42)}` : undefined;
      const statuses = ["pending", "running", "completed", "failed", "cancelled", "exploded"];
      const status = !ofProgram && random.chance(0.3) ? random.pick(statuses) : undefined;
      const outcomes = ["passed", "failed", "indeterminate", "none", "null"];
      const outcome = random.chance(0.3) ? random.pick(outcomes) : undefined;
      const since = random.chance(0.3) ? random.pick(model).updated_at : undefined;
      const offset = random.chance(0.5) ? random.integer(0, model.length + 3) : undefined;
      const limit = random.chance(0.7) ? random.pick([1, 7, 50, 1000]) : undefined;
      const parameters = new URLSearchParams();
      if (program !== undefined && !ofProgram) parameters.set("program_id", program);
      if (serial !== undefined) parameters.set("serial_number", serial);
      if (status !== undefined) parameters.set("status", status);
      if (outcome !== undefined) parameters.set("quality_status", outcome);
      if (since !== undefined) parameters.set("updated_since", since);
      if (offset !== undefined) parameters.set("offset", String(offset));
      if (limit !== undefined) parameters.set("limit", String(limit));
      const path = `${ofProgram ? `/programs/${program}` : ""}/runs?${parameters}`;

      const matching = newestFirst.filter(
        (row) =>
          (program === undefined || row.program_id === program) &&
          (serial === undefined || row.serial_number === serial) &&
          (status === undefined || row.status === status) &&
          (outcome === undefined || (row.quality_status ?? "none") === outcome) &&
          (since === undefined || row.updated_at > since),
      );
      const usedLimit = limit ?? (ofProgram ? 100 : 50);
      const usedOffset = offset ?? 0;
      const page = await fetchJson(path);
      queries++;
      const found = JSON.stringify({
        total: page.total,
        limit: page.limit,
        offset: page.offset,
        runs: (page.runs as Row[])?.map(rowText),
      });
      const expected = JSON.stringify({
        total: matching.length,
        limit: usedLimit,
        offset: usedOffset,
        runs: matching.slice(usedOffset, usedOffset + usedLimit).map(rowText),
      });
      if (found !== expected) wrong.push(`${path}: ${found.slice(0, 400)}, not ${expected.slice(0, 400)}`);
    }
  }
  t.strictSame(wrong.slice(0, 3), []);
  t.comment(`${model.length} runs, ${queries} list queries over HTTP: ${wrong.length} mismatches`);
});

function rowText(row: Row): string {
  const { id, program_id, serial_number, revision, status, quality_status, created_at, updated_at } = row;
  return [id, program_id, serial_number, revision, status, quality_status, created_at, updated_at].join(" ");
}
