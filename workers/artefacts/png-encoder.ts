/**
 * Greyscale PNG (ISO/IEC 15948), 8 or 16 bits, written strip by strip: a strip of lines is filtered with sub, up or Paeth, whichever has the
 * lowest entropy in every eighth of its lines, and is one deflate block with a Huffman code of its own, made for what these lines hold, over
 * literals and repetitions of the pixel before (matches at its distance). Every strip ends at a byte, by an empty stored block, and is one IDAT. Pictures of height and luminance have little else that deflate could find, and this
 * is several times as fast as zlib's fastest. Without WebAssembly zlib codes the strips.
 *
 * Memory: some four times a strip (256 KiB, or one line), 256 KiB of codes, and the picture as it is coded so far, twice at the end. The room
 * that is reserved for it is that of its samples.
 */
import { constants, crc32, deflateSync } from "node:zlib";
import { BitWriter, codeLengths, codeWords, writeBlockHeader } from "./huffman-code.js";
import type { KernelMemory, StripKernels } from "./kernel-memory.js";

const STRIP_BYTES = 256 * 1024;
const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
/** Length, type and CRC of a chunk. */
const CHUNK_BYTES = 12;
/** Of a file beside texts and strips: signature, IHDR, IEND, zlib's header, end and checksum. */
const FILE_BYTES = 128;
/** Deflate with a window of 32 KiB, no dictionary. */
const ZLIB_HEADER = Uint8Array.of(0x78, 0x01);
const SUB = 1;
/** Sub, up and Paeth. */
const FILTER_TYPES = [SUB, 2, 4];
/** Of a strip of some size every so many lines tell which filter suits it, and what code. */
const SAMPLED_STEP = 8;
const LEAST_SAMPLED_BYTES = 64 * 1024;
/** What a symbol that was seen counts beside one that was not. */
const SEEN_WEIGHT = 16;
/** Four at a time are coded before bits are written out: more would not fit 64 bits. */
const MAXIMUM_CODE_BITS = 13;
const SYMBOLS = 286;
const END_OF_BLOCK = 256;
/** Codes of two bytes, and what it takes to make them. */
const PAIRS_BYTES = 4 * 66_048;
/** The longest header of a block, and some bytes that are written beyond the last. */
const BLOCK_HEADER_BYTES = 1024;
/** Of one of the four tables of `countSymbols`. */
const COUNTS_STRIDE = 288;
/** Behind a stored block's three bits and what is left of their byte: its length, 0, and the complement. */
const EMPTY_BLOCK_LENGTHS = [0, 0, 0xff, 0xff];
const STORED_BYTES_LIMIT = 65_535;
const STORED_HEAD_BYTES = 5;
/** What a strip that cannot be made smaller takes more, beside a thousandth of itself: heads of stored blocks, ours and zlib's. */
const STORED_OVERHEAD_BYTES = 64;

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
  const coder = new StripCoder(memory, picture);
  const file = new PngFile(memory, picture, coder);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = bitDepth;
  file.chunk("IHDR", header);
  for (const [keyword, text] of picture.texts) file.chunk("tEXt", Buffer.from(`${keyword}\0${text}`, "latin1"));
  for (let line = 0; line < height; line += coder.linesPerStrip) {
    const lines = Math.min(coder.linesPerStrip, height - line);
    await source(line, lines, coder.samplesAt, coder.pitch);
    file.strip(lines, line === 0, line + lines === height);
  }
  file.chunk("IEND", new Uint8Array(0));
  return file.bytes;
}

/** The file so far, in the memory: of the room for the longest that it can be, the system gives what is written. */
class PngFile {
  readonly #memory: KernelMemory;
  readonly #coder: StripCoder;
  readonly #startAt: number;
  #at: number;

  constructor(memory: KernelMemory, { height, texts }: PngPicture, coder: StripCoder) {
    this.#memory = memory;
    this.#coder = coder;
    const strips = Math.ceil(height / coder.linesPerStrip);
    const textBytes = texts.reduce((sum, [keyword, text]) => sum + keyword.length + text.length + 1 + CHUNK_BYTES, 0);
    const lastStrip = coder.roomBytes - coder.storedBytes;
    this.#startAt = memory.allocate(textBytes + strips * (coder.storedBytes + CHUNK_BYTES) + lastStrip + FILE_BYTES);
    this.#at = this.#startAt;
    this.#put(SIGNATURE);
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#memory.copyOf(this.#startAt, this.#at - this.#startAt);
  }

  chunk(type: string, body: Uint8Array): void {
    this.#inChunk(type, () => this.#put(body));
  }

