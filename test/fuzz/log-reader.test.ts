import t from "tap";
import { createRandom, type Random } from "../../core/random.js";
import { LogReader } from "../../storage/log/log-reader.js";
import { isContentIntact, isRecordHeader, readRecordHeader } from "../../storage/log/record-format.js";
import { decodeSegmentHeader, segmentName } from "../../storage/log/segment.js";
import { StorageError } from "../../storage/storage-error.js";
import type { SimulatedDisk } from "../helpers/disk/simulated-disk.js";
import { extremeSet, mutatedBytes } from "../helpers/fuzz/byte-mutators.js";
import { type CorpusEntry, checkCorpus, corpusEntry, textOf } from "../helpers/fuzz/fuzz-corpus.js";
import { appendAll, appendEach, createDisk, META, openLog } from "../helpers/store/log-harness.js";
import {
  type DeliveredRecord,
  digestOf,
  diskOf,
  judgeOpening,
  judgeWalk,
  plainJudgement,
  unexplained,
} from "../helpers/store/log-judgement.js";
import { recordAt, recordOffsets, viewOf, writeRecordCrcs } from "../helpers/store/segment-bytes.js";
import { sized } from "../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
const MUTANTS = sized(1_000, 100_000);
/** Up to this sequence number, gaps are looked at one by one. A wicked claim reaches to 2^53. */
const MOST_NUMBERS = 200;
const MARK = 2;

type Files = Map<string, Uint8Array>;

let corpus: CorpusEntry[] = [];

/** The files of a log that was closed well: some segments, each of a few records, and a mark at the end. */
async function intactLog(): Promise<CorpusEntry> {
  const disk = await createDisk();
  let salt = 0x5a17_0000;
  const { log } = await openLog(disk, { segmentBytes: 480, createSalt: () => salt++ });
  await appendEach(log, ["a", "bb", "ccc"], 20);
  await appendAll(log, ["d", "ee", "fff"], 24);
  await appendEach(log, ["g", "hh"], 9);
  await appendAll(log, ["i", "jj"], 30);
  await appendEach(log, ["kkk", "l"], 12);
  await appendAll(log, ["m", "nn"], 16);
  await log.close();
  const files = disk.paths().map((path) => [path.slice(META.length + 1), disk.bytesOf(path)]);
  return corpusEntry("intact", "a log that was closed well", Object.fromEntries(files));
}

t.test("the corpus of logs: how the walk and the opening of a log judge each", async (t) => {
  const codes = new Set<string>();
  corpus = await checkCorpus(t, "log", [await intactLog()], async ({ parts }) => {
    const disk = await diskOf(parts);
    const walk = await judgeWalk(disk);
    const opening = await judgeOpening(disk);
    const again = await judgeOpening(disk);
    if (walk.error === null) for (const decision of Object.keys(walk.report.decisions)) codes.add(decision);
    if (opening.judgement.error === null) {
      for (const decision of Object.keys(opening.judgement.report.decisions)) codes.add(decision);
    }
    const files = disk.paths().map((path) => `${path} ${disk.bytesOf(path).length}`);
    return {
      walk: plainJudgement(walk),
      opening: plainJudgement(opening.judgement),
      ...{ appended: opening.appended, openedAgain: plainJudgement(again.judgement), files },
    };
  });
  t.comment(`cases of the recovery table among them: ${[...codes].sort().join(", ")}`);
});

/** The digests of all records that stand whole at their place, by both CRCs. */
function writtenRecords(entries: readonly CorpusEntry[]): Set<string> {
  const written = new Set<string>();
  for (const { parts } of entries) {
    for (const bytes of parts.values()) {
      const salt = saltOf(bytes);
      if (salt === null) continue;
      for (const offset of recordOffsets(bytes)) {
        const view = viewOf(bytes);
        const isWhole =
          isRecordHeader(bytes, view, offset, salt, offset) &&
          isContentIntact(bytes, offset, readRecordHeader(view, offset));
        if (isWhole) written.add(digestOf(recordAt(bytes, offset)));
      }
    }
  }
  return written;
}

function saltOf(bytes: Uint8Array): number | null {
  return decodeSegmentHeader(bytes.subarray(0, 64)).header?.salt ?? null;
}

