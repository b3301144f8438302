import t from "tap";
import bin from "typed-binary";
import { createRandom } from "../../../core/random.js";
import {
  isContentIntact,
  isRecordHeader,
  LOG_RECORD_TYPE,
  RECORD_HEADER_BYTES,
  readRecordHeader,
  recordLength,
  setDurableUpTo,
  writeRecordHeader,
} from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, encodeSegmentHeader, encodeSegmentStart } from "../../../storage/log/segment.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { RECOVERY_CASES } from "../../../storage/recovery/recovery-cases.js";
import { MarkdownPage, tableRows } from "../../helpers/documents/markdown-page.js";

const SALT = 0x12345678;

const RECORD_HEADER_SCHEMA = bin.object({
  magic: bin.u32,
  type: bin.u16,
  flags: bin.u8,
  version: bin.u8,
  sequenceLow: bin.u32,
  sequenceHigh: bin.u32,
  durableUpToLow: bin.u32,
  durableUpToHigh: bin.u32,
  timeUsLow: bin.u32,
  timeUsHigh: bin.u32,
  indexLength: bin.u32,
  bodyLength: bin.u32,
  contentCrc: bin.u32,
  headerCrc: bin.u32,
});

function encode(
  overrides: Partial<Parameters<typeof writeRecordHeader>[3]> = {},
  salt = SALT,
  offset = 64,
): Uint8Array {
  const bytes = new Uint8Array(recordLength(3, 3));
  bytes.set([1, 2, 3, ...Buffer.from("log")], RECORD_HEADER_BYTES);
  const header = {
    type: 16,
    flags: 1,
    sequence: 7,
    durableUpTo: 5,
    timeUs: 1_700_000_000_000_001,
    indexLength: 3,
    bodyLength: 3,
    ...overrides,
  };
  writeRecordHeader(bytes, new DataView(bytes.buffer), 0, header, salt, offset);
  return bytes;
}

t.test("a record has the bytes that the format's example shows", async (t) => {
  const example =
    "52454331 1000 01 01 0700000000000000 0500000000000000 01401e18240a0600 03000000 03000000 cc1c9cca ef642269 010203 6c6f67 0000";
  t.equal(Buffer.from(encode()).toString("hex"), example.replaceAll(" ", ""));
});

t.test("a segment's header has the bytes that the format says, twice", async (t) => {
  const bytes = encodeSegmentHeader({ version: 1, salt: SALT, base: 2 ** 32 + 5 });
  const copy = "4952534c4f475331" + "01000000" + "78563412" + "0500000001000000" + "00000000" + "66084ac8";
  t.equal(Buffer.from(bytes).toString("hex"), copy + copy);
});

t.test("FORMAT.md: its example is these bytes, its tables name all types of records and all findings", async (t) => {
  const page = new MarkdownPage("storage/log/FORMAT.md");
  const header = encodeSegmentHeader({ version: 1, salt: SALT, base: 2 ** 32 + 5 }).subarray(0, 32);
  const [example = ""] = page.blocks("### Example", "text");
  t.equal(example.replace(/\s/g, ""), Buffer.concat([header, encode()]).toString("hex"));
  const types = [...Object.values(LOG_RECORD_TYPE), ...Object.values(RECORD_TYPE)];
  const [, named = ""] = page.section("## Record").split("\n| type | record |");
  t.same(
    [...named.matchAll(/^\| (\d+) \|/gm)].map(([, type]) => Number(type)),
    types,
  );
  const findings = Object.values(RECOVERY_CASES).flatMap((finding) => finding ?? []);
  const told = tableRows(page.section("## What is believed after a crash")).map(([, , code = ""]) => code);
  t.same(new Set(told.filter((code) => code !== "none")), new Set(findings.map((code) => `\`${code}\``)));
});

