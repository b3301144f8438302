import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import t, { type Test } from "tap";
import { createRandom } from "../../core/random.js";
import { ProducerClient } from "../../workers/cell-link/producer-client.js";
import { nextId, PROGRAM_ID, programPut } from "../helpers/link/link-messages.js";
import { LinkWorkload } from "../helpers/link/link-workload.js";
import { RecorderHarness, temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { checkDirectory } from "../helpers/store/checked-directory.js";
import { sized } from "../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 7);
const CYCLES = sized(4, 300);
const PRODUCERS = 2;
const MESSAGES_A_RUN = 4_000;

interface Ready {
  ready: boolean;
  cutBytes: number;
  corruptionCount: number;
}

async function startProcess(directory: string): Promise<{ child: ChildProcess; ready: Ready }> {
  const script = new URL("../helpers/recorder/recorder-process.js", import.meta.url);
  const child = spawn(process.execPath, [script.pathname, directory], { stdio: ["pipe", "pipe", "inherit"] });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("exit", (code) => reject(new Error(`the recorder ended with ${code} before it was ready`)));
  });
  const ready = JSON.parse(line) as Ready;
  if (!ready.ready) throw new Error(line);
  return { child, ready };
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => child.once("exit", () => resolve()));
}

function acknowledgedOf(workloads: readonly LinkWorkload[]): number {
  return workloads.reduce((sum, workload) => sum + workload.acknowledged.size, 0);
}

t.test("kill -9 in cycles: nothing acknowledged is lost, nothing is doubled", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  const directory = temporaryDirectory(t);
  let process = await startProcess(directory);
  t.teardown(() => process.child.kill("SIGKILL"));
  const clients = Array.from({ length: PRODUCERS }, (_, at) => {
    const client = new ProducerClient({
      address: { path: join(directory, "cell.sock") },
      producer: `producer-${at}`,
      unacknowledgedLimitBytes: 1_000_000,
      reconnectFirstMs: 2,
      reconnectLongestMs: 10,
    });
    t.teardown(() => client.destroy());
    return client;
  });
  const [controller] = clients as [ProducerClient];
  await controller.deliver(programPut());
  const workloads: LinkWorkload[] = [];
  const acknowledged = () => acknowledgedOf(workloads);
  let isOver = false;
  let onAcknowledged = (): void => {};
  // One run after the other, each well within what a run may hold.
  const work = async (client: ProducerClient): Promise<void> => {
    while (!isOver) {
      const runId = nextId();
      await controller.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID });
      const workload = new LinkWorkload(client, runId, createRandom(SEED * 100 + workloads.length));
      workload.onAcknowledged = () => onAcknowledged();
      workloads.push(workload);
      await workload.begin();
      while (!isOver && workload.messages < MESSAGES_A_RUN) await workload.step();
      await workload.end();
    }
  };
  const working = Promise.all(clients.map(work));
  let cutBytes = 0;
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const target = acknowledged() + random.integer(1, 60);
    await new Promise<void>((resolve) => {
      onAcknowledged = () => {
        if (acknowledged() >= target) resolve();
      };
    });
    const gone = ended(process.child);
    process.child.kill("SIGKILL");
    await gone;
    // The lock went with its process: the next one has the directory at once.
    process = await startProcess(directory);
    cutBytes += process.ready.cutBytes;
    t.equal(process.ready.corruptionCount, 0, "a kill is no corruption");
  }
  isOver = true;
  await working;
  for (const client of clients) await client.close();
  const gone = ended(process.child);
  process.child.stdin?.end();
  await gone;
  t.equal(process.child.exitCode, 0, "a clean end");

  await isWhole(t, directory, workloads, cutBytes);
});

/** The store, by check and by what was acknowledged. */
async function isWhole(t: Test, folder: string, workloads: readonly LinkWorkload[], cutBytes: number): Promise<void> {
  const { ok, findings } = await checkDirectory(folder);
  // A kill may come before the hint file of a full segment is written: the next start makes it.
  t.same(
    findings.filter(({ code }) => code !== "hint_missing"),
    [],
  );
  t.equal(ok, true, "check finds the store whole: no gap, no damage");
  const recorder = await RecorderHarness.start(t, folder);
  let lost = 0;
  let doubled = 0;
  for (const workload of workloads) {
    const result = workload.verify(t, recorder);
    lost += result.lost;
    doubled += result.doubled;
  }
  t.equal(lost, 0);
  t.equal(doubled, 0);
  t.strictSame(recorder.refusals, []);
  const messages = workloads.reduce((sum, workload) => sum + workload.messages, 0);
  t.comment(
    `${CYCLES} kills, ${workloads.length} runs, ${messages} messages, ${acknowledgedOf(workloads)} acknowledged events, ${cutBytes} bytes of torn tails: ${lost} lost, ${doubled} doubled, ${findings.length} findings of check`,
  );
}