/** A mutant of a corpus entry. `recomputed` has the digests of records whose CRCs were made right after the change. */
function mutantOf(
  random: Random,
  base: CorpusEntry,
  other: CorpusEntry,
): { files: Files; recomputed: string[]; how: string } {
  const files: Files = new Map([...base.parts].map(([name, bytes]) => [name, bytes.slice()]));
  const recomputed: string[] = [];
  const how: string[] = [];
  for (let edits = random.integer(1, 3); edits > 0; edits--) {
    const names = [...files.keys()];
    if (names.length === 0) break;
    const name = random.pick(names);
    const bytes = files.get(name) as Uint8Array;
    const kind = random.next();
    if (kind < 0.06) {
      files.delete(name);
      how.push(`${name} removed`);
    } else if (kind < 0.12) {
      const to = random.chance(0.5) ? random.pick(names) : segmentName(random.integer(1, 15));
      files.set(to, bytes);
      how.push(`${name} copied to ${to}`);
    } else if (kind < 0.45) {
      const digest = recomputedMutation(random, bytes);
      if (digest === null) continue;
      recomputed.push(digest);
      how.push(`${name} with new CRCs`);
    } else {
      const others = [...other.parts.values(), bytes];
      const mutated = mutatedBytes(random, bytes, random.pick(others));
      files.set(name, mutated.bytes);
      how.push(`${name} ${mutated.how}`);
    }
  }
  return { files, recomputed, how: how.join(", ") };
}

/** Changes a record in place, and makes its CRCs right: what lies behind the CRCs must hold too. Gives the digest of what is there then. */
function recomputedMutation(random: Random, bytes: Uint8Array): string | null {
  const salt = saltOf(bytes);
  const offsets = recordOffsets(bytes);
  if (salt === null || offsets.length === 0) return null;
  const at = random.integer(0, offsets.length - 1);
  const offset = offsets[at] as number;
  const end = offsets[at + 1] ?? bytes.length;
  // Header fields (but for magic and CRCs) more often than content, which the log does not look at.
  const [from, to] = random.chance(0.8) ? [offset + 4, offset + 40] : [offset + 48, end];
  if (to - from < 4) return null;
  const part = bytes.subarray(from, to);
  if (random.chance(0.5)) part.set(extremeSet(random, part));
  else part[random.integer(0, part.length - 1)]! ^= 1 << random.integer(0, 7);
  writeRecordCrcs(bytes, offset, salt);
  return digestOf(recordAt(bytes, offset));
}

interface ReadCounts {
  reads: number;
  largestBytes: number;
}

/** Counts the reads of a disk, and the largest buffer that one was to fill. */
function countReads(disk: SimulatedDisk): ReadCounts {
  const counts: ReadCounts = { reads: 0, largestBytes: 0 };
  const open = disk.open.bind(disk);
  disk.open = async (path, mode) => {
    const file = await open(path, mode);
    return {
      ...file,
      read: (into, position) => {
        counts.reads++;
        counts.largestBytes = Math.max(counts.largestBytes, into.length);
        return file.read(into, position);
      },
    };
  };
  return counts;
}

const withoutMarks = (records: readonly DeliveredRecord[]): string =>
  records.flatMap(({ type, digest }) => (type === MARK ? [] : [digest])).join();

type IsKnown = (record: { digest: string }) => boolean;
type Wrong = (what: string) => void;

t.test(
  `mutants of the corpus, seed ${seed}: nothing but what was written, and all that is missing is named`,
  async (t) => {
    const random = createRandom(seed);
    const written = writtenRecords(corpus);
    const outcomes = new Map<string, number>();
    const readable: DeliveredRecord[] = [];
    for (const { parts } of corpus.filter(({ name }) => name === "intact")) {
      const judgement = await judgeWalk(await diskOf(parts));
      if (judgement.error === null) readable.push(...judgement.records);
    }
    t.equal(readable.length, 15);
    const faults: string[] = [];
    let recomputedCount = 0;
    let singleReads = 0;
    for (let mutant = 0; mutant < MUTANTS && faults.length < 3; mutant++) {
      const base = random.chance(0.4)
        ? (corpus.find(({ name }) => name === "intact") as CorpusEntry)
        : random.pick(corpus);
      const { files, recomputed, how } = mutantOf(random, base, random.pick(corpus));
      if (recomputed.length > 0) recomputedCount++;
      const wrong: Wrong = (what) => {
        faults.push(`${what}\n${textOf({ about: `${base.name}: ${how}`, parts: files })}`);
      };
      const isKnown: IsKnown = ({ digest }) => written.has(digest) || recomputed.includes(digest);
      try {
        const outcome = await judgeLog(files, isKnown, wrong);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        await readSingly(files, readable, isKnown, wrong);
        singleReads += readable.length;
      } catch (error) {
        wrong(error instanceof Error ? (error.stack ?? error.message) : String(error));
      }
    }
    t.same(faults, []);
    t.ok(recomputedCount > MUTANTS / 4);
    t.comment(
      `${MUTANTS} mutants, ${recomputedCount} with right CRCs: ${JSON.stringify(Object.fromEntries(outcomes))}, ` +
        `${singleReads} single reads: 0 wrong, 0 unexplained`,
    );
  },
);

