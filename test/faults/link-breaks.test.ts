import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../core/random.js";
import { ProducerClient } from "../../workers/cell-link/producer-client.js";
import { BreakingProxy } from "../helpers/link/breaking-proxy.js";
import { nextId, PROGRAM_ID, programPut } from "../helpers/link/link-messages.js";
import { LinkWorkload } from "../helpers/link/link-workload.js";
import { RecorderHarness, temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { sized } from "../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 5);
const PRODUCERS = 3;
/** Runs come one after the other, each with so many messages: a run takes at most 10,000 log lines. */
const RUNS_EACH = sized(1, 40);
const MESSAGES_OF_A_RUN = 500;

t.test("connections that break at random bytes: every message has its effect exactly once", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  // From a few bytes (a hello cut in two) to some hundred messages; a welcome and a message pass often enough to get on.
  const proxy = await BreakingProxy.listen(join(directory, "p.sock"), recorder.ready.cellSocketPath, () =>
    Math.floor(10 ** (1 + 4 * random.next())),
  );
  t.teardown(() => proxy.close());
  const clients = Array.from({ length: PRODUCERS }, (_, at) => {
    const client = new ProducerClient({
      address: { path: proxy.path },
      producer: `producer-${at}`,
      // Fewer bytes than many connections carry. With more, few connections would live to see an answer.
      unacknowledgedLimitBytes: 16_000,
      reconnectFirstMs: 1,
      reconnectLongestMs: 5,
    });
    t.teardown(() => client.destroy());
    return client;
  });
  const [controller] = clients as [ProducerClient];
  await controller.deliver(programPut());
  const workloads: LinkWorkload[] = [];
  for (let i = 0; i < RUNS_EACH; i++) {
    for (const client of clients) {
      const runId = nextId();
      await controller.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID });
      workloads.push(new LinkWorkload(client, runId, createRandom(SEED * 100 + workloads.length)));
    }
    await Promise.all(
      workloads.slice(-PRODUCERS).map(async (workload) => {
        await workload.begin();
        for (let step = 0; step < MESSAGES_OF_A_RUN; step++) await workload.step();
        await workload.end();
      }),
    );
  }
  let lost = 0;
  let doubled = 0;
  for (const workload of workloads) {
    await recorder.until(() => recorder.run(workload.runId).status === "completed");
    const result = workload.verify(t, recorder);
    lost += result.lost;
    doubled += result.doubled;
  }
  const messages = workloads.reduce((sum, workload) => sum + workload.messages, 0);
  t.ok(proxy.broken > 50, "it did break");
  t.equal(lost, 0);
  t.equal(doubled, 0);
  t.strictSame(recorder.refusals, [], "no resend was taken for a new message");
  for (const client of clients) await client.close();
  t.comment(
    `${messages} messages of ${PRODUCERS} producers over ${proxy.connections} connections, ${proxy.broken} broken ` +
      `(${proxy.brokenAnswers} within answers): ${lost} lost, ${doubled} doubled`,
  );
});
