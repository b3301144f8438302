/**
 * Greyscale PNG (ISO/IEC 15948), 8 or 16 bits, written strip by strip: a strip of lines is filtered with sub, up or Paeth, whichever has the
 * lowest entropy in a part of it, and is one deflate block with a Huffman code of its own over literals and repetitions of the pixel before (matches at its distance). Every strip
 * ends at a byte, by an empty stored block, and is one IDAT. Pictures of height and luminance have little else that deflate could find, and this
 * is several times as fast as zlib's fastest. Without WebAssembly zlib codes the strips.
 *
 * Memory: some three times a strip (256 KiB, or one line), and the picture as it is coded so far.
 */
import { constants, crc32, deflateSync } from "node:zlib";
import { BitWriter, codeLengths, codeWords, writeBlockHeader } from "./huffman-code.js";
import type { KernelMemory, StripKernels } from "./kernel-memory.js";

const STRIP_BYTES = 256 * 1024;
const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
/** Sub, up and Paeth. */
const FILTER_TYPES = [1, 2, 4];
/** Four at a time are coded before bits are written out: more would not fit 64 bits. */
const MAXIMUM_CODE_BITS = 13;
const SYMBOLS = 286;
/** Of one of the four tables of `countSymbols`. */
const COUNTS_STRIDE = 288;
/** Behind a stored block's three bits and what is left of their byte: its length, 0, and the complement. */
const EMPTY_BLOCK_LENGTHS = [0, 0, 0xff, 0xff];
const STORED_BYTES_LIMIT = 65_535;

export interface PngPicture {
  width: number;
  height: number;
  bitDepth: 8 | 16;
  /** Keyword and text, Latin-1, as tEXt chunks. */
  texts: readonly (readonly [keyword: string, text: string])[];
}

/** Puts the samples of `count` lines, big-endian, at an address of the memory: line n begins `n * pitch` bytes on. */
export type SampleSource = (firstLine: number, count: number, samples: number, pitch: number) => Promise<void>;

/** Encodes a picture whose samples come strip by strip. */
export async function encodePng(
  memory: KernelMemory,
  picture: PngPicture,
  source: SampleSource,
): Promise<Uint8Array<ArrayBuffer>> {
  const { width, height, bitDepth } = picture;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = bitDepth;
  const chunks: Uint8Array[] = [SIGNATURE, ...chunk("IHDR", [header])];
  for (const [keyword, text] of picture.texts) {
    chunks.push(...chunk("tEXt", [Buffer.from(`${keyword}\0${text}`, "latin1")]));
  }
  const coder = new StripCoder(memory, picture);
  // zlib's header: deflate with a window of 32 KiB, no dictionary.
  let head = Uint8Array.of(0x78, 0x01);
  for (let line = 0; line < height; line += coder.linesPerStrip) {
    const lines = Math.min(coder.linesPerStrip, height - line);
    await source(line, lines, coder.samplesAt, coder.pitch);
    chunks.push(...chunk("IDAT", [head, ...coder.code(lines, line + lines === height)]));
    head = new Uint8Array(0);
  }
  chunks.push(...chunk("IEND", []));
  return joined(chunks);
}

/** In a buffer of its own, which can be moved to another thread. */
function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function chunk(type: string, parts: readonly Uint8Array[]): Uint8Array[] {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 0),
    0,
  );
  head.write(type, 4, "latin1");
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(
    parts.reduce((crc, part) => crc32(part, crc), crc32(head.subarray(4))),
    0,
  );
  return [head, ...parts, tail];
}

class StripCoder {
  readonly linesPerStrip: number;
  /** Where samples of the strip's first line go, and from one line to the next. */
  readonly samplesAt: number;
  readonly pitch: number;
  readonly #memory: KernelMemory;
  readonly #bytesPerPixel: number;
  readonly #lineBytes: number;
  readonly #filteredAt: number;
  readonly #countsAt: number;
  readonly #codesAt: number;
  readonly #outAt: number;
  #adler = 1;