/** The walk over it, and its opening. @returns what became of it */
async function judgeLog(files: Files, isKnown: IsKnown, wrong: Wrong): Promise<string> {
  const sizes = [...files.values()].map((bytes) => bytes.length);
  const disk = await diskOf(files);
  const counts = countReads(disk);
  const walk = await judgeWalk(disk);
  if (counts.largestBytes > Math.max(64, ...sizes)) wrong(`a read into ${counts.largestBytes} bytes`);
  const totalBytes = sizes.reduce((sum, size) => sum + size, 0);
  if (counts.reads > 50 + 4 * (totalBytes / 48)) wrong(`${counts.reads} reads of ${totalBytes} bytes`);
  const opening = await judgeOpening(disk);
  if (walk.error !== null || opening.judgement.error !== null) {
    if (walk.error !== opening.judgement.error) wrong(`the walk says ${walk.error}, opening does not`);
    if (walk.error !== "format_unsupported" && walk.error !== "record_type_unsupported") wrong(`${walk.error}`);
  } else {
    const { records, report } = walk;
    if (!records.every(isKnown)) wrong("a record that nobody wrote");
    if (records.some(({ sequence }, at) => sequence <= (records[at - 1]?.sequence ?? 0))) wrong("order");
    const missing = unexplained(records, report, Math.min(MOST_NUMBERS, report.provenSequence));
    if (missing.length > 0) wrong(`proven, not delivered and not named: ${missing.join()}`);
    const tail = records.filter(({ sequence }) => sequence > report.provenSequence);
    if (tail.some(({ sequence }, at) => sequence !== (tail[at - 1]?.sequence ?? report.provenSequence) + 1)) {
      wrong("a gap in the tail");
    }
    if (withoutMarks(opening.judgement.records) !== withoutMarks(records)) wrong("opening delivers other records");
    const { appended } = opening;
    if (appended === null || !(appended > (records.at(-1)?.sequence ?? 0))) wrong(`appended as ${appended}`);
    if (!Number.isSafeInteger((appended ?? 0) + 1)) wrong(`the numbers are used up: ${appended}`);
    const again = (await judgeOpening(disk)).judgement;
    if (again.error !== null) wrong(`opened again: ${again.error}`);
    else {
      const isAppended = ({ sequence }: DeliveredRecord): boolean => sequence === appended;
      const after = withoutMarks(again.records.filter((record) => !isAppended(record)));
      if (after !== withoutMarks(records)) wrong(`opened again: ${after}`);
      if (!again.records.some(isAppended)) wrong("what was appended is not there any more");
      if (again.report.cutBytes > 0) wrong("opened again, it cuts again");
    }
  }
  return walk.error ?? "read";
}

/** Single reads: the record as it was written there, or damage. */
async function readSingly(files: Files, readable: DeliveredRecord[], isKnown: IsKnown, wrong: Wrong): Promise<void> {
  const reader = new LogReader({ fileSystem: await diskOf(files), directory: META });
  for (const { location, digest, sequence } of readable) {
    const one = await read(() => reader.read(location));
    if (one !== digest && one !== "damage" && !isKnown({ digest: one })) wrong(`${sequence} is read as ${one}`);
  }
  const many = await read(async () => (await reader.readMany(readable.map((one) => one.location)))[0] as never);
  if (many !== "damage" && !isKnown({ digest: many })) wrong(`read together as ${many}`);
  reader.close();
}

/** The digest of what was read, or `damage`. */
async function read(run: () => Promise<Parameters<typeof digestOf>[0]>): Promise<string> {
  try {
    return digestOf(await run());
  } catch (error) {
    if (error instanceof StorageError && /^record_(damaged|missing)$/.test(error.code)) return "damage";
    throw error;
  }
}

t.test("no location makes a reader crash, hang or allocate more than a record may have", async (t) => {
  const random = createRandom(seed + 1);
  const [intact] = corpus.filter(({ name }) => name === "intact");
  const disk = await diskOf(intact?.parts ?? new Map());
  const counts = countReads(disk);
  const reader = new LogReader({ fileSystem: disk, directory: META });
  const extremes = [-8, 0, 1, 47, 48, 64, 2 ** 31, 2 ** 32, 2 ** 40, Number.MAX_SAFE_INTEGER, Number.NaN, 0.5];
  for (let i = 0; i < 500; i++) {
    const any = (): number => (random.chance(0.5) ? random.pick(extremes) : random.integer(0, 500));
    const location = { segmentBase: random.chance(0.8) ? 1 : any(), offset: any(), length: any() };
    const found = await read(() => reader.read(location));
    if (found !== "damage" && location.length % 8 !== 0) t.fail(JSON.stringify(location));
  }
  t.ok(counts.largestBytes <= 41 * 1024 * 1024, `${counts.largestBytes} bytes`);
});
