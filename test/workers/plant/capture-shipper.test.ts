import { setTimeout } from "node:timers/promises";
import { crc32 } from "node:zlib";
import t from "tap";
import { foldRun } from "../../../core/run/run-fold.js";
import type { RunState } from "../../../core/run/run-state.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { CHUNK_BYTES } from "../../../workers/plant/capture-message.js";
import {
  type CaptureConnection,
  CaptureShipper,
  type CaptureShipperOptions,
} from "../../../workers/plant/capture-shipper.js";
import { LogTail } from "../../../workers/plant/log-tail.js";
import type { StoredMessage } from "../../../workers/plant/plant-client.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { createDisk, META, openLog } from "../../helpers/store/log-harness.js";

const CAPTURES = "/data/captures";
const DAY_US = 86_400_000_000;
const NOW_US = 1_800_000_000_000_000;
const RUN_ID = "01890000-0000-7000-8000-00000000000";

/** A run that has ended with a report, one day after the other. */
function endedRun(at: number, bytes: Uint8Array): RunState {
  const timeUs = NOW_US + at * DAY_US;
  const created = { kind: "run_created", runId: `${RUN_ID}${at}`, programId: "p", programName: "p" } as const;
  const nothing = { robotId: null, serialNumber: null, metadata: null, traceId: null } as const;
  const run = foldRun(undefined, { ...created, ...nothing, revision: 1, steps: [] }, timeUs);
  const place = { offset: 0, lengthBytes: bytes.length, crc32: crc32(bytes), createdAtUs: timeUs };
  const described = { contentType: "text/plain", description: null, stepIndex: null, frameId: null };
  const file = { name: "r.txt", type: "report", ...described, ...place } as const;
  return { ...run, status: "completed", startedAtUs: timeUs, completedAtUs: timeUs, files: [file] };
}

/** A stream that keeps the runs of the chunks which it takes, and has these settings and messages. */
function streamWith(state: {
  max_bytes?: number;
  max_age?: number;
  firstSequence?: number;
  lastSequence?: number;
  firstTimeMs?: number;
  createdMs?: number;
}) {
  const { max_bytes = -1, max_age = 0, firstSequence = 0, lastSequence = firstSequence, firstTimeMs = 0 } = state;
  const { createdMs = 1 } = state;
  const taken: string[] = [];
  const connection = {
    requireCaptureStream: async () => ({
      ...{ settings: { max_bytes, max_age }, createdMs, firstSequence, lastSequence, firstTimeMs },
    }),
    lastMessage: async () => null,
    publish: async (subject: string) => taken.push(subject.split(".")[4]?.at(-1) as string),
  } as unknown as CaptureConnection;
  return { connection, taken };
}

async function storeWith(runs: number, reportBytes = 8): Promise<SimulatedDisk> {
  const disk = await createDisk();
  await disk.makeDirectory(CAPTURES);
  const { log } = await openLog(disk);
  for (let at = 0; at < runs; at++) {
    const bytes = Buffer.alloc(reportBytes, `report ${at}`);
    const run = endedRun(at, bytes);
    disk.setBytes(`${CAPTURES}/${capturePath(run.id, "report")}`, bytes);
    const change = { kind: "run_ended", runId: run.id, run } as const;
    await log.whenCommitted(log.append({ ...encodeChanges(null, [change], undefined), timeUs: run.updatedAtUs }));
  }
  await log.close();
  return disk;
}

async function shipperOn(
  disk: SimulatedDisk,
  connection: CaptureConnection,
  options: Partial<CaptureShipperOptions> = {},
): Promise<CaptureShipper> {
  const shipper = new CaptureShipper({
    ...{ cell: "cell-7", storeId: "11111111-1111-4111-8111-111111111111", policy: "reports", rateBytes: null },
    ...{ fileSystem: disk, capturesPath: CAPTURES, tail: new LogTail({ fileSystem: disk, directory: META }) },
    ...options,
  });
  await shipper.begin(connection);
  return shipper;
}

async function shipAll(shipper: CaptureShipper, connection: CaptureConnection): Promise<void> {
  while (await shipper.step(connection));
}

