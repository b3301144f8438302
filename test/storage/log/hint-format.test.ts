import t from "tap";
import { encodeHint, type HintEntry, hintName, verifyHint } from "../../../storage/log/hint-format.js";
import { listOf } from "../../helpers/list-of.js";
import { hintEntriesOf } from "../../helpers/store/hinted-store.js";

const SEGMENT = { base: 5, salt: 0x12345678, lastSequence: 7, segmentBytes: 4096, segmentCrc: 0xcafe };
const EMPTY = new Uint8Array(0);
const OPENING: HintEntry = {
  ...{ type: 1, sequence: 4, timeUs: 1000, offset: 64, length: 48 },
  ...{ index: EMPTY, body: EMPTY },
};
const RECORD: HintEntry = {
  ...{ type: 16, sequence: 6, timeUs: 2000, offset: 112, length: 64 },
  ...{ index: Uint8Array.of(1, 2, 3), body: Buffer.from("log") },
};
/** As the head of hint-format.ts shows it. */
const EXAMPLE = [
  "49525348494e5431 01000000 78563412 0000000000001440 0000000000001c40 000000000000b040 feca0000 02000000 03000000 03000000",
  "344d06f8 eaccd589 0000000000001040 0000000000001840 0000000000408f40 0000000000409f40 40000000 70000000 30000000 40000000",
  "00000000 03000000 00000000 03000000 0100 1000 010203 6c6f67",
]
  .join("")
  .replaceAll(" ", "");

t.test("the golden example", async (t) => {
  const bytes = encodeHint(SEGMENT, [OPENING, RECORD]);
  t.equal(Buffer.from(bytes).toString("hex"), EXAMPLE);
  t.equal(hintName(5), "0000000000000005.hint");
  t.same(verifyHint(bytes), SEGMENT);
  t.same(
    hintEntriesOf(bytes).map((entry) => ({ ...entry, body: Buffer.from(entry.body) })),
    [OPENING, RECORD].map((entry) => ({ ...entry, body: Buffer.from(entry.body) })),
  );
});

t.test("every bit counts, and every byte", async (t) => {
  const bytes = encodeHint(SEGMENT, [OPENING, RECORD]);
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    const flipped = bytes.slice();
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    t.throws(() => verifyHint(flipped), { name: "HintDamageError" }, `bit ${bit}`);
  }
  for (let length = 0; length < bytes.length; length++)
    t.throws(() => verifyHint(bytes.subarray(0, length)), { name: "HintDamageError" }, `cut at ${length}`);
  t.throws(() => verifyHint(Buffer.concat([bytes, Buffer.of(0)])), { name: "HintDamageError" }, "a byte too many");
});

t.test("a hint without entries, and one whose numbers are large", async (t) => {
  t.same(hintEntriesOf(encodeHint(SEGMENT, [])), []);
  const large = { ...SEGMENT, base: 2 ** 51, lastSequence: 2 ** 52, segmentBytes: 2 ** 32 };
  const bytes = encodeHint(large, [{ ...RECORD, sequence: 2 ** 52, timeUs: Number.MAX_SAFE_INTEGER }]);
  t.same(verifyHint(bytes), large);
  t.match(hintEntriesOf(bytes), listOf({ sequence: 2 ** 52, timeUs: Number.MAX_SAFE_INTEGER }));
});