  /** The strip whose samples the coder has. */
  strip(lines: number, isFirst: boolean, isLast: boolean): void {
    this.#inChunk("IDAT", () => {
      if (isFirst) this.#put(ZLIB_HEADER);
      this.#at += this.#coder.code(lines, this.#at);
      if (isLast) this.#put(this.#coder.end());
    });
  }

  #inChunk(type: string, write: () => void): void {
    const start = this.#at;
    this.#at += 4;
    this.#put(Buffer.from(type, "latin1"));
    write();
    const body = this.#memory.bytes(start + 4, this.#at - start - 4);
    putBigEndian(this.#memory, start, body.length - 4);
    putBigEndian(this.#memory, this.#at, crc32(body));
    this.#at += 4;
  }

  #put(bytes: Uint8Array): void {
    this.#memory.bytes(this.#at, bytes.length).set(bytes);
    this.#at += bytes.length;
  }
}

function putBigEndian(memory: KernelMemory, at: number, value: number): void {
  memory.bytes(at, 4).set([value >>> 24, value >>> 16, value >>> 8, value]);
}

class StripCoder {
  readonly linesPerStrip: number;
  /** Where samples of the strip's first line go, and from one line to the next. */
  readonly samplesAt: number;
  readonly pitch: number;
  /** Of a strip in the file at most; and room that it takes while it is coded. */
  readonly storedBytes: number;
  readonly roomBytes: number;
  readonly #memory: KernelMemory;
  readonly #bytesPerPixel: number;
  readonly #lineBytes: number;
  readonly #filteredAt: number;
  readonly #countsAt: number;
  readonly #codesAt: number;
  readonly #pairsAt: number;
  #adler = 1;

