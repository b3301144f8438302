/**
 * A service with small segments: `node small-segments-service.js --data <directory>`. Prints where it listens; its log goes to stderr.
 * SIGTERM stops it. RETAIN_BYTES says how much retention keeps.
 */
import { createServiceLog } from "../../../http/log/service-log.js";
import { startService } from "../../../http/service/service.js";
import { PLAIN_OPTIONS } from "../recorder/plain-options.js";

const data = process.argv[process.argv.indexOf("--data") + 1];
if (data === undefined) throw new Error("which data directory?");
const service = await startService({
  recorder: {
    dataDirectory: data,
    ...PLAIN_OPTIONS,
    retention: { days: null, bytes: Number(process.env.RETAIN_BYTES ?? 4_000) },
    segmentBytes: 32 * 1024,
  },
  artefactThreads: 1,
  front: "auto",
  tls: undefined,
  host: "127.0.0.1",
  port: 0,
  baseUrl: undefined,
  log: createServiceLog("info", "1.2.3"),
});
console.log(`listening on ${service.url}`);
process.once("SIGTERM", () => void service.stop(1_000));
