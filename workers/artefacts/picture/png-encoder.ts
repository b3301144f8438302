/**
 * PNG (ISO/IEC 15948), greyscale of 8 or 16 bits or a palette of 8, written strip by strip.
 *
 * A strip of lines is filtered with sub, up or Paeth: whichever has the lowest entropy in every eighth of its lines. It
 * is one deflate block with a Huffman code of its own, made for these lines. The code covers literals and repetitions
 * of the pixel before (matches at its distance). Every strip ends at a byte, by an empty stored block, and is one IDAT.
 * Deflate could find little else in pictures of height and luminance, and this is several times as fast as zlib's
 * fastest level. The coding is in assembly/png/strip-coding.ts.
 *
 * Memory: about three times a strip (448 KiB at most, or one line), 288 KiB of codes, and the picture as coded so far,
 * twice at the end. The room that is reserved for the picture is as large as its samples.
 */
import { crc32 } from "node:zlib";
import type { KernelMemory } from "../kernel-memory.js";

/**
 * Largest strip. With smaller strips there are more codes to make. The samples of a larger one no longer fit in the
 * cache together with its pairs of codes.
 */
const STRIP_BYTES = 448 * 1024;
const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
/** Length, type and CRC of a chunk. */
const CHUNK_BYTES = 12;
/** Bytes of a file beside texts, palette and strips: signature, IHDR, tRNS, IEND, zlib's header, end and checksum. */
const FILE_BYTES = 128;
/** Colour types. */
const GREY = 0;
const INDEXED = 3;
/** Deflate with a window of 32 KiB, no dictionary. */
const ZLIB_HEADER = Uint8Array.of(0x78, 0x01);
/** The size of the `work` memory of assembly/png/strip-coding.ts. */
const WORK_BYTES = 288 * 1024;
/** The longest header of a block, and some bytes that are written after the last one. */
const BLOCK_HEADER_BYTES = 1024;
/** The length, 0, and its complement. They come after a stored block's three bits and the rest of their byte. */
const EMPTY_BLOCK_LENGTHS = [0, 0, 0xff, 0xff];
/** Heads of stored blocks. A strip that cannot be made smaller grows by these and by a thousandth of itself. */
const STORED_OVERHEAD_BYTES = 64;

export interface PngPicture {
  width: number;
  height: number;
  bitDepth: 8 | 16;
  /** Red, green and blue of each sample, 768 bytes. Sample 0 is transparent. Without a palette the samples are grey. */
  palette?: Uint8Array;
  /** Keyword and text, Latin-1, as tEXt chunks. */
  texts: readonly (readonly [keyword: string, text: string])[];
}

/** Puts the big-endian samples of `count` lines at an address of the memory. Line n begins `n * pitch` bytes on. */
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

/**
 * The file so far, in the memory. Room is taken for the longest possible file, but the system only gives what is
 * written.
 */
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

  /** Adds the strip whose samples the coder has. */
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
  /** Where the samples of the strip's first line go, and the bytes from one line to the next. */
  readonly samplesAt: number;
  readonly pitch: number;
  /** The most bytes that a strip takes in the file, and the room that it takes while it is coded. */
  readonly storedBytes: number;
  readonly roomBytes: number;
  readonly #memory: KernelMemory;
  readonly #bytesPerPixel: number;
  readonly #lineBytes: number;
  readonly #filteredAt: number;
  /** The work memory. It begins with the checksum so far. */
  readonly #workAt: number;

  constructor(memory: KernelMemory, { width, height, bitDepth }: PngPicture) {
    this.#memory = memory;
    this.#bytesPerPixel = bitDepth / 8;
    this.#lineBytes = width * this.#bytesPerPixel;
    const mostLines = Math.max(1, Math.floor(STRIP_BYTES / (this.#lineBytes + 1)));
    this.linesPerStrip = Math.ceil(height / Math.ceil(height / mostLines));
    // There are zeros before each line, for the filters. After it there is room for reads of 16 bytes and writes of 14.
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

  /** Writes the strip as part of the stream. Gives the number of bytes. */
  code(lines: number, at: number): number {
    const samples = [this.samplesAt, this.pitch, this.#lineBytes, lines, this.#bytesPerPixel] as const;
    return this.#memory.kernels.codeStrip(...samples, this.#filteredAt, this.#workAt, at);
  }

  /** The bytes that end the stream. */
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
