import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import t from "tap";
import { newKernelMemory } from "../../../../workers/artefacts/kernel-memory.js";
import { encodeHeightMap } from "../../../../workers/artefacts/picture/height-map-png.js";
import { heightSource, surfaceFrame } from "../../../helpers/captures/made-frames.js";
import { PngError, readGreyPng } from "../../../helpers/captures/png-reader.js";
import { pythonWith, sameToPil, skipWithout } from "../../../helpers/captures/python-checker.js";

const pil = pythonWith("PIL", "numpy");
const SUITE = "../shared/data/formats/png";
const suiteNames = existsSync(SUITE) ? readdirSync(SUITE).filter((name) => name.endsWith(".png")) : [];
/** By the suite's names: not interlaced, greyscale, 8 or 16 bits; those that begin with x are damaged. */
const readableNames = suiteNames.filter((name) => /^[^x]\w*n0g(08|16)\.png$/.test(name));

/** What is wrong with each of the suite's damaged pictures, as its author says (PngSuite, Corrupted files). */
const DAMAGES: Record<string, string> = {
  "xs1n0g01.png": "no PNG signature",
  "xs2n0g01.png": "no PNG signature",
  "xs4n0g01.png": "no PNG signature",
  "xs7n0g01.png": "no PNG signature",
  "xcrn0g04.png": "no PNG signature",
  "xlfn0g04.png": "no PNG signature",
  "xhdn0g08.png": "IHDR does not match its CRC",
  "xc1n0g08.png": "no picture has bit depth 8 with colour type 1",
  "xc9n2c08.png": "no picture has bit depth 8 with colour type 9",
  "xd0n2c08.png": "no picture has bit depth 0 with colour type 2",
  "xd3n2c08.png": "no picture has bit depth 3 with colour type 2",
  "xd9n2c08.png": "no picture has bit depth 99 with colour type 2",
  "xdtn0g01.png": "no IDAT",
  "xcsn0g01.png": "IDAT does not match its CRC",
};

/** What a picture of the suite that is not read has, by its name: `basi3p02` is interlaced, of colour type 3 and 2 bits. */
function sortOf(name: string): string {
  const [, interlace, colourType, bits] = /([ni])(\d)[a-z](\d\d)\.png$/.exec(name) ?? [];
  // The suite's own logo, whose name tells nothing.
  if (bits === undefined) return "bit depth 8 with colour type 2";
  return `bit depth ${Number(bits)} with colour type ${colourType}${interlace === "i" ? ", interlaced" : ""}`;
}

t.test(
  "the reader of these tests says of every picture of PngSuite what it is",
  { skip: suiteNames.length > 0 ? false : "PngSuite is not there" },
  (t) => {
    const counts = { read: 0, unsupported: 0, damaged: 0 };
    for (const name of suiteNames) {
      const bytes = readFileSync(join(SUITE, name));
      if (readableNames.includes(name)) {
        counts.read++;
        const { width, height, bitDepth, samples } = readGreyPng(bytes);
        t.same([width, height, bitDepth], [32, 32, Number(name.slice(-6, -4))], name);
        t.ok(new Set(samples).size > 1, `${name} shows something`);
        continue;
      }
      const kind = name.startsWith("x") ? "damaged" : "unsupported";
      counts[kind]++;
      t.throws(() => readGreyPng(bytes), { kind, message: DAMAGES[name] ?? sortOf(name) }, name);
    }
    t.same(counts, { read: 21, unsupported: 140, damaged: 14 });
    t.end();
  },
);

/** What the reader says of a picture: its samples in hex, or why it is refused. */
function readOrRefused(bytes: Uint8Array): string {
  try {
    return Buffer.from(readGreyPng(bytes).samples.buffer).toString("hex");
  } catch (error) {
    return error instanceof PngError ? `${error.kind}: ${error.message}` : `${error}`;
  }
}

t.test("the reader of these tests refuses what is cut, and what is damaged behind CRCs that match", async (t) => {
  const memory = await newKernelMemory();
  const frame = surfaceFrame(1, 30, 20);
  const whole = Buffer.from(
    await encodeHeightMap(memory, frame.planes.height, frame.geometry, heightSource(memory, frame)),
  );
  const cut = /^damaged: (no PNG signature|the file ends within .*|no (IHDR|IDAT|IEND))$/;
  const wrong: string[] = [];
  for (let length = 0; length < whole.length; length++) {
    const said = readOrRefused(whole.subarray(0, length));
    if (!cut.test(said)) wrong.push(`${length} bytes: ${said}`);
  }
  // As a writer that is wrong would have it: another byte in the only IDAT, and the CRC of it.
  const [samples, from] = [readOrRefused(whole), whole.indexOf("IDAT") + 4];
  const length = whole.readUInt32BE(from - 8);
  let same = 0;
  for (let at = from; at < from + length; at++) {
    const other = Buffer.from(whole);
    other[at] = (other[at] as number) ^ 0x10;
    other.writeUInt32BE(crc32(other.subarray(from - 4, from + length)), from + length);
    const said = readOrRefused(other);
    // Bits that deflate passes over, before a stored block, are of no sample.
    if (said === samples) same++;
    else if (!said.startsWith("damaged: ")) wrong.push(`byte ${at - from}: ${said}`);
  }
  t.same(wrong, []);
  t.ok(length > 500 && same < 5, `${same} of ${length} bytes have a bit that means nothing`);
  t.equal(readOrRefused(Buffer.concat([whole, Buffer.of(0)])), "damaged: bytes behind IEND");
});

const withoutSuite = suiteNames.length > 0 ? false : "PngSuite is not there";
t.test("the reader of these tests reads what PIL reads", { skip: withoutSuite || skipWithout(pil, "PIL") }, (t) => {
  const folder = t.testdir();
  const files = readableNames.map((name) => {
    const file = join(folder, name);
    const bytes = readFileSync(join(SUITE, name));
    writeFileSync(file, bytes);
    writeFileSync(`${file}.raw`, new Uint8Array(readGreyPng(bytes).samples.buffer));
    return file;
  });
  sameToPil(t, pil as string, files);
  t.comment(`${files.length} pictures of PngSuite are the same to PIL`);
  t.end();
});