t.test("a read that fails is not taken for a removed file", async (t) => {
  const disk = await storeWith(1);
  const { connection, taken } = streamWith({});
  const shipper = await shipperOn(disk, connection);
  let reads = 0;
  // The bytes are verified first, and then read to be sent.
  disk.onRead = (path) => (path.endsWith(".rep") && ++reads === 2 ? "EMFILE" : undefined);
  await t.rejects(shipAll(shipper, connection), { code: "EMFILE" });
  t.equal(shipper.figures.sequence < 2, true, "the mark does not pass it");
  await shipper.begin(connection);
  await shipAll(shipper, connection);
  t.strictSame(taken, ["0"]);
  disk.onRead = (path) => (path.endsWith(".rep") ? "EIO" : undefined);
  await shipper.begin(connection);
  await t.rejects(shipAll(shipper, connection), { code: "EIO" });
  disk.onRead = () => undefined;
  disk.removeFile(`${CAPTURES}/${capturePath(`${RUN_ID}0`, "report")}`);
  await shipper.begin(connection);
  await shipAll(shipper, connection);
  t.match(shipper.figures, { skipped: 1, skippedText: /does not exist/ });
});

t.test("runs that ended while the plant was away are shipped, however old they are", async (t) => {
  const disk = await storeWith(4);
  const aged = streamWith({ max_age: 1e9 * 3600, firstSequence: 7, firstTimeMs: (NOW_US + 9 * DAY_US) / 1000 });
  const shipper = await shipperOn(disk, aged.connection);
  await shipAll(shipper, aged.connection);
  t.strictSame(aged.taken, ["0", "1", "2", "3"]);
  t.equal(shipper.figures.tooOld, 0);
});

t.test("bytes that the disk never reads hold nothing up for long", async (t) => {
  const disk = await storeWith(3);
  const { connection, taken } = streamWith({});
  const shipper = await shipperOn(disk, connection);
  const bad = capturePath(`${RUN_ID}1`, "report");
  disk.onRead = (path) => (path.endsWith(bad) ? "EIO" : undefined);
  let failures = 0;
  for (let tries = 0; tries < 10 && taken.length < 3 && shipper.figures.skipped === 0; tries++) {
    await shipAll(shipper, connection).catch(({ code }: { code: string }) => {
      failures++;
      t.equal(code, "EIO");
      // As the shipper does after a pause. What it has sent is sent again here: this stream says nothing of it.
      taken.length = 0;
      return shipper.begin(connection);
    });
  }
  t.strictSame(taken, ["0", "2"]);
  t.equal(failures, 2, "two more looks, each after a pause");
  t.match(shipper.figures, { skipped: 1, skippedText: /^read .*EIO/ });
  await shipper.begin(connection);
  await shipAll(shipper, connection);
  t.equal(shipper.figures.skipped, 1, "it is counted once");
});

t.test("of many ranges that the disk cannot read, only the first is waited for", async (t) => {
  const disk = await storeWith(9);
  const { connection, taken } = streamWith({});
  const sent: { index: number; cause: string }[] = [];
  const publish = connection.publish.bind(connection);
  connection.publish = async (subject, fields, ...others) => {
    sent.push({ index: sent.length, cause: fields["Inspection-Sequence"] as string });
    return publish(subject, fields, ...others);
  };
  connection.lastMessage = async (subjects) => {
    const cause = subjects.endsWith("*") ? sent.at(-1)?.cause : undefined;
    return cause === undefined ? null : ({ header: () => cause } as unknown as StoredMessage);
  };
  const shipper = await shipperOn(disk, connection);
  disk.onRead = (path) => (/[1-57]-000\.rep$/.test(path) ? "EIO" : undefined);
  const failed: number[] = [];
  for (let tries = 0; tries < 30; tries++) {
    try {
      await shipAll(shipper, connection);
      break;
    } catch {
      failed.push(shipper.figures.skipped);
      await shipper.begin(connection);
    }
  }
  t.strictSame(failed, [0, 0, 5, 5], "two pauses for runs 1 to 5, and two for run 7: run 6 could be read");
  t.equal(shipper.figures.skipped, 6);
  t.strictSame([...new Set(taken)], ["0", "6", "8"]);
});

