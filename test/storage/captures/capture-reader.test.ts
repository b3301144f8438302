import { spawnSync } from "node:child_process";
import fs, { mkdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { CaptureReader, verifyExtents } from "../../../storage/captures/capture-reader.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { createCaptureDisk, openCaptures } from "../../helpers/captures/capture-disk.js";
import { listOf } from "../../helpers/list-of.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const random = createRandom(SEED);
const RUN_ID = generateUuidV7(Date.UTC(2026, 10, 20), random.bytes(10));

t.test("extents of a file read as one, at any position and length", async (t) => {
  t.comment(`seed ${SEED}`);
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
  const file = store.file(RUN_ID, "capture", 0);
  const extents = Array.from({ length: 30 }, () => file.append(random.bytes(random.integer(0, 200))));
  await file.makeDurable();
  const chosen = extents.filter((_, i) => i % 3 !== 0);
  const stored = disk.bytesOf(file.path);
  const whole = Buffer.concat(chosen.map(({ offset, lengthBytes }) => stored.subarray(offset, offset + lengthBytes)));
  const captures = new CaptureReader({ fileSystem: disk });
  const reader = await captures.openExtents(file.path, chosen);
  t.equal(reader.sizeBytes, whole.length);
  let wrong = 0;
  for (let round = 0; round < 500; round++) {
    const position = random.integer(0, whole.length + 10);
    const length = random.integer(0, 500);
    const read = Buffer.from(await reader.read(position, length));
    if (!read.equals(whole.subarray(position, position + length))) wrong++;
  }
  t.equal(wrong, 0);
  reader.close();
  await t.rejects(reader.read(0, 1), { message: /read after close/ });
  await t.rejects(captures.openExtents(`${file.path}x`, chosen), { code: "capture_missing" });
  // Within an extent: after an extent's end, no read tells where exactly the file ends.
  const end = (chosen.find(({ lengthBytes }) => lengthBytes > 1)?.offset ?? Number.NaN) + 1;
  disk.setBytes(file.path, stored.slice(0, end));
  captures.close();
  const short = await captures.openExtents(file.path, chosen);
  await t.rejects(short.read(0, whole.length), { code: "capture_damaged", message: new RegExp(`ends at ${end},`) });
  short.close();
  // Between two extents, no read tells where exactly the file ends.
  const last = chosen.filter(({ lengthBytes }) => lengthBytes > 0).at(-1) as (typeof chosen)[number];
  disk.setBytes(file.path, stored.slice(0, last.offset - 1));
  captures.close();
  const shorter = await captures.openExtents(file.path, chosen);
  const message = new RegExp(`ends at ${last.offset} or before, within stored bytes`);
  await t.rejects(shorter.read(whole.length - 1, 1), { code: "capture_damaged", message });
  shorter.close();
});

t.test(
  "a file that is forgotten is read to the end by who has it, and by nobody else, not even one who is just opening it",
  async (t) => {
    const disk = await createCaptureDisk();
    const file = openCaptures(disk).file(RUN_ID, "capture", 0);
    const extents = [file.append(random.bytes(100))];
    await file.makeDurable();
    let open = 0;
    let gate: Promise<void> | undefined;
    const counting = {
      open: async (path: string) => {
        await gate;
        const inner = await disk.open(path, "read");
        open++;
        return {
          ...inner,
          close: async () => {
            open--;
          },
        };
      },
    };
    const captures = new CaptureReader({ fileSystem: counting as never });
    const reading = await captures.openExtents(file.path, extents);
    let proceed = (): void => {};
    captures.forget(file.path);
    gate = new Promise((resolve) => {
      proceed = resolve;
    });
    const opening = captures.openExtents(file.path, extents);
    captures.forget(file.path);
    proceed();
    const late = await opening;
    disk.removeFile(file.path);
    t.equal(open, 2);
    t.equal((await reading.read(0, 100)).length, 100);
    t.equal((await late.read(0, 100)).length, 100);
    await t.rejects(captures.openExtents(file.path, extents), { code: "capture_missing" });
    reading.close();
    late.close();
    t.equal(open, 0, "and then nothing holds the space");
  },
);
t.test("verification names each damaged extent", async (t) => {
  const disk = await createCaptureDisk();
  const store = openCaptures(disk);
  const file = store.file(RUN_ID, "capture", 0);
  const extents = [100, 2 * 1024 * 1024, 50].map((length) => file.append(random.bytes(length)));
  await file.makeDurable();
  const bytes = disk.bytesOf(file.path);
  bytes[100 + 1_500_000]! ^= 1;
  disk.setBytes(file.path, bytes.slice(0, bytes.length - 1));
  const damages = await verifyExtents(disk, file.path, extents);
  t.match(
    damages,
    listOf(
      { extent: extents[1]!, reason: "the bytes do not match their CRC" },
      { extent: extents[2]!, reason: /the file ends at/ },
    ),
  );
  t.equal(damages.length, 2);
  const [first, , last] = extents as [(typeof extents)[0], unknown, (typeof extents)[0]];
  disk.setBytes(file.path, bytes.slice(0, 60));
  t.same(await verifyExtents(disk, file.path, [first, last]), [
    { extent: first, reason: "the file ends at 60, within the extent" },
    { extent: last, reason: `the file ends at ${last.offset} or before, within the extent` },
  ]);
  await t.rejects(verifyExtents(disk, "/data/captures/none", extents), { code: "capture_missing" });
});

t.test("a FIFO or a folder in place of a capture file is damage of that file, and keeps nobody waiting", async (t) => {
  const folder = temporaryDirectory(t);
  const extent = { offset: 0, lengthBytes: 1, crc32: 0 };
  spawnSync("mkfifo", [`${folder}/fifo`]);
  mkdirSync(`${folder}/folder`);
  for (const path of [`${folder}/fifo`, `${folder}/folder`]) {
    const refusal = { code: "capture_damaged", message: /is not a file/ };
    await t.rejects(verifyExtents(nodeFileSystem, path, [extent]), refusal);
    await t.rejects(new CaptureReader({ fileSystem: nodeFileSystem }).openExtents(path, [extent]), refusal);
    t.throws(() => nodeFileSystem.openSync(path), { message: /^open / });
    await t.rejects(nodeFileSystem.open(path, "update"), { message: /^open / });
  }
  writeFileSync(`${folder}/file`, "of eleven");
  const file = nodeFileSystem.openSync(`${folder}/file`);
  t.equal(file.readSync(new Uint8Array(20), 3), 6);
  file.closeSync();
  t.throws(() => file.readSync(new Uint8Array(20), 0), { code: "EBADF" }, "it is closed");
  t.throws(() => file.closeSync(), { code: "EBADF", operation: "close" });
  const { fstatSync } = fs;
  t.teardown(() => {
    fs.fstatSync = fstatSync;
    syncBuiltinESMExports();
  });
  fs.fstatSync = () => {
    throw Object.assign(new Error("EIO: i/o error, fstat"), { code: "EIO" });
  };
  syncBuiltinESMExports();
  t.throws(() => nodeFileSystem.openSync(`${folder}/file`), {
    name: "FileSystemError",
    code: "EIO",
    operation: "fstat",
  });
});
