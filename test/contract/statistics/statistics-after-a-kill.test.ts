import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { shownRuns } from "../../helpers/statistics/shown-runs.js";
import { differenceOf, modelStatistics } from "../../helpers/statistics/statistics-model.js";
import { until } from "../../helpers/until.js";

const SCRIPT = new URL("../../helpers/process/small-segments-service.js", import.meta.url).pathname;
const PROGRAM = "019b76da-a800-7000-8000-000000000001";
const RUNS = 60;
const STATISTICS = `/programs/${PROGRAM}/statistics`;
const PATHS = [STATISTICS, ...["csv", "ndjson", "dfq"].map((format) => `/programs/${PROGRAM}/checks.${format}`)];

/** Asks for the statistics again and again. @returns the answers, of which no two are the same */
async function askMeanwhile(client: ContractClient, recorded: Promise<void>): Promise<string[]> {
  const answers = new Set<string>();
  let isOver = false;
  const over = recorded.finally(() => (isOver = true));
  while (!isOver) answers.add((await client.raw("GET", STATISTICS)).body.toString());
  await over;
  return [...answers];
}

/** Records runs one after the other. Whoever can read a run's end can read it in the statistics. */
async function record(t: Test, producer: ProducerClient, client: ContractClient): Promise<void> {
  const random = createRandom(36);
  for (let nth = 0; nth < RUNS; nth++) {
    const id = producer.nextRunId();
    await producer.deliver({
      type: "run.create",
      id,
      program_id: PROGRAM,
      serial_number: `SN ${random.integer(0, 40)}`,
    });
    await producer.deliver({ type: "run.start", id });
    for (const name of ["bore", "flatness"]) {
      const value = random.normal() / 100;
      const check = {
        name,
        status: value > 0.015 ? "failed" : "passed",
        value,
        nominal: 0,
        delta: value,
        threshold: 0.02,
      } as const;
      await producer.deliver({ type: "check.add", run_id: id, check });
    }
    if (random.chance(0.3)) await producer.deliver({ type: "defect.add", run_id: id, defect: { type: "dent" } });
    if (random.chance(0.1)) await producer.deliver({ type: "run.fail", id, error_message: "stop" });
    else await producer.deliver({ type: "run.finish", id });
    const { completed_at } = await client.until("/runs/{run_id}", ({ completed_at: time }) => time != null, {
      path: { run_id: id },
    });
    if (nth % 10 !== 9) continue;
    const { runs } = await client.get("/programs/{program_id}/statistics", { path: { program_id: PROGRAM } });
    t.equal(runs.completed + runs.failed, nth + 1, `run ${nth + 1}, which ended at ${completed_at}`);
  }
}

t.test("the same bytes after a kill, after a restart, and with everything derived deleted or damaged", async (t) => {
  let service = await ServiceProcess.start({ script: SCRIPT });
  t.teardown(() => service.dispose());
  const { dataDirectory } = service;
  const findings = `${dataDirectory}/findings`;
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "cell" });
  await producer.welcomed();
  await producer.deliver({ type: "program.put", program: { id: PROGRAM, name: "Disc", status: "active", steps: [] } });
  const client = new ContractClient(t, service.port);
  const meanwhile = await askMeanwhile(new ContractClient(t, service.port), record(t, producer, client));
  const before = await Promise.all(PATHS.map(async (path) => (await client.raw("GET", path)).body));
  const shown = await shownRuns(client, PROGRAM);
  const model = modelStatistics(shown, { programId: PROGRAM });
  t.equal(
    differenceOf(JSON.parse((before[0] as Buffer).toString()), model),
    undefined,
    "the figures of all that is shown",
  );
  t.ok(meanwhile.length > 5, `${meanwhile.length} different answers while runs were recorded`);
  for (const answer of meanwhile.map((text) => JSON.parse(text) as typeof model)) {
    const { completed, failed } = answer.runs;
    const then = modelStatistics(shown.slice(0, completed + failed), { programId: PROGRAM });
    t.equal(differenceOf(answer, then), undefined, `after ${completed + failed} runs`);
  }
  const isSame = async (what: string): Promise<void> => {
    const asked = new ContractClient(t, service.port);
    for (const [at, path] of PATHS.entries()) {
      const { body } = await asked.raw("GET", path);
      t.ok(body.equals(before[at] as Buffer), `${what}: ${path}`);
    }
  };
  await producer.close();
  await service.end("SIGKILL");
  service = await ServiceProcess.start({ script: SCRIPT, dataDirectory });
  await isSame("after a kill");
  await until("a file of findings", () => existsSync(findings) && readdirSync(findings).length > 0);
  await service.end();
  rmSync(findings, { recursive: true });
  service = await ServiceProcess.start({ script: SCRIPT, dataDirectory });
  await isSame("with what is derived deleted");
  await service.end();
  const random = createRandom(37);
  const changes = {
    damaged: () => Buffer.from("damaged"),
    "flipped in one bit": (bytes: Buffer) => {
      const at = random.integer(0, bytes.length - 1);
      bytes[at] = (bytes[at] as number) ^ (1 << random.integer(0, 7));
      return bytes;
    },
  };
  for (const [what, change] of Object.entries(changes)) {
    const files = readdirSync(findings).map((name) => join(findings, name));
    t.ok(files.length > 0, `${files.length} files`);
    for (const path of files) writeFileSync(path, change(readFileSync(path)));
    const { code, stdout } = await runCommand(["check", "--data", dataDirectory]);
    t.equal(code, 0, `check has nothing to say of files that are ${what}: ${stdout}`);
    service = await ServiceProcess.start({ script: SCRIPT, dataDirectory });
    await isSame(`with what is derived ${what}`);
    await service.end();
  }
});
