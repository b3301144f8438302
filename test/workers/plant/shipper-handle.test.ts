import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t from "tap";
import { figuresOf, ShipperHandle } from "../../../workers/plant/shipper-handle.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

t.test("a thread that has ended is started again, and health says so", async (t) => {
  const path = temporaryDirectory(t);
  // What the thread reads first cannot be read.
  const note = join(path, "restored.json");
  mkdirSync(note);
  const faults: (string | null)[] = [];
  const address = { servers: ["nats://127.0.0.1:1"], credentials: null, caPath: null };
  const told = { cell: "cell-7", captures: "none", rateBytes: null, publicUrl: null } as const;
  const options = { path, storeId: "11111111-1111-4111-8111-111111111111", address, ...told };
  const shipper = new ShipperHandle(
    options,
    (fault) => faults.push(fault),
    () => undefined,
    20,
  );
  const until = async (expected: RegExp): Promise<void> => {
    for (let looks = 0; looks < 12_000 && !faults.some((fault) => expected.test(fault ?? "")); looks++)
      await setTimeout(10);
    t.ok(
      faults.some((fault) => expected.test(fault ?? "")),
      JSON.stringify(faults),
    );
  };
  await until(/^the shipper's thread ended, and starts again: .*EISDIR/);
  t.match(shipper.row(), { status: "degraded", detail: /the shipper's thread ended/ });
  rmdirSync(note);
  await until(/^the plant does not take messages: /);
  await shipper.stop(5_000);
});

t.test("the metrics count what was skipped and what was too old as captures that the plant lacks", async (t) => {
  const captures = { sequence: 9, chunks: 4, bytes: 1_000, skipped: 2, tooOld: 3, skippedText: null };
  const status = { fault: null, shippedSequence: 7, durableSequence: 9, lagBytes: 0, oldestUnshippedUs: null };
  const others = { lost: { records: 5, first: 1, last: 6 }, foreign: null, captureFault: null, restored: null };
  t.match(figuresOf({ ...status, ...others, captures }), {
    ...{ lagRecords: 2, lostRecords: 5, captureBytes: 1_000, skippedCaptures: 5 },
  });
  t.match(figuresOf({ ...status, ...others, captures: null }), { skippedCaptures: 0 });
});
