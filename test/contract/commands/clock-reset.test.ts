import { spawnSync } from "node:child_process";
import t, { type Test } from "tap";
import { wallClockUs } from "../../../core/service-clock.js";
import { parseTimeUs } from "../../../core/timestamps.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { giveToOther, runAsOther, runsAsOther } from "../../helpers/process/other-account.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../../helpers/store/checked-directory.js";
import { isFullSize } from "../../helpers/test-size.js";

const AHEAD_US = 40 * 86_400_000_000;
const MINUTE_US = 60_000_000;

/** A store that was written while the machine's clock was far ahead. */
async function storeOfWrongClock(t: Test): Promise<{ dataDirectory: string; runId: string }> {
  const dataDirectory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, dataDirectory, { wallUs: () => wallClockUs() + AHEAD_US });
  const raw = await recorder.connect("cell");
  const runId = nextId();
  await raw.accept(programPut());
  await raw.accept({ type: "run.create", id: runId, program_id: PROGRAM_ID });
  await recorder.stop();
  return { dataDirectory, runId };
}

t.test("check --reset-clock takes the clock back: later times are right, and nothing else has changed", async (t) => {
  const { dataDirectory, runId } = await storeOfWrongClock(t);
  const serve = async () => {
    const service = await ServiceProcess.startFor(t, { dataDirectory });
    return { service, client: new ContractClient(t, service.port) };
  };
  const read = async (client: ContractClient, id: string) => client.get("/runs/{run_id}", { path: { run_id: id } });
  const usOf = (text: string) => parseTimeUs(text) as number;

  const before = await serve();
  const { components } = await before.client.get("/health");
  t.match(components.recorder, { status: "degraded", detail: /39 days ahead of the machine's|40 days ahead/ });
  const old = await read(before.client, runId);
  t.equal((await runCommand(["check", "--data", dataDirectory, "--reset-clock"])).code, 1, "not while it is served");
  await before.service.end();

  const plain = await runCommand(["check", "--data", dataDirectory]);
  t.notMatch(plain.stdout, /^clock:/m);
  const reset = await runCommand(["check", "--data", dataDirectory, "--reset-clock"]);
  t.equal(reset.code, 0, reset.stdout);
  // The segment before the new one has no hint file so far: the next start makes it.
  const [clock, hint, log, verdict] = reset.stdout.split("\n");
  t.match(clock, /^clock: the store's clock was set back from 20\d\d-.* to 20\d\d-/);
  t.match(hint, /^hint_missing: /);
  t.match(log, /^log: /);
  t.equal(verdict, "ok");
  const again = await runCommand(["check", "--data", dataDirectory, "--reset-clock", "--json"]);
  t.equal(again.code, 0);
  t.match(JSON.parse(again.stdout), { ok: true, clock: { reset: false } });

  for (const life of isFullSize ? ["first", "second"] : ["first"]) {
    const { service, client } = await serve();
    t.equal((await client.get("/health")).status, "healthy", `${life} life`);
    t.strictSame(await read(client, runId), old, "what was recorded before is as it was");
    const raw = await RawProducer.connect({ path: service.cellSocketPath }, "cell");
    t.equal(raw.welcome.last_run_id !== null && raw.welcome.committed, life === "first" ? 2 : 3, "producers go on");
    const id = nextId();
    await raw.accept({ type: "run.create", id, program_id: PROGRAM_ID });
    const { updated_at } = await read(client, id);
    t.ok(Math.abs(usOf(updated_at) - wallClockUs()) < MINUTE_US, `${updated_at} is now`);
    // The documents tell clients to ask like this if their mark is later than the time of the reset.
    const since = new Date(Date.now() - 60_000).toISOString();
    const { runs } = await client.get("/runs", { query: { updated_since: since } });
    t.same(new Set(runs.map((run) => run.id)).has(id), true);
    raw.socket.destroy();
    t.equal((await service.end()).code, 0);
  }
  t.match(await checkDirectory(dataDirectory), { ok: true });
});

t.test(
  "an account that the store does not belong to resets nothing",
  { skip: process.getuid?.() === 0 ? runsAsOther() : "the tests are not root's" },
  async (t) => {
    const { dataDirectory } = await storeOfWrongClock(t);
    giveToOther(dataDirectory);
    const refused = await runCommand(["check", "--data", dataDirectory, "--reset-clock"]);
    t.equal(refused.code, 1);
    t.match(refused.stderr, /--reset-clock writes to the store: run it as account \d+/);
    t.equal(
      spawnSync("find", [dataDirectory, "-uid", "0"]).stdout.toString(),
      "",
      "it made nothing that the owner cannot write",
    );
    const reset = await runAsOther("dist/http/main.js", ["check", "--data", dataDirectory, "--reset-clock"]);
    t.equal(reset.code, 0, reset.stderr);
    t.match(reset.stdout, /^clock: the store's clock was set back/);
  },
);
