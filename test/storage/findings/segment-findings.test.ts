import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename } from "node:path";
import t, { type Test } from "tap";
import { createRandom } from "../../../core/random.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { DETAIL_COLUMNS, FIGURE_COLUMNS } from "../../../storage/findings/finding-columns.js";
import { runFindings } from "../../../storage/findings/run-findings.js";
import { FindingsReader } from "../../../storage/findings/segment-findings.js";
import { encodeMessagePack } from "../../../storage/records/message-pack.js";
import { RecordDecodeError } from "../../../storage/records/record-decode-error.js";
import { randomValue } from "../../helpers/random-values.js";
import { MeasuredStore } from "../../helpers/statistics/measured-store.js";

/** A store of several sealed segments. */
async function filledStore(t: Test): Promise<MeasuredStore> {
  const store = await MeasuredStore.createFor(t);
  await store.fill(createRandom(11), 150);
  return store;
}

/** All columns of a store, as text. */
async function columnsOf(
  store: MeasuredStore,
  fileSystem = nodeFileSystem,
  untilSequence = store.sequence,
): Promise<string> {
  const parts: unknown[] = [];
  const reader = new FindingsReader(fileSystem);
  for (const span of await reader.spans(store.directory, untilSequence)) {
    const { counts, figures, details } = await reader.read(store.directory, span, untilSequence, true);
    parts.push(span, counts);
    for (const [name] of FIGURE_COLUMNS) parts.push(name, [...figures[name]]);
    for (const [name] of DETAIL_COLUMNS) parts.push(name, [...details![name]]);
  }
  return JSON.stringify(parts);
}

const filesOf = (store: MeasuredStore): string[] => {
  const folder = `${store.directory}/findings`;
  return existsSync(folder)
    ? readdirSync(folder)
        .sort()
        .map((name) => `${folder}/${name}`)
    : [];
};
const sealedOf = ({ directory }: MeasuredStore): number =>
  readdirSync(`${directory}/meta`).filter((name) => name.endsWith(".seg")).length - 1;

t.test("each sealed segment gets a file when it is first read, and the newest none", async (t) => {
  const store = await filledStore(t);
  t.ok(sealedOf(store) > 3, `${sealedOf(store)} sealed segments`);
  const made = await columnsOf(store);
  const files = filesOf(store);
  t.equal(files.length, sealedOf(store));
  const long = new Date(1e9);
  for (const file of files) utimesSync(file, long, long);
  t.equal(await columnsOf(store), made, "what is read from the files is what was made");
  t.ok(
    files.every((file) => statSync(file).mtimeMs === 1e9),
    "and no file is written again",
  );
});

t.test("a file that is deleted, damaged, cut, longer or of another segment is made again, byte for byte", async (t) => {
  const store = await filledStore(t);
  const made = await columnsOf(store);
  const files = filesOf(store);
  const bytes = new Map(files.map((file) => [file, readFileSync(file)]));
  const random = createRandom(12);
  const [first, second] = files as [string, string];
  const whole = bytes.get(first)!;
  const damages: Record<string, () => void> = {
    "all deleted": () => rmSync(`${store.directory}/findings`, { recursive: true }),
    "one deleted": () => rmSync(first),
    "cut in its head": () => truncateSync(first, 40),
    empty: () => truncateSync(first, 0),
    cut: () => truncateSync(first, whole.length - 1),
    longer: () => writeFileSync(first, Buffer.concat([whole, Buffer.alloc(8)])),
    "of another segment": () => writeFileSync(first, bytes.get(second)!),
    "a folder in its place": () => {
      rmSync(first);
      mkdirSync(first);
    },
  };
  for (let nth = 0; nth < 40; nth++) {
    const at = random.integer(0, whole.length - 1);
    damages[`byte ${at} changed`] = () => {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] as number) ^ (1 << random.integer(0, 7));
      writeFileSync(first, changed);
    };
  }
  for (const [what, damage] of Object.entries(damages)) {
    damage();
    t.equal(await columnsOf(store), made, what);
    if (what === "a folder in its place") rmSync(first, { recursive: true });
    await columnsOf(store);
    t.ok(
      filesOf(store).every((file) => readFileSync(file).equals(bytes.get(file)!)),
      `${what}: made again`,
    );
  }
});

t.test(
  "a disk that takes no bytes, has no room, or cannot read the files: the segments are read instead",
  async (t) => {
    const store = await filledStore(t);
    const failing = (methods: Partial<FileSystem>): FileSystem => ({ ...nodeFileSystem, ...methods });
    const fail = (operation: string) => (path: string) => Promise.reject(new FileSystemError("EIO", operation, path));
    const made = await columnsOf(store, failing({ room: async () => ({ freeBytes: 1e6, totalBytes: 1e12 }) }));
    t.same(filesOf(store), [], "little room is left to the log");
    t.equal(await columnsOf(store, failing({ rename: fail("rename") })), made);
    t.same(filesOf(store), [], "no temporary file is left");
    t.equal(await columnsOf(store, failing({ makeDirectory: fail("mkdir") })), made);
    t.equal(await columnsOf(store), made);
    const unreadable: FileSystem["open"] = (path, mode) =>
      path.endsWith(".findings") ? fail("open")(path) : nodeFileSystem.open(path, mode);
    t.equal(await columnsOf(store, failing({ open: unreadable })), made);
  },
);