  constructor(memory: KernelMemory, { width, height, bitDepth }: PngPicture) {
    this.#memory = memory;
    this.#bytesPerPixel = bitDepth / 8;
    this.#lineBytes = width * this.#bytesPerPixel;
    this.linesPerStrip = Math.min(height, Math.max(1, Math.floor(STRIP_BYTES / (this.#lineBytes + 1))));
    // Zeros before each line, for the filters; room behind it, for reads of 16 bytes.
    this.pitch = Math.ceil((this.#lineBytes + 16) / 16) * 16;
    this.samplesAt = memory.allocateZeros(this.pitch * this.linesPerStrip + 32) + 16;
    const stripBytes = this.linesPerStrip * (this.#lineBytes + 1);
    this.#filteredAt = memory.allocate(stripBytes + 16);
    this.#countsAt = memory.allocate(4 * 4 * COUNTS_STRIDE);
    this.#codesAt = memory.allocate(4 * COUNTS_STRIDE);
    this.#outAt = memory.allocate(Math.ceil((stripBytes * MAXIMUM_CODE_BITS) / 8) + 1024);
  }

  /** Bytes of the strip in the stream; of the last one with what ends the stream. */
  code(lines: number, isLast: boolean): Uint8Array[] {
    const bytes = lines * (this.#lineBytes + 1);
    const { wasm } = this.#memory;
    const coded = wasm === null ? this.#codeByZlib(lines, bytes) : this.#codeByKernels(wasm, lines, bytes);
    if (!isLast) return coded;
    const end = Buffer.from([1, ...EMPTY_BLOCK_LENGTHS, 0, 0, 0, 0]);
    end.writeUInt32BE(this.#adler, 5);
    return [...coded, end];
  }

  #codeByKernels(wasm: StripKernels, lines: number, bytes: number): Uint8Array[] {
    const filtered = this.#filteredAt;
    const filter = (firstLine: number, count: number, type: number): void => {
      const from = this.samplesAt + firstLine * this.pitch;
      wasm.filterStrip(from, this.pitch, this.#lineBytes, count, this.#bytesPerPixel, type, filtered);
    };
    // A quarter of the strip tells which filter suits it.
    const tried = Math.ceil(lines / 4);
    const costs = FILTER_TYPES.map((type) => {
      filter(Math.floor((lines - tried) / 2), tried, type);
      return entropyBits(this.#counts(wasm, filtered, tried * (this.#lineBytes + 1)));
    });
    filter(0, lines, FILTER_TYPES[costs.indexOf(Math.min(...costs))] as number);
    this.#adler = wasm.adler32(filtered, bytes, this.#adler) >>> 0;

    const counts = this.#counts(wasm, filtered, bytes);
    counts[256] = 1;
    const lengths = codeLengths(counts, MAXIMUM_CODE_BITS);
    const writer = new BitWriter();
    writeBlockHeader(writer, lengths, this.#bytesPerPixel);
    codeWords(lengths, this.#memory.words(this.#codesAt, SYMBOLS));
    const head = writer.bytes;
    const out = this.#memory.bytes(this.#outAt, head.length + 1);
    out.set(head);
    out[head.length] = writer.lastByte;
    const bits = wasm.codeStrip(
      filtered,
      bytes,
      this.#bytesPerPixel,
      this.#codesAt,
      this.#outAt + head.length,
      writer.bitsOfLast,
    );
    // The three bits of the empty stored block, zeros, lie in the last byte, or in one more.
    const codedBytes = head.length + Math.ceil((bits + 3) / 8);
    if (codedBytes > bytes) return storedBlocks(this.#memory.bytes(filtered, bytes).slice());
    const coded = new Uint8Array(codedBytes + EMPTY_BLOCK_LENGTHS.length);
    coded.set(this.#memory.bytes(this.#outAt, codedBytes));
    const whole = head.length + Math.floor(bits / 8);
    coded.fill(0, whole + (bits % 8 === 0 ? 0 : 1), codedBytes);
    if (bits % 8 !== 0) coded[whole] = (coded[whole] as number) & ((1 << (bits % 8)) - 1);
    coded.set(EMPTY_BLOCK_LENGTHS, codedBytes);
    return [coded];
  }

  #counts(wasm: StripKernels, at: number, bytes: number): Int32Array {
    const tables = this.#memory.words(this.#countsAt, 4 * COUNTS_STRIDE).fill(0);
    wasm.countSymbols(at, bytes, this.#bytesPerPixel, this.#countsAt);
    const counts = new Int32Array(SYMBOLS);
    for (let symbol = 0; symbol < SYMBOLS; symbol++) {
      for (let nth = 0; nth < 4; nth++)
        counts[symbol] = (counts[symbol] as number) + (tables[nth * COUNTS_STRIDE + symbol] as number);
    }
    return counts;
  }

  /** Sub, and Huffman codes alone: zlib's search for matches costs more than it finds here. */
  #codeByZlib(lines: number, bytes: number): Uint8Array[] {
    const filtered = new Uint8Array(bytes);
    const samples = this.#memory.bytes(this.samplesAt, lines * this.pitch);
    const bpp = this.#bytesPerPixel;
    for (let line = 0; line < lines; line++) {
      const from = line * this.pitch;
      const to = line * (this.#lineBytes + 1);
      filtered[to] = 1;
      for (let at = 0; at < this.#lineBytes; at++) {
        filtered[to + 1 + at] = (samples[from + at] as number) - (at < bpp ? 0 : (samples[from + at - bpp] as number));
      }
    }
    this.#adler = adlerOf(filtered, this.#adler);
    const options = { level: 1, strategy: constants.Z_HUFFMAN_ONLY, finishFlush: constants.Z_SYNC_FLUSH };
    // Without zlib's header; a sync flush ends in an empty stored block too.
    return [deflateSync(filtered, options).subarray(2)];
  }
}

/** Uncompressed blocks, none the last. */
function storedBlocks(bytes: Uint8Array): Uint8Array[] {
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += STORED_BYTES_LIMIT) {
    const part = bytes.subarray(at, at + STORED_BYTES_LIMIT);
    const head = Buffer.alloc(5);
    head.writeUInt16LE(part.length, 1);
    head.writeUInt16LE(part.length ^ 0xffff, 3);
    blocks.push(head, part);
  }
  return blocks;
}

function entropyBits(counts: Int32Array): number {
  let total = 0;
  let weighted = 0;
  for (const count of counts) {
    if (count === 0) continue;
    total += count;
    weighted += count * Math.log2(count);
  }
  return total === 0 ? 0 : total * Math.log2(total) - weighted;
}

/** Adler-32 (RFC 1950), continued from `before`. */
function adlerOf(bytes: Uint8Array, before: number): number {
  let a = before & 0xffff;
  let b = before >>> 16;
  for (let from = 0; from < bytes.length; from += 5552) {
    for (const byte of bytes.subarray(from, from + 5552)) {
      a += byte;
      b += a;
    }
    a %= 65_521;
    b %= 65_521;
  }
  return ((b << 16) | a) >>> 0;
}
