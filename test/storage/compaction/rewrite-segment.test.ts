import t from "tap";
import { droppedFrom } from "../../../storage/compaction/dropped-record.js";
import {
  type RewriteOptions,
  type RewrittenSegment,
  rewriteSegment,
  type SegmentOwner,
  type Verdict,
} from "../../../storage/compaction/rewrite-segment.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { forEachRecord, type RecordLocation } from "../../../storage/log/log-batch.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { LOG_RECORD_TYPE, readRecordHeader } from "../../../storage/log/record-format.js";
import { decodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentName } from "../../../storage/log/segment.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { listOf } from "../../helpers/list-of.js";
import { appendEach, createDisk, META, openLog, TEST_TYPE, until } from "../../helpers/store/log-harness.js";

const SALT = 77;
const FIRST = `${META}/${segmentName(1)}`;

/** Judges by name, and has the names of what went as the body of a stretch. */
class NamingOwner implements SegmentOwner {
  readonly kepts = new Map<string, RecordLocation>();
  readonly #verdicts: Record<string, Verdict>;

  constructor(verdicts: Record<string, Verdict>) {
    this.#verdicts = verdicts;
  }

  understandsType(type: number): boolean {
    return type === TEST_TYPE;
  }

  judge({ index }: { index: Uint8Array }): Verdict {
    return this.#verdicts[Buffer.from(index).toString()] ?? "stays";
  }

  beginStretch() {
    const names: string[] = [];
    return {
      add: ({ type, index, body }: { type: number; index: Uint8Array; body: Uint8Array }) => {
        if (type === LOG_RECORD_TYPE.mark) names.push("mark");
        else names.push(Buffer.from(type === LOG_RECORD_TYPE.dropped ? body : index).toString());
      },
      body: () => Buffer.from(names.join(",")),
    };
  }

  kept({ type, index }: { type: number; index: Uint8Array }, location: RecordLocation): void {
    this.kepts.set(type === LOG_RECORD_TYPE.mark ? "mark" : Buffer.from(index).toString(), location);
  }
}

/** A segment with a record of each name, one group each, another one that fills it, and the next segment. */
async function segmentOf(
  names: readonly string[],
  bodyBytes = 200,
): Promise<{ disk: SimulatedDisk; nextBase: number }> {
  const disk = await createDisk();
  const { log, timers } = await openLog(disk, { segmentBytes: 1_000_000 });
  for (const name of names) {
    if (name === "mark") {
      await until(() => timers.count > 0, "that a mark is wanted");
      timers.fire();
      await log.whenCommitted(log.nextSequence - 1);
    } else {
      await appendEach(log, [name], bodyBytes);
    }
  }
  await log.close();
  const again = await openLog(disk, { segmentBytes: 1 });
  await appendEach(again.log, ["last of all"]);
  await appendEach(again.log, ["elsewhere"]);
  await again.log.close();
  return { disk, nextBase: (contentsOf(disk, FIRST).at(-1)?.[1] ?? 0) + 1 };
}

async function rewritten(
  disk: FileSystem,
  nextBase: number,
  owner: SegmentOwner,
  more: Partial<RewriteOptions> = {},
): Promise<RewrittenSegment> {
  const options = { fileSystem: disk, directory: META, base: 1, nextBase, salt: SALT, owner };
  return rewriteSegment({ ...options, minimumDroppedBytes: 1, giveWay: async () => {}, ...more });
}

/** Type, number, name (or from and body of a stretch) of each record of the file. */
function contentsOf(disk: SimulatedDisk, path: string): [number, number, string][] {
  const bytes = disk.bytesOf(path).subarray(SEGMENT_HEADER_BYTES);
  const contents: [number, number, string][] = [];
  forEachRecord({ bytes, segmentBase: 1, offset: SEGMENT_HEADER_BYTES }, ({ type, sequence, index, body }) => {
    if (type === LOG_RECORD_TYPE.openingState) return;
    const text =
      type === LOG_RECORD_TYPE.dropped ? `${droppedFrom(index)} ${Buffer.from(body)}` : Buffer.from(index).toString();
    contents.push([type, sequence, text]);
  });
  return contents;
}

const { dropped: DROPPED, mark: MARK } = LOG_RECORD_TYPE;

