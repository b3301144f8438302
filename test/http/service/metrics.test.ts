import t from "tap";
import { LiveClients } from "../../../http/live/live-clients.js";
import { Metrics } from "../../../http/service/metrics.js";
import { RequestDurations } from "../../../http/service/request-durations.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";

const LOG_BYTES = 4_096;
const FREE_BYTES = 8_192;

/** Series whose metric begins with `inspection_`, with their values. */
function seriesOf(text: string): Map<string, string> {
  const lines = text.split("\n").filter((line) => line.startsWith("inspection_"));
  return new Map(lines.map((line) => line.split(" ") as [string, string]));
}

t.test("what the disk does not say is left out of /metrics and told, and the rest is served", async (t) => {
  let logFault: Error | null = null;
  let roomFault: Error | null = null;
  const metrics = new Metrics({
    requests: new RequestDurations(),
    recorder: async () => undefined,
    front: () => ({ openRequests: 1, heldBytes: 0 }),
    logBytes: async () => {
      if (logFault !== null) throw logFault;
      return LOG_BYTES;
    },
    freeBytes: async () => {
      if (roomFault !== null) throw roomFault;
      return FREE_BYTES;
    },
    runs: () => 7,
    artefacts: () => ({ running: 0, waitingClients: 0, waitingBackground: 0, tasks: [] }),
    madeBytes: () => 0,
    shipper: () => undefined,
    live: () => new LiveClients({ limit: 1 }).figures,
    components: () => [],
  });
  const answers = async (log: Error | null, room: Error | null) => {
    [logFault, roomFault] = [log, room];
    const series = seriesOf(await metrics.text());
    t.equal(series.get("inspection_runs"), "7", "the rest");
    const success = (metric: string) => series.get(`inspection_metric_read_success{metric="${metric}"}`);
    return [
      ...[series.get("inspection_log_bytes"), success("inspection_log_bytes")],
      ...[series.get("inspection_disk_free_bytes"), success("inspection_disk_free_bytes")],
    ];
  };
  const eio = new FileSystemError("EIO", "stat", "/data/meta/0000000000000001.seg");
  t.same(await answers(null, null), [String(LOG_BYTES), "1", String(FREE_BYTES), "1"]);
  t.same(await answers(eio, null), [undefined, "0", String(FREE_BYTES), "1"]);
  t.same(await answers(null, eio), [String(LOG_BYTES), "1", undefined, "0"]);
  t.same(await answers(eio, eio), [undefined, "0", undefined, "0"]);
  t.same(await answers(null, null), [String(LOG_BYTES), "1", String(FREE_BYTES), "1"], "once it answers again");
});
