import type { Benchmark } from "../../harness/benchmark.js";
import { fillRuns } from "../../load/filled-runs.js";
import {
  BESIDE_BARE,
  BESIDE_BARE_CONTESTANTS,
  BESIDE_BARE_LOAD,
  BESIDE_BARE_METHOD,
  BESIDE_BARE_ROUNDS,
  openBesideBareServer,
} from "../../load/http/beside-bare-server.js";

const RUNS = { smoke: 100, full: 1_000 };
const PATH = "/runs?limit=50";

export const listPageHot: Benchmark = {
  name: "list-page-hot",
  measures:
    `GET ${PATH} at 1,000 runs, ${BESIDE_BARE_LOAD} No run changes meanwhile, so that the service makes the page once and finds it by its ` +
    `query from then on (what making one costs is shown by list-pages-10k). ${BESIDE_BARE_METHOD}`,
  metric: { name: "throughput", unit: "req/s", better: "higher" },
  contestants: BESIDE_BARE_CONTESTANTS,
  peer: BESIDE_BARE.bodyOnly,
  goals: [
    {
      kind: "ratio",
      contestant: BESIDE_BARE.service,
      peer: BESIDE_BARE.sameBytes,
      ratio: 0.6,
      direction: "at-least",
      source: "list pages against bare uWebSockets.js sending the same bytes",
    },
  ],
  rounds: BESIDE_BARE_ROUNDS,
  timeoutSeconds: { smoke: 120, full: 600 },
  open: (context) =>
    openBesideBareServer(context, async (service) => {
      await fillRuns(service, context, RUNS[context.size]);
      return PATH;
    }),
};