t.test("the hand-written header is the schema's, for any values", async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 1);
  t.comment(`seed ${seed}`);
  const random = createRandom(seed);
  for (let round = 0; round < 1_000; round++) {
    const uint53 = (): number => random.integer(0, 2 ** random.integer(0, 53) - 1);
    const header = {
      type: random.integer(0, 0xffff),
      flags: random.integer(0, 0xff),
      sequence: uint53(),
      durableUpTo: uint53(),
      timeUs: uint53(),
      indexLength: 3,
      bodyLength: 3,
    };
    const bytes = encode(header);
    const view = new DataView(bytes.buffer);
    const back = readRecordHeader(view, 0);
    t.match(back, { ...header, version: 1 }) || t.fail(`round ${round}`);
    const viaSchema = new Uint8Array(RECORD_HEADER_BYTES);
    const split = (value: number): [number, number] => [value % 2 ** 32, Math.floor(value / 2 ** 32)];
    const [sequenceLow, sequenceHigh] = split(header.sequence);
    const [durableUpToLow, durableUpToHigh] = split(header.durableUpTo);
    const [timeUsLow, timeUsHigh] = split(header.timeUs);
    RECORD_HEADER_SCHEMA.write(new bin.BufferWriter(viaSchema.buffer, { endianness: "little" }), {
      magic: 0x31434552,
      type: header.type,
      flags: header.flags,
      version: 1,
      sequenceLow,
      sequenceHigh,
      durableUpToLow,
      durableUpToHigh,
      timeUsLow,
      timeUsHigh,
      indexLength: 3,
      bodyLength: 3,
      contentCrc: view.getUint32(40, true),
      headerCrc: view.getUint32(44, true),
    });
    if (Buffer.compare(bytes.subarray(0, RECORD_HEADER_BYTES), viaSchema) !== 0) t.fail(`round ${round} differs`);
  }
});

t.test("a header is valid in its segment and at its offset only, and every bit of a record is covered", async (t) => {
  const bytes = encode();
  const view = new DataView(bytes.buffer);
  t.ok(isRecordHeader(bytes, view, 0, SALT, 64));
  t.notOk(isRecordHeader(bytes, view, 0, SALT + 1, 64), "another segment");
  t.notOk(isRecordHeader(bytes, view, 0, SALT, 72), "another offset");
  let undetected = 0;
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = bytes.slice();
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    const flippedView = new DataView(flipped.buffer);
    const intact =
      isRecordHeader(flipped, flippedView, 0, SALT, 64) &&
      isContentIntact(flipped, 0, readRecordHeader(flippedView, 0));
    if (intact) undetected++;
  }
  t.equal(undetected, 0, `of ${bytes.length * 8} flipped bits none goes undetected`);
});

t.test("a claim can be changed after the record was written", async (t) => {
  const bytes = encode();
  const view = new DataView(bytes.buffer);
  setDurableUpTo(bytes, view, 0, 6, SALT, 64);
  t.ok(isRecordHeader(bytes, view, 0, SALT, 64));
  t.same(bytes, encode({ durableUpTo: 6 }));
});

t.test("one damaged copy of a segment's header is told, two are no header", async (t) => {
  const intact = encodeSegmentHeader({ version: 1, salt: 1, base: 9 });
  t.same(decodeSegmentHeader(intact), { header: { version: 1, salt: 1, base: 9 }, damagedCopy: null });
  let detected = 0;
  for (let bit = 0; bit < intact.length * 8; bit++) {
    const bytes = intact.slice();
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    const { header, damagedCopy } = decodeSegmentHeader(bytes);
    if (header?.salt === 1 && header.base === 9 && damagedCopy === (bit < intact.length * 4 ? 0 : 1)) detected++;
  }
  t.equal(detected, intact.length * 8);
  const bytes = intact.slice();
  bytes[13]! ^= 1;
  bytes[45]! ^= 1;
  t.same(decodeSegmentHeader(bytes), { header: null, damagedCopy: null });
});

t.test("an opening state over the limits is refused", async (t) => {
  const openingState = { index: new Uint8Array(0), body: new Uint8Array(33 * 1024 * 1024) };
  t.throws(() => encodeSegmentStart({ base: 1, salt: 1, openingState, timeUs: 0 }), { code: "record_too_large" });
});
