/**
 * PNG (ISO/IEC 15948), greyscale of 8 or 16 bits or a palette of 8, written strip by strip: a strip of lines is filtered with sub, up or Paeth, whichever has the
 * lowest entropy in every eighth of its lines, and is one deflate block with a Huffman code of its own, made for what these lines hold, over
 * literals and repetitions of the pixel before (matches at its distance). Every strip ends at a byte, by an empty stored block, and is one
 * IDAT. Pictures of height and luminance have little else that deflate could find, and this is several times as fast as zlib's fastest.
 * assembly/png/strip-coding.ts does it.
 *
 * Memory: some three times a strip (448 KiB at most, or one line), 288 KiB of codes, and the picture as it is coded so far, twice at the end. The room
 * that is reserved for it is that of its samples.
 */
import { crc32 } from "node:zlib";
import type { KernelMemory } from "../kernel-memory.js";

/** At most: fewer strips have fewer codes to make, and a longer one has its samples no more in the cache beside its pairs of codes. */
const STRIP_BYTES = 448 * 1024;
const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
/** Length, type and CRC of a chunk. */
const CHUNK_BYTES = 12;
/** Of a file beside texts, palette and strips: signature, IHDR, tRNS, IEND, zlib's header, end and checksum. */
const FILE_BYTES = 128;
/** Colour types. */
const GREY = 0;
const INDEXED = 3;
/** Deflate with a window of 32 KiB, no dictionary. */
const ZLIB_HEADER = Uint8Array.of(0x78, 0x01);
/** What assembly/png/strip-coding.ts works with. */
const WORK_BYTES = 288 * 1024;
/** The longest header of a block, and some bytes that are written beyond the last. */
const BLOCK_HEADER_BYTES = 1024;
/** Behind a stored block's three bits and what is left of their byte: its length, 0, and the complement. */
const EMPTY_BLOCK_LENGTHS = [0, 0, 0xff, 0xff];
/** What a strip that cannot be made smaller takes more, beside a thousandth of itself: heads of stored blocks. */
const STORED_OVERHEAD_BYTES = 64;

export interface PngPicture {
  width: number;
  height: number;
  bitDepth: 8 | 16;
  /** Red, green and blue of each sample, 768 bytes. Sample 0 is transparent. Absent: the samples are grey. */
  palette?: Uint8Array;
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
  const { width, height, bitDepth, palette } = picture;
  const coder = new StripCoder(memory, picture);
  const file = new PngFile(memory, picture, coder);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = bitDepth;
  header[9] = palette === undefined ? GREY : INDEXED;
  file.chunk("IHDR", header);
  for (const [keyword, text] of picture.texts) file.chunk("tEXt", Buffer.from(`${keyword}\0${text}`, "latin1"));
  if (palette !== undefined) {
    file.chunk("PLTE", palette);
    file.chunk("tRNS", Uint8Array.of(0));
  }
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

  constructor(memory: KernelMemory, { height, texts, palette }: PngPicture, coder: StripCoder) {
    this.#memory = memory;
    this.#coder = coder;
    const strips = Math.ceil(height / coder.linesPerStrip);
    const textBytes = texts.reduce((sum, [keyword, text]) => sum + keyword.length + text.length + 1 + CHUNK_BYTES, 0);
    const headBytes = textBytes + (palette === undefined ? 0 : palette.length + CHUNK_BYTES);
    const lastStrip = coder.roomBytes - coder.storedBytes;
    this.#startAt = memory.allocate(headBytes + strips * (coder.storedBytes + CHUNK_BYTES) + lastStrip + FILE_BYTES);
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
  /** Begins with the checksum so far. */
  readonly #workAt: number;

  constructor(memory: KernelMemory, { width, height, bitDepth }: PngPicture) {
    this.#memory = memory;
    this.#bytesPerPixel = bitDepth / 8;
    this.#lineBytes = width * this.#bytesPerPixel;
    const mostLines = Math.max(1, Math.floor(STRIP_BYTES / (this.#lineBytes + 1)));
    this.linesPerStrip = Math.ceil(height / Math.ceil(height / mostLines));
    // Zeros before each line, for the filters; room behind it, for reads of 16 bytes and writes of 14.
    this.pitch = Math.ceil((this.#lineBytes + 16) / 16) * 16;
    this.samplesAt = memory.allocate(this.pitch * this.linesPerStrip + 32) + 16;
    const before = memory.bytes(this.samplesAt - 2, this.pitch * (this.linesPerStrip - 1) + 2);
    for (let at = 0; at < before.length; at += this.pitch) before.fill(0, at, at + 2);
    const stripBytes = this.linesPerStrip * (this.#lineBytes + 1);
    this.#filteredAt = memory.allocate(stripBytes + 32);
    this.#workAt = memory.allocate(WORK_BYTES);
    this.#adler = 1;
    this.storedBytes = stripBytes + (stripBytes >> 10) + STORED_OVERHEAD_BYTES;
    this.roomBytes = 2 * stripBytes + BLOCK_HEADER_BYTES;
  }

  /** Writes the strip as part of the stream; gives its bytes. */
  code(lines: number, at: number): number {
    const samples = [this.samplesAt, this.pitch, this.#lineBytes, lines, this.#bytesPerPixel] as const;
    return this.#memory.kernels.codeStrip(...samples, this.#filteredAt, this.#workAt, at);
  }

  /** What ends the stream. */
  end(): Uint8Array {
    const end = Buffer.from([1, ...EMPTY_BLOCK_LENGTHS, 0, 0, 0, 0]);
    end.writeUInt32BE(this.#adler, 5);
    return end;
  }

  get #adler(): number {
    return (this.#memory.words(this.#workAt, 1)[0] as number) >>> 0;
  }

  set #adler(checksum: number) {
    this.#memory.words(this.#workAt, 1)[0] = checksum;
  }
}
