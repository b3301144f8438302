import t from "tap";
import { encodeRefusal } from "../../storage/change-record.js";
import { DroppedOrigins, decodeDroppedOrigins } from "../../storage/dropped-origins.js";
import type { LogRecord } from "../../storage/log-batch.js";
import { LOG_RECORD_TYPE } from "../../storage/record-format.js";

const EMPTY = new Uint8Array(0);

function of(producer: string, sequence: number): LogRecord {
  const refusal = { code: "not_found", message: "", params: {} } as const;
  return { ...encodeRefusal({ producer, sequence }, refusal), flags: 0, sequence: 1, timeUs: 1 };
}

t.test("a stretch has the highest number of each producer, also of the stretches that it takes in", async (t) => {
  const origins = new DroppedOrigins();
  for (const record of [of("cell", 7), of("cell", 300), of("robot", 2), of("cell", 8)]) origins.add(record);
  origins.add({ type: LOG_RECORD_TYPE.mark, flags: 0, sequence: 1, timeUs: 1, index: EMPTY, body: EMPTY });
  origins.add({ type: 99, flags: 0, sequence: 1, timeUs: 1, index: EMPTY, body: EMPTY });
  // [["cell", 300], ["robot", 2]]
  t.equal(Buffer.from(origins.body()).toString("hex"), "9292a463656c6ccd012c92a5726f626f7402");
  const later = new DroppedOrigins();
  later.add(of("robot", 1));
  later.add({ type: LOG_RECORD_TYPE.dropped, flags: 1, sequence: 1, timeUs: 1, index: EMPTY, body: origins.body() });
  t.same(decodeDroppedOrigins(later.body()), [
    { producer: "robot", sequence: 2 },
    { producer: "cell", sequence: 300 },
  ]);
  t.same(decodeDroppedOrigins(new DroppedOrigins().body()), []);
});