t.test("the new file has what stays as it was, and a record for each stretch of what goes", async (t) => {
  const { disk, nextBase } = await segmentOf(["a", "b", "c", "d", "e", "f"]);
  const owner = new NamingOwner({ a: "goes", c: "goes", d: "goes" });
  const result = await rewritten(disk, nextBase, owner);
  t.match(result, { path: FIRST, temporaryPath: `${FIRST}.tmp`, recordsDropped: 3 });
  t.equal(result.bytesBefore, disk.bytesOf(FIRST).length);
  t.equal(result.bytesAfter, disk.bytesOf(`${FIRST}.tmp`).length);
  const after = contentsOf(disk, `${FIRST}.tmp`);
  t.same(after.slice(0, 5), [
    [DROPPED, 1, "1 a"],
    [TEST_TYPE, 2, "b"],
    [DROPPED, 4, "3 c,d"],
    [TEST_TYPE, 5, "e"],
    [TEST_TYPE, 6, "f"],
  ]);
  const { header } = decodeSegmentHeader(disk.bytesOf(`${FIRST}.tmp`));
  t.match(header, { base: 1, salt: SALT });
  const old = disk.bytesOf(FIRST);
  const opening = readRecordHeader(new DataView(old.buffer), SEGMENT_HEADER_BYTES);
  const kept = disk.bytesOf(`${FIRST}.tmp`);
  t.match(readRecordHeader(new DataView(kept.buffer), SEGMENT_HEADER_BYTES), { ...opening }, "the opening state stays");
  await disk.rename(`${FIRST}.tmp`, FIRST);
  const { names, log } = await openLog(disk);
  t.match(log.recovery, { findings: { length: 0 }, corruptionCount: 0 });
  t.same(names, ["b", "e", "f", "last of all", "elsewhere"]);
});

t.test("marks and stretches join what goes; one alone stays as it is", async (t) => {
  const { disk, nextBase } = await segmentOf(["a", "mark", "b", "c", "mark", "d"]);
  t.same(
    contentsOf(disk, FIRST)
      .slice(0, 6)
      .map(([type]) => type),
    [TEST_TYPE, MARK, TEST_TYPE, TEST_TYPE, MARK, TEST_TYPE],
  );
  await rewritten(disk, nextBase, new NamingOwner({ c: "goes" }));
  await disk.rename(`${FIRST}.tmp`, FIRST);
  t.same(contentsOf(disk, FIRST).slice(0, 5), [
    [TEST_TYPE, 1, "a"],
    [MARK, 2, ""],
    [TEST_TYPE, 3, "b"],
    [DROPPED, 5, "4 c,mark"],
    [TEST_TYPE, 6, "d"],
  ]);
  // Once more: the stretch of before grows, or stays.
  await rewritten(disk, nextBase, new NamingOwner({ b: "goes" }));
  await disk.rename(`${FIRST}.tmp`, FIRST);
  t.same(contentsOf(disk, FIRST).slice(0, 3), [
    [TEST_TYPE, 1, "a"],
    [DROPPED, 5, "2 mark,b,c,mark"],
    [TEST_TYPE, 6, "d"],
  ]);
  await rewritten(disk, nextBase, new NamingOwner({ a: "goes", d: "goes" }));
  await disk.rename(`${FIRST}.tmp`, FIRST);
  t.match(contentsOf(disk, FIRST)[0], listOf(DROPPED, /\d/, "1 a,mark,b,c,mark,d"));
  const { names, log } = await openLog(disk);
  t.match(log.recovery, { findings: { length: 0 }, corruptionCount: 0 });
  t.same(names, ["last of all", "elsewhere"]);
});

t.test("of records of one subject the last one stays; of several subjects each must be taken", async (t) => {
  const { disk, nextBase } = await segmentOf(["a1", "ab", "b2", "a3", "b4", "c5"]);
  const owner = new NamingOwner({
    a1: { subjects: ["a"], mayGo: true },
    ab: { subjects: ["a", "b"], mayGo: true },
    b2: { subjects: ["b", "b"], mayGo: false },
    a3: { subjects: ["a"], mayGo: true },
    b4: { subjects: ["b"], mayGo: true },
    c5: { subjects: ["c"], mayGo: true },
  });
  const { recordsDropped } = await rewritten(disk, nextBase, owner);
  t.equal(recordsDropped, 2);
  t.same(
    contentsOf(disk, `${FIRST}.tmp`)
      .map(([, , text]) => text)
      .slice(0, 5),
    ["1 a1,ab", "b2", "a3", "b4", "c5"],
  );
});

t.test("with too little to drop nothing is written, and what there is to drop is told", async (t) => {
  const { disk, nextBase } = await segmentOf(["a", "b", "c"]);
  const result = await rewritten(disk, nextBase, new NamingOwner({ a: "goes" }), { minimumDroppedBytes: 1_000 });
  t.match(result, { temporaryPath: null, recordsDropped: 1 });
  t.ok(result.droppedBytes > 200 && result.droppedBytes < 300);
  t.notOk(disk.paths().includes(`${FIRST}.tmp`));
});

