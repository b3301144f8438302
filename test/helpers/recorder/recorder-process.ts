/** A process with a recorder thread, for tests that kill it: `node recorder-process.js <data directory>`; stops when its input ends. */
import { RecorderHandle } from "../../../workers/recorder/recorder-handle.js";
import { PLAIN_OPTIONS } from "./plain-options.js";

const [dataDirectory] = process.argv.slice(2);
if (dataDirectory === undefined) throw new Error("which data directory?");
const recorder = new RecorderHandle(
  {
    dataDirectory,
    ...PLAIN_OPTIONS,
    // Kills fall into rotations too.
    segmentBytes: 256 * 1024,
  },
  {
    onBatch: () => {},
    onHealth: () => {},
    onCapturesRemoved: () => {},
    onLog: (line) => {
      if (line.level === "warn" || line.level === "error") console.error(JSON.stringify(line));
    },
    onFailure: (error) => {
      console.error(JSON.stringify(error));
      process.exit(1);
    },
  },
);
try {
  const { recovery } = await recorder.ready;
  console.log(JSON.stringify({ ready: true, cutBytes: recovery.cutBytes, corruptionCount: recovery.corruptionCount }));
} catch (error) {
  console.log(JSON.stringify({ ready: false, error: String(error) }));
  process.exit(1);
}
process.stdin.on("end", () => void recorder.stop());
process.stdin.resume();
