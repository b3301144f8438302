import { createRandom } from "../../core/random.js";
import type { Benchmark, BenchmarkContext } from "../harness/benchmark.js";
import {
  BESIDE_BARE,
  BESIDE_BARE_CONTESTANTS,
  BESIDE_BARE_LOAD,
  BESIDE_BARE_METHOD,
  BESIDE_BARE_ROUNDS,
  ON_OLD_BUILD,
  ON_OLD_BUILD_CONTESTANTS,
  openBesideBareServer,
} from "../load/http/beside-bare-server.js";
import { getBody } from "../load/http/http-load.js";
import type { ServiceProcess } from "../load/http/service-process.js";
import { produceRun, putPrograms, waitUntil } from "../load/run-producer.js";

const STEPS = 12;

/** One run that has ended; gives its path. */
async function fill(service: ServiceProcess, { seed }: BenchmarkContext): Promise<string> {
  const client = await service.connect("bench");
  const [program] = await putPrograms(client, 1, STEPS);
  if (program === undefined) throw new Error("no program was put");
  const id = await produceRun(client, createRandom(seed), {
    program,
    serialNumber: "SN-000001",
    outcome: "completed",
    steps: STEPS,
    events: 8,
    checks: 6,
  });
  await client.close();
  service.assertNothingRefused();
  const path = `/runs/${id}`;
  await waitUntil(
    "the run's end",
    async () => JSON.parse((await getBody(service.url + path)).toString()).status === "completed",
  );
  return path;
}

export const runDetailHot: Benchmark = {
  name: "run-detail-hot",
  measures:
    `GET /runs/{id} of one finished run (${STEPS} steps, event log, metadata), ${BESIDE_BARE_LOAD} The service does ` +
    "all that it does in production (routing, framing checks, trace id, headers; request lines of the log are off by default). " +
    `${BESIDE_BARE_METHOD} The older goal of 0.7 is judged against the peer that sends the body alone, which is the harder one. ` +
    "Where the service takes a newer build of uWebSockets.js than that of 2023 and both load, the service and the peer of the same bytes " +
    "stand beside themselves on that one too, with a copy of the store.",
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: [...BESIDE_BARE_CONTESTANTS, ...ON_OLD_BUILD_CONTESTANTS],
  peer: BESIDE_BARE.bodyOnly,
  goals: [
    {
      kind: "ratio",
      contestant: BESIDE_BARE.service,
      peer: BESIDE_BARE.sameBytes,
      ratio: 0.85,
      direction: "at-least",
      source: "run detail against bare uWebSockets.js sending the same bytes",
    },
    {
      kind: "ratio",
      contestant: BESIDE_BARE.service,
      // Beside the one of the same bytes it could never be missed alone.
      peer: BESIDE_BARE.bodyOnly,
      ratio: 0.7,
      direction: "at-least",
      source: "what the store alone was to reach, against bare uWebSockets.js sending less: the body alone",
    },
    {
      kind: "ratio",
      contestant: BESIDE_BARE.service,
      peer: ON_OLD_BUILD.service,
      ratio: 0.95,
      direction: "at-least",
      source: "a newer build of uWebSockets.js serves as many, within the noise",
    },
  ],
  rounds: BESIDE_BARE_ROUNDS,
  timeoutSeconds: { smoke: 90, full: 600 },
  open: (context) => openBesideBareServer(context, (service) => fill(service, context), true),
};