/** The runs of a store's columns, with the values of their checks. */
async function runsOf(reader: FindingsReader, store: MeasuredStore, untilSequence: number): Promise<unknown[]> {
  const runs: unknown[] = [];
  for (const span of await reader.spans(store.directory, untilSequence)) {
    const { counts, figures } = await reader.read(store.directory, span, untilSequence, false);
    const { sequences, checkEnds, values } = figures;
    for (let run = 0; run < counts.runs; run++)
      runs.push([sequences[run], ...values.subarray(checkEnds[run - 1] ?? 0, checkEnds[run])]);
  }
  return runs;
}

t.test("a segment that is sealed after a question was asked counts up to there", async (t) => {
  const store = await filledStore(t);
  const asked = store.sequence;
  const then = await runsOf(new FindingsReader(nodeFileSystem), store, asked);
  await store.fill(createRandom(13), 60);
  t.same(await runsOf(new FindingsReader(nodeFileSystem), store, asked), then);
});

t.test(
  "the newest segment is read on from where it ended, and an older question still counts to its record",
  async (t) => {
    const store = await MeasuredStore.createFor(t, 64 * 1024 * 1024);
    const random = createRandom(15);
    let bytesRead = 0;
    const counting: FileSystem = {
      ...nodeFileSystem,
      async open(path, mode) {
        const file = await nodeFileSystem.open(path, mode);
        const { read } = file;
        file.read = async (...args) => {
          const count = await read.apply(file, args);
          bytesRead += count;
          return count;
        };
        return file;
      },
    };
    const reader = new FindingsReader(counting);
    await store.fill(random, 400);
    await runsOf(reader, store, store.sequence);
    const whole = bytesRead;
    for (let round = 0; round < 20; round++) {
      await store.fill(random, random.integer(0, 2));
      const asked = round % 3 === 2 ? random.integer(1, store.sequence) : store.sequence;
      bytesRead = 0;
      const found = await runsOf(reader, store, asked);
      t.ok(bytesRead < whole / 10, `${bytesRead} of ${whole} bytes`);
      t.same(found, await runsOf(new FindingsReader(nodeFileSystem), store, asked), `round ${round}`);
    }
    t.same(filesOf(store), [], "and it gets no file");
  },
);

t.test("files are made in the background, one at a time, and strays removed", async (t) => {
  const store = await filledStore(t);
  const reader = new FindingsReader(nodeFileSystem);
  let made = 0;
  while (await reader.makeMissing(store.directory)) t.equal(filesOf(store).length, ++made);
  t.equal(made, sealedOf(store));
  const bytes = filesOf(store).map((file) => readFileSync(file));
  for (const stray of ["0000000000009999.findings", "0000000000000001.findings.0.tmp", "notes.txt"])
    writeFileSync(`${store.directory}/findings/${stray}`, "stray");
  t.equal(await reader.makeMissing(store.directory), false);
  t.same(
    filesOf(store).map((file) => readFileSync(file)),
    bytes,
  );
});

t.test("two threads make files from different ends", async (t) => {
  const store = await filledStore(t);
  const bases = readdirSync(`${store.directory}/meta`).sort();
  await new FindingsReader(nodeFileSystem).makeMissing(store.directory);
  await new FindingsReader(nodeFileSystem).makeMissing(store.directory, { newestFirst: true });
  t.same(
    filesOf(store).map((file) => basename(file, ".findings")),
    [bases[0], bases.at(-2)].map((name) => basename(name as string, ".seg")),
  );
});

t.test("damaged records are left out, and their segment gets no file", async (t) => {
  const store = await filledStore(t);
  const before = await columnsOf(store);
  rmSync(`${store.directory}/findings`, { recursive: true });
  const [segment] = readdirSync(`${store.directory}/meta`).sort();
  const path = `${store.directory}/meta/${segment}`;
  const bytes = readFileSync(path);
  bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 8);
  writeFileSync(path, bytes);
  const damaged = await columnsOf(store);
  t.not(damaged, before);
  t.equal(await columnsOf(store), damaged, "the same each time");
  t.equal(filesOf(store).length, sealedOf(store) - 1);
  const reader = new FindingsReader(nodeFileSystem);
  t.equal(await reader.makeMissing(store.directory), false, "it is not tried for ever");
  bytes.fill(0, 0, 64);
  writeFileSync(path, bytes);
  t.equal(
    (JSON.parse(await columnsOf(store)) as unknown[])[1] !== undefined,
    true,
    "a segment without header is passed over",
  );
});

t.test("checks and defects are found in any document, and nothing else is decoded", async (t) => {
  const random = createRandom(14);
  for (let round = 0; round < 300; round++) {
    const checks = [{ name: "\ufeffbore", status: "passed", value: random.normal(), metadata: randomValue(random, 3) }];
    const defects = [{ type: "dent", metadata: randomValue(random, 2) }];
    const document = {
      a: randomValue(random, 4),
      checks,
      b: randomValue(random, 3),
      defects,
      c: randomValue(random, 2),
    };
    const body = Buffer.concat([encodeMessagePack(randomValue(random, 3)), encodeMessagePack(document)]);
    const found = JSON.stringify(runFindings(body));
    t.equal(found, JSON.stringify({ checks, defects }), `round ${round}`);
    t.throws(() => runFindings(body.subarray(0, random.integer(0, body.length >> 1))), RecordDecodeError);
  }
  t.throws(() => runFindings(Buffer.from([0xc0, 0xc1])), RecordDecodeError, "no map");
  t.throws(
    () => runFindings(Buffer.concat([encodeMessagePack([]), encodeMessagePack({ checks: 1 })])),
    RecordDecodeError,
  );
});