  constructor(memory: KernelMemory, { width, height, bitDepth }: PngPicture) {
    this.#memory = memory;
    this.#bytesPerPixel = bitDepth / 8;
    this.#lineBytes = width * this.#bytesPerPixel;
    this.linesPerStrip = Math.min(height, Math.max(1, Math.floor(STRIP_BYTES / (this.#lineBytes + 1))));
    // Zeros before each line, for the filters; room behind it, for reads of 16 bytes and writes of 14.
    this.pitch = Math.ceil((this.#lineBytes + 16) / 16) * 16;
    this.samplesAt = memory.allocate(this.pitch * this.linesPerStrip + 32) + 16;
    const before = memory.bytes(this.samplesAt - 2, this.pitch * (this.linesPerStrip - 1) + 2);
    for (let at = 0; at < before.length; at += this.pitch) before.fill(0, at, at + 2);
    const stripBytes = this.linesPerStrip * (this.#lineBytes + 1);
    this.#filteredAt = memory.allocate(stripBytes + 16);
    this.#countsAt = memory.allocate(4 * 4 * COUNTS_STRIDE);
    this.#codesAt = memory.allocate(4 * COUNTS_STRIDE);
    this.#pairsAt = memory.wasm === null ? 0 : memory.allocate(PAIRS_BYTES);
    this.storedBytes = stripBytes + (stripBytes >> 10) + STORED_OVERHEAD_BYTES;
    this.roomBytes = 2 * stripBytes + BLOCK_HEADER_BYTES;
  }

  /** Writes the strip as part of the stream; gives its bytes. */
  code(lines: number, at: number): number {
    const bytes = lines * (this.#lineBytes + 1);
    const { wasm } = this.#memory;
    return wasm === null ? this.#codeByZlib(lines, bytes, at) : this.#codeByKernels(wasm, lines, bytes, at);
  }

  /** What ends the stream. */
  end(): Uint8Array {
    const end = Buffer.from([1, ...EMPTY_BLOCK_LENGTHS, 0, 0, 0, 0]);
    end.writeUInt32BE(this.#adler, 5);
    return end;
  }

  #codeByKernels(wasm: StripKernels, lines: number, bytes: number, at: number): number {
    const filtered = this.#filteredAt;
    const { type, counts } = this.#chooseFilter(wasm, lines, bytes);
    this.#filter(wasm, 0, 1, lines, SUB, type);
    this.#adler = wasm.adler32(filtered, bytes, this.#adler) >>> 0;

    const lengths = codeLengths(counts, MAXIMUM_CODE_BITS);
    const writer = new BitWriter();
    writeBlockHeader(writer, lengths, this.#bytesPerPixel);
    codeWords(lengths, this.#memory.words(this.#codesAt, SYMBOLS));
    const head = writer.bytes;
    const out = this.#memory.bytes(at, this.roomBytes);
    out.set(head);
    out[head.length] = writer.lastByte;
    const bits = wasm.codeStrip(
      filtered,
      bytes,
      this.#bytesPerPixel,
      this.#codesAt,
      this.#pairsAt,
      at + head.length,
      writer.bitsOfLast,
    );
    // The three bits of the empty stored block, zeros, lie in the last byte, or in one more.
    const codedBytes = head.length + Math.ceil((bits + 3) / 8);
    if (codedBytes > bytes) return this.#store(bytes, at);
    const whole = head.length + Math.floor(bits / 8);
    out.fill(0, whole + (bits % 8 === 0 ? 0 : 1), codedBytes);
    if (bits % 8 !== 0) out[whole] = (out[whole] as number) & ((1 << (bits % 8)) - 1);
    out.set(EMPTY_BLOCK_LENGTHS, codedBytes);
    return codedBytes + EMPTY_BLOCK_LENGTHS.length;
  }

  /**
   * The filter of least entropy in some lines all over the strip, and what it makes of them: counts for a code of the whole strip. What does
   * not occur in them may elsewhere, and has a code as well.
   */
  #chooseFilter(wasm: StripKernels, lines: number, bytes: number): { type: number; counts: Int32Array } {
    const step = bytes < LEAST_SAMPLED_BYTES ? 1 : Math.max(1, Math.min(SAMPLED_STEP, Math.floor(lines / 4)));
    const first = step >> 1;
    const sampled = Math.ceil((lines - first) / step);
    let best = { type: 0, counts: new Int32Array(0), bits: Number.POSITIVE_INFINITY };
    for (const type of FILTER_TYPES) {
      this.#filter(wasm, first, step, sampled, first === 0 ? SUB : type, type);
      wasm.countSymbols(this.#filteredAt, sampled * (this.#lineBytes + 1), this.#bytesPerPixel, this.#countsAt);
      const counts = this.#memory.words(this.#countsAt, SYMBOLS);
      const bits = entropyBits(counts);
      if (bits < best.bits) best = { type, counts: counts.slice(), bits };
    }
    const { type, counts } = best;
    if (step > 1)
      for (let symbol = 0; symbol < SYMBOLS; symbol++) counts[symbol] = SEEN_WEIGHT * (counts[symbol] as number) + 1;
    counts[END_OF_BLOCK] = 1;
    return { type, counts };
  }

  #filter(wasm: StripKernels, first: number, step: number, lines: number, firstType: number, type: number): void {
    const { pitch } = this;
    const from = this.samplesAt + first * pitch;
    const bpp = this.#bytesPerPixel;
    wasm.filterStrip(from, pitch, step, this.#lineBytes, lines, bpp, firstType, type, this.#filteredAt);
  }

  /** Uncompressed blocks, none the last. */
  #store(bytes: number, at: number): number {
    let to = at;
    for (let from = 0; from < bytes; from += STORED_BYTES_LIMIT) {
      const length = Math.min(STORED_BYTES_LIMIT, bytes - from);
      const head = Buffer.alloc(STORED_HEAD_BYTES);
      head.writeUInt16LE(length, 1);
      head.writeUInt16LE(length ^ 0xffff, 3);
      this.#memory.bytes(to, head.length).set(head);
      this.#memory.bytes(to + head.length, length).set(this.#memory.bytes(this.#filteredAt + from, length));
      to += head.length + length;
    }
    return to - at;
  }

  /** Sub, and Huffman codes alone: zlib's search for matches costs more than it finds here. */
  #codeByZlib(lines: number, bytes: number, to0: number): number {
    const filtered = new Uint8Array(bytes);
    const samples = this.#memory.bytes(this.samplesAt, lines * this.pitch);
    const bpp = this.#bytesPerPixel;
    for (let line = 0; line < lines; line++) {
      const from = line * this.pitch;
      const to = line * (this.#lineBytes + 1);
      filtered[to] = SUB;
      for (let at = 0; at < this.#lineBytes; at++) {
        filtered[to + 1 + at] = (samples[from + at] as number) - (at < bpp ? 0 : (samples[from + at - bpp] as number));
      }
    }
    this.#adler = adlerOf(filtered, this.#adler);
    const options = { level: 1, strategy: constants.Z_HUFFMAN_ONLY, finishFlush: constants.Z_SYNC_FLUSH };
    // Without zlib's header; a sync flush ends in an empty stored block too.
    const coded = deflateSync(filtered, options).subarray(ZLIB_HEADER.length);
    this.#memory.bytes(to0, coded.length).set(coded);
    return coded.length;
  }
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