t.test("what a stream has dropped by its limits is not sent again", async (t) => {
  const disk = await storeWith(4);
  const known = { sequence: 2, streamMs: 1 };
  const emptied = streamWith({ max_age: 1e9, firstSequence: 0, lastSequence: 9 });
  const shipper = await shipperOn(disk, emptied.connection);
  await shipper.begin(emptied.connection, known);
  await shipAll(shipper, emptied.connection);
  t.strictSame(emptied.taken, ["2", "3"], "the log stream says up to which record captures were sent");
  t.equal(shipper.figures.sequence > known.sequence, true);
  await shipper.begin(emptied.connection);
  await shipAll(shipper, emptied.connection);
  t.strictSame(emptied.taken, ["2", "3"], "nor after a loss of the connection");
  t.strictSame(shipper.mark, { sequence: shipper.figures.sequence, streamMs: 1 });
  // One whose first message has gone already, too.
  const made = streamWith({ createdMs: 2, firstSequence: 5, lastSequence: 9 });
  await shipper.begin(made.connection, known);
  t.strictSame(shipper.mark, { sequence: 0, streamMs: 2 }, "nothing counts as shipped");
  await shipAll(shipper, made.connection);
  t.strictSame(made.taken, ["0", "1", "2", "3"], "a stream that was made anew gets all");
  const later = await shipperOn(disk, made.connection);
  made.taken.length = 0;
  await later.begin(made.connection, known);
  await shipAll(later, made.connection);
  t.strictSame(
    made.taken,
    ["0", "1", "2", "3"],
    "also after a start, whatever the log stream says of the stream before",
  );
});

t.test("a full stream gets no runs that would only push newer ones out", async (t) => {
  const disk = await storeWith(4);
  const full = streamWith({ max_bytes: 1e9, firstSequence: 7, firstTimeMs: (NOW_US + 2 * DAY_US) / 1000 });
  const shipper = await shipperOn(disk, full.connection);
  await shipAll(shipper, full.connection);
  t.strictSame(full.taken, ["2", "3"]);
  t.equal(shipper.figures.tooOld, 2);
});

t.test("captures go no faster than the rate allows", async (t) => {
  const [runs, reportBytes, rateBytes] = [9, 1_200_000, 1_000_000];
  const disk = await storeWith(runs, reportBytes);
  const { connection, taken } = streamWith({});
  let nowMs = 0;
  const shipper = await shipperOn(disk, connection, { rateBytes, monotonicMs: () => nowMs });
  for (; taken.length < 3 * runs; nowMs += 50) {
    await shipAll(shipper, connection);
    const { bytes } = shipper.figures;
    if (bytes > rateBytes * (nowMs / 1000) + CHUNK_BYTES) t.fail(`${bytes} bytes after ${nowMs} ms`);
    if (nowMs > 60_000) break;
  }
  t.equal(taken.length, 3 * runs);
  t.ok(nowMs < 1.1 * runs * 1_200 + 1_000, `${shipper.figures.bytes} bytes in ${nowMs} ms`);
});

t.test("a wall clock that goes back does not hold captures up", async (t) => {
  const disk = await storeWith(3);
  const { connection, taken } = streamWith({});
  const shipper = new CaptureShipper({
    ...{ cell: "cell-7", storeId: "11111111-1111-4111-8111-111111111111", policy: "reports", rateBytes: 1e6 },
    ...{ fileSystem: disk, capturesPath: CAPTURES, tail: new LogTail({ fileSystem: disk, directory: META }) },
  });
  await shipper.begin(connection);
  let clockMs = NOW_US / 1000;
  t.intercept(Date, "now", { value: () => clockMs });
  for (let looks = 0; looks < 6_000 && taken.length < 3; looks++) {
    await shipper.step(connection);
    // As a cell whose battery is empty does it when it finds the time.
    if (taken.length > 0) clockMs = NOW_US / 1000 - 3_600_000;
    await setTimeout(1);
  }
  t.strictSame(taken, ["0", "1", "2"]);
});
