import { encode as encodeMessagePack } from "@msgpack/msgpack";
import t from "tap";
import { DroppedOrigins, decodeDroppedOrigins } from "../../../storage/compaction/dropped-origins.js";
import type { LogRecord } from "../../../storage/log/log-batch.js";
import { LOG_RECORD_TYPE } from "../../../storage/log/record-format.js";
import { encodeRefusal } from "../../../storage/records/change-record.js";
import { RecordDecodeError } from "../../../storage/records/record-index.js";

const EMPTY = new Uint8Array(0);

const A = "0b8c1d2e-3f40-4152-8364-758697a8b9ca";
const B = "1b8c1d2e-3f40-4152-8364-758697a8b9ca";

function of(producer: string, sequence: number, instance?: string): LogRecord {
  const refusal = { code: "not_found", message: "", params: {} } as const;
  const origin = { producer, sequence, ...(instance !== undefined && { instance }) };
  return { ...encodeRefusal(origin, refusal), flags: 0, sequence: 1, timeUs: sequence + 1 };
}

t.test(
  "a stretch has the highest number of each producer's instance, also of the stretches that it takes in",
  async (t) => {
    const origins = new DroppedOrigins();
    for (const record of [of("cell", 7), of("cell", 300), of("robot", 2), of("cell", 8)]) origins.add(record);
    origins.add({ type: LOG_RECORD_TYPE.mark, flags: 0, sequence: 1, timeUs: 1, index: EMPTY, body: EMPTY });
    origins.add({ type: 99, flags: 0, sequence: 1, timeUs: 1, index: EMPTY, body: EMPTY });
    // [["cell", 300, null, 301], ["robot", 2, null, 3]]
    t.equal(Buffer.from(origins.body()).toString("hex"), "9294a463656c6ccd012cc0cd012d94a5726f626f7402c003");
    const later = new DroppedOrigins();
    later.add(of("robot", 1));
    later.add({ type: LOG_RECORD_TYPE.dropped, flags: 1, sequence: 1, timeUs: 1, index: EMPTY, body: origins.body() });
    for (const record of [of("robot", 5, A), of("robot", 6, B), of("robot", 9, A)]) later.add(record);
    t.strictSame(decodeDroppedOrigins(later.body()), [
      { producer: "robot", sequence: 2, timeUs: 3 },
      { producer: "cell", sequence: 300, timeUs: 301 },
      { producer: "robot", sequence: 9, timeUs: 10, instance: A },
      { producer: "robot", sequence: 6, timeUs: 7, instance: B },
    ]);
    t.same(decodeDroppedOrigins(new DroppedOrigins().body()), []);
  },
);

t.test("a stretch of before instances is read; one of something else is not", async (t) => {
  t.strictSame(decodeDroppedOrigins(encodeMessagePack([["cell", 7]])), [{ producer: "cell", sequence: 7, timeUs: 0 }]);
  for (const entry of [
    ["cell"],
    ["cell", 1.5],
    [3, 3],
    ["cell", 3, "x", 1],
    ["cell", 3, A.toUpperCase(), 1],
    ["cell", 3, A, "t"],
  ]) {
    t.throws(() => decodeDroppedOrigins(encodeMessagePack([entry])), RecordDecodeError, JSON.stringify(entry));
  }
});
