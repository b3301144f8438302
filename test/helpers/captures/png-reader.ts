import { crc32, inflateSync } from "node:zlib";

export interface GreyPicture {
  width: number;
  height: number;
  bitDepth: number;
  /** [height, width], row-major. */
  samples: Uint16Array;
  texts: Record<string, string>;
}

const SIGNATURE = "89504e470d0a1a0a";

/** Bit depths of every colour type that there is (ISO/IEC 15948, table 11.1). */
const BIT_DEPTHS = new Map([
  [0, [1, 2, 4, 8, 16]],
  [2, [8, 16]],
  [3, [1, 2, 4, 8]],
  [4, [8, 16]],
  [6, [8, 16]],
]);

/** `damaged`: no PNG, or one that is broken; `unsupported`: one of a sort that is not read here. */
export class PngError extends Error {
  readonly kind: "damaged" | "unsupported";

  constructor(kind: PngError["kind"], message: string) {
    super(message);
    this.name = "PngError";
    this.kind = kind;
  }
}

function damaged(message: string): PngError {
  return new PngError("damaged", message);
}

export interface PalettePicture extends GreyPicture {
  /** Bodies of PLTE and tRNS. */
  palette: Buffer;
  alphas: Buffer;
}

/** Reads greyscale pictures of 8 and 16 bits that are not interlaced. @throws {PngError} for everything else */
export function readGreyPng(bytes: Uint8Array): GreyPicture {
  const { palette: _, alphas: __, ...picture } = readPng(bytes, 0);
  return picture;
}

/** The same of pictures with a palette, of 8 bits. */
export function readPalettePng(bytes: Uint8Array): PalettePicture {
  return readPng(bytes, 3);
}

function readPng(bytes: Uint8Array, readType: 0 | 3): PalettePicture {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (file.subarray(0, 8).toString("hex") !== SIGNATURE) throw damaged("no PNG signature");
  const texts: Record<string, string> = {};
  const bodies: Record<string, Buffer> = {};
  const data: Buffer[] = [];
  let header: Buffer | undefined;
  let isEnded = false;
  for (let at = 8; at < file.length; ) {
    if (isEnded) throw damaged("bytes behind IEND");
    if (at + 12 > file.length) throw damaged("the file ends within a chunk");
    const length = file.readUInt32BE(at);
    const type = file.toString("latin1", at + 4, at + 8);
    if (at + 12 + length > file.length) throw damaged(`the file ends within ${type}`);
    const body = file.subarray(at + 8, at + 8 + length);
    if (crc32(file.subarray(at + 4, at + 8 + length)) !== file.readUInt32BE(at + 8 + length)) {
      throw damaged(`${type} does not match its CRC`);
    }
    bodies[type] = body;
    if (type === "IHDR") header = body;
    else if (header === undefined) throw damaged(`${type} before IHDR`);
    else if (type === "IDAT") data.push(body);
    else if (type === "IEND") isEnded = true;
    else if (type === "tEXt")
      texts[body.toString("latin1", 0, body.indexOf(0))] = body.toString("latin1", body.indexOf(0) + 1);
    else if (type.charCodeAt(0) < 0x60 && type !== "PLTE") throw damaged(`chunk ${type} is critical and not known`);
    at += 12 + length;
  }
  if (header === undefined) throw damaged("no IHDR");
  if (header.length !== 13) throw damaged(`IHDR of ${header.length} bytes`);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const [bitDepth = 0, colourType = 0, compression, filter, interlace = 0] = header.subarray(8);
  if (!BIT_DEPTHS.get(colourType)?.includes(bitDepth)) {
    throw damaged(`no picture has bit depth ${bitDepth} with colour type ${colourType}`);
  }
  if (width === 0 || height === 0 || compression !== 0 || filter !== 0 || interlace > 1) {
    throw damaged(`no picture has IHDR ${header.toString("hex")}`);
  }
  if (data.length === 0) throw damaged("no IDAT");
  if (!isEnded) throw damaged("no IEND");
  if ((bitDepth !== 8 && bitDepth !== 16) || colourType !== readType || interlace !== 0) {
    const interlaced = interlace === 0 ? "" : ", interlaced";
    throw new PngError("unsupported", `bit depth ${bitDepth} with colour type ${colourType}${interlaced}`);
  }
  const bpp = bitDepth / 8;
  const lineBytes = width * bpp;
  const filtered = inflated(Buffer.concat(data));
  if (filtered.length !== height * (lineBytes + 1)) throw damaged(`${filtered.length} bytes of lines`);
  const raw = Buffer.alloc(height * lineBytes);
  for (let line = 0; line < height; line++) {
    const type = filtered[line * (lineBytes + 1)] as number;
    for (let at = 0; at < lineBytes; at++) {
      const to = line * lineBytes + at;
      const left = at < bpp ? 0 : (raw[to - bpp] as number);
      const above = line === 0 ? 0 : (raw[to - lineBytes] as number);
      const corner = at < bpp || line === 0 ? 0 : (raw[to - lineBytes - bpp] as number);
      raw[to] = (filtered[line * (lineBytes + 1) + 1 + at] as number) + predict(type, left, above, corner);
    }
  }
  const samples = Uint16Array.from({ length: width * height }, (_, at) =>
    bpp === 1 ? (raw[at] as number) : raw.readUInt16BE(2 * at),
  );
  const { PLTE: palette = Buffer.alloc(0), tRNS: alphas = Buffer.alloc(0) } = bodies;
  return { width, height, bitDepth, samples, texts, palette, alphas };
}

function inflated(data: Buffer): Buffer {
  try {
    return inflateSync(data);
  } catch (error) {
    throw damaged(`IDAT does not inflate: ${(error as Error).message}`);
  }
}

function predict(type: number, left: number, above: number, corner: number): number {
  if (type > 4) throw damaged(`filter type ${type}`);
  if (type < 3) return [0, left, above][type] as number;
  if (type === 3) return (left + above) >> 1;
  const estimate = left + above - corner;
  const [toLeft, toAbove, toCorner] = [
    Math.abs(estimate - left),
    Math.abs(estimate - above),
    Math.abs(estimate - corner),
  ];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}