t.test("a segment with any damage, a hole or an early end is left, and no file with it", async (t) => {
  const { disk, nextBase } = await segmentOf(["a", "b", "c"]);
  const whole = disk.bytesOf(FIRST);
  let tried = 0;
  for (let at = 0; at < whole.length; at += 3) {
    const damaged = disk.copy();
    const bytes = whole.slice();
    bytes[at]! ^= 0x08;
    damaged.setBytes(FIRST, bytes);
    await t.rejects(rewritten(damaged, nextBase, new NamingOwner({ a: "goes" })), {
      code: "record_damaged",
      message: /^segment 0+1\.seg, offset \d+: /,
    });
    if (damaged.paths().some((path) => path.endsWith(".tmp"))) t.fail(`a file is left, byte ${at}`);
    tried++;
  }
  t.comment(`${tried} flipped bytes: each leaves the segment alone`);
  await t.rejects(rewritten(disk, nextBase + 1, new NamingOwner({})), {
    code: "record_damaged",
    message: /ends at/,
  });
  await t.rejects(rewritten(disk, nextBase - 1, new NamingOwner({})), { message: /records of the next segment/ });
  const owner = new NamingOwner({});
  owner.judge = () => {
    throw new Error("not a record of ours");
  };
  await t.rejects(rewritten(disk, nextBase, owner), {
    code: "record_damaged",
    message: /sequence 1: not a record/,
  });
});

t.test("what giving way rejects with ends it, and removes the file", async (t) => {
  const { disk, nextBase } = await segmentOf(["a", "b", "c"], 400_000);
  let turns = 0;
  await rewritten(disk, nextBase, new NamingOwner({ b: "goes" }), { giveWay: async () => void turns++ });
  await disk.unlink(`${FIRST}.tmp`);
  t.ok(turns > 6, `${turns} turns`);
  for (let at = 1; at <= turns; at++) {
    let left = at;
    const giveWay = async (): Promise<void> => {
      if (--left === 0) throw new Error("enough");
    };
    await t.rejects(rewritten(disk, nextBase, new NamingOwner({ b: "goes" }), { giveWay }), /enough/);
    t.notOk(disk.paths().includes(`${FIRST}.tmp`));
  }
});

t.test("readers find a record by its old place and its new one while the old file is held", async (t) => {
  const { disk, nextBase } = await segmentOf(["a", "b", "c", "d"]);
  const reader = new LogReader({ fileSystem: disk, directory: META });
  const before = new NamingOwner({});
  await rewritten(disk, nextBase, before, { minimumDroppedBytes: 0 });
  const owner = new NamingOwner({ a: "goes", c: "goes" });
  const oldPlace = before.kepts.get("d")!;
  const nameAt = async (location: RecordLocation): Promise<string> =>
    Buffer.from((await reader.read(location)).index).toString();
  t.equal(await nameAt(oldPlace), "d");
  await reader.hold(1);
  await rewritten(disk, nextBase, owner);
  const newPlace = owner.kepts.get("d")!;
  t.not(newPlace.offset, oldPlace.offset);
  await disk.rename(`${FIRST}.tmp`, FIRST);
  t.equal(await nameAt(oldPlace), "d", "the name has another file, and nobody knows yet");
  reader.replaced(1);
  t.equal(await nameAt(oldPlace), "d");
  t.equal(await nameAt(newPlace), "d");
  t.same(
    (await reader.readMany([oldPlace, oldPlace])).map(({ index }) => Buffer.from(index).toString()),
    ["d", "d"],
  );
  t.equal(Buffer.from(reader.readSync(oldPlace).index).toString(), "d");
  reader.letGo(1);
  await t.rejects(reader.read(oldPlace), { code: "record_damaged" });
  t.throws(() => reader.readSync(oldPlace), { code: "record_damaged" });
  t.equal(await nameAt(newPlace), "d");
  reader.close();
});

t.test("a file whose opening began before the change of names is not kept for the new one", async (t) => {
  const { disk, nextBase } = await segmentOf(["a", "b", "c", "d"]);
  const before = new NamingOwner({});
  await rewritten(disk, nextBase, before, { minimumDroppedBytes: 0 });
  const owner = new NamingOwner({ a: "goes" });
  let proceed: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  let isSlow = true;
  const open: FileSystem["open"] = async (path, mode) => {
    const file = await disk.open(path, mode);
    if (isSlow) await opened;
    return file;
  };
  const slow = { open } as FileSystem;
  const reader = new LogReader({ fileSystem: slow, directory: META });
  const reading = reader.read(before.kepts.get("d")!);
  await rewritten(disk, nextBase, owner);
  await disk.rename(`${FIRST}.tmp`, FIRST);
  isSlow = false;
  reader.replaced(1);
  proceed();
  t.equal(Buffer.from((await reading).index).toString(), "d", "from the file that it opened");
  t.equal(Buffer.from((await reader.read(owner.kepts.get("d")!)).index).toString(), "d", "from the new one");
  reader.close();
});
