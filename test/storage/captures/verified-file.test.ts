import { crc32 } from "node:zlib";
import t from "tap";
import type { Extent } from "../../../core/capture/capture.js";
import { createRandom } from "../../../core/random.js";
import { CaptureReader } from "../../../storage/captures/capture-reader.js";
import { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";

const PATH = "/data/file";
const random = createRandom(Number(process.env.TEST_SEED ?? 1));

/** A file of extents of these lengths, a reader of it with a clock of its own, and the bytes that are read of it. */
async function fileOf(lengths: readonly number[]) {
  const disk = new SimulatedDisk();
  await disk.makeDirectory("/data");
  const extents: Extent[] = [];
  let offset = 0;
  const parts = lengths.map((lengthBytes) => {
    const part = random.bytes(lengthBytes);
    extents.push({ offset, lengthBytes, crc32: crc32(part) });
    offset += lengthBytes;
    return part;
  });
  const bytes = Buffer.concat(parts);
  disk.setBytes(PATH, bytes);
  const reads = { bytes: 0, largest: 0 };
  disk.onRead = (_path, _position, lengthBytes) => {
    reads.bytes += lengthBytes;
    reads.largest = Math.max(reads.largest, lengthBytes);
    return undefined;
  };
  const clock = { nowMs: 1_000 };
  const captures = new CaptureReader({ fileSystem: disk, nowMs: () => clock.nowMs });
  const flip = (at: number): void => {
    const changed = disk.bytesOf(PATH).slice();
    changed[at] = (changed[at] as number) ^ 1;
    disk.setBytes(PATH, changed);
  };
  return { disk, captures, extents, bytes, reads, clock, flip };
}

const LARGE = 1_500_000;

t.test("any byte of an extent is given only when all of it matches", async (t) => {
  const { captures, extents, bytes, flip } = await fileOf([1_000, LARGE, 1_000]);
  for (const [nth, { offset, lengthBytes }] of extents.entries()) {
    for (const at of [0, lengthBytes >> 1, lengthBytes - 1]) {
      flip(offset + at);
      const damage = {
        code: "capture_damaged",
        data: { params: { path: PATH, offset } },
        message: `offset ${offset}: `,
      };
      const all = await captures.openExtents(PATH, extents);
      for (const position of [offset, offset + (lengthBytes >> 1), offset + lengthBytes - 1]) {
        await t.rejects(all.read(position, 1), damage, `extent ${nth}, bit at ${at}, read at ${position}`);
      }
      await t.rejects(all.read(offset === 0 ? lengthBytes - 1 : offset - 1, 2), damage, "from the one beside it on");
      all.close();
      for (const beside of extents) {
        if (beside.offset === offset) continue;
        const other = await captures.openExtents(PATH, [beside]);
        t.ok(
          bytes.subarray(beside.offset + 5, beside.offset + 9).equals(await other.read(5, 4)),
          "what lies beside it",
        );
        other.close();
      }
      flip(offset + at);
      // Nobody has verified it: it was damaged until now.
      const mended = await captures.openExtents(PATH, [extents[nth] as Extent]);
      t.equal((await mended.read(0, 1)).length, 1, "mended");
      mended.close();
      captures.forget(PATH);
    }
  }
});

t.test(
  "an extent is read against its CRC once for many reads and readers, in pieces, until some time has passed",
  async (t) => {
    const { captures, extents, bytes, reads, clock, flip } = await fileOf([LARGE, 3_000]);
    const readers = await Promise.all([1, 2, 3].map(() => captures.openExtents(PATH, extents)));
    const parts = await Promise.all(readers.map((reader, nth) => reader.read(nth * 1_000, 500)));
    for (const [nth, part] of parts.entries()) t.ok(bytes.subarray(nth * 1_000, nth * 1_000 + 500).equals(part));
    t.equal(reads.bytes, LARGE + 3 * 500, "once for clients that want it at the same time");
    t.ok(reads.largest <= 1024 * 1024, "in pieces");
    const [reader] = readers as [(typeof readers)[0]];
    reads.bytes = 0;
    await reader.read(LARGE - 7, 7);
    t.equal(reads.bytes, 7, "and not for one that comes later");
    reads.bytes = 0;
    t.ok(bytes.subarray(LARGE + 10, LARGE + 20).equals(await reader.read(LARGE + 10, 10)));
    t.equal(reads.bytes, 3_000, "a short one is given as it was read");
    flip(5);
    clock.nowMs += 60_000;
    await t.rejects(reader.read(1_000, 500), { code: "capture_damaged" }, "what rots while the file is open is found");
    for (const one of readers) one.close();
  },
);

t.test("what was verified is forgotten with the file, and beyond a number of extents", async (t) => {
  const { captures, extents, reads } = await fileOf([LARGE, ...Array.from({ length: 1_100 }, () => 10)]);
  const bytesOfRead = async (position: number): Promise<number> => {
    reads.bytes = 0;
    const reader = await captures.openExtents(PATH, extents);
    await reader.read(position, 1);
    reader.close();
    return reads.bytes;
  };
  t.equal(await bytesOfRead(0), LARGE + 1);
  t.equal(await bytesOfRead(0), 1);
  captures.forget(PATH);
  t.equal(await bytesOfRead(0), LARGE + 1, "another file may have its name");
  const reader = await captures.openExtents(PATH, extents);
  await reader.read(LARGE, 11_000);
  reader.close();
  t.equal(await bytesOfRead(0), LARGE + 1, "the oldest of too many");
  t.equal(await bytesOfRead(LARGE + 10_999), 1);
});
