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

export interface PalettePicture extends GreyPicture {
  /** Bodies of PLTE and tRNS. */
  palette: Buffer;
  alphas: Buffer;
}

/** Reads greyscale pictures of 8 and 16 bits that are not interlaced. @throws {Error} for everything else */
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
  if (file.subarray(0, 8).toString("hex") !== SIGNATURE) throw new Error("no PNG signature");
  const texts: Record<string, string> = {};
  const bodies: Record<string, Buffer> = {};
  const data: Buffer[] = [];
  let header: Buffer | undefined;
  let isEnded = false;
  for (let at = 8; at < file.length; ) {
    if (isEnded) throw new Error("bytes behind IEND");
    if (at + 12 > file.length) throw new Error("the file ends within a chunk");
    const length = file.readUInt32BE(at);
    const type = file.toString("latin1", at + 4, at + 8);
    if (at + 12 + length > file.length) throw new Error(`the file ends within ${type}`);
    const body = file.subarray(at + 8, at + 8 + length);
    if (crc32(file.subarray(at + 4, at + 8 + length)) !== file.readUInt32BE(at + 8 + length)) {
      throw new Error(`${type} does not match its CRC`);
    }
    bodies[type] = body;
    if (type === "IHDR") header = body;
    else if (header === undefined) throw new Error(`${type} before IHDR`);
    else if (type === "IDAT") data.push(body);
    else if (type === "IEND") isEnded = true;
    else if (type === "tEXt")
      texts[body.toString("latin1", 0, body.indexOf(0))] = body.toString("latin1", body.indexOf(0) + 1);
    else if (type.charCodeAt(0) < 0x60 && type !== "PLTE") throw new Error(`chunk ${type} is critical and not known`);
    at += 12 + length;
  }
  if (header === undefined) throw new Error("no IHDR");
  if (header.length !== 13) throw new Error(`IHDR of ${header.length} bytes`);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const [bitDepth = 0, colourType, compression, filter, interlace] = header.subarray(8);
  const isRead = (bitDepth === 8 || bitDepth === 16) && colourType === readType;
  if (!isRead || width === 0 || height === 0 || compression !== 0 || filter !== 0 || interlace !== 0) {
    throw new Error(`IHDR ${header.toString("hex")}`);
  }
  if (data.length === 0) throw new Error("no IDAT");
  if (!isEnded) throw new Error("no IEND");
  const bpp = bitDepth / 8;
  const lineBytes = width * bpp;
  const filtered = inflateSync(Buffer.concat(data));
  if (filtered.length !== height * (lineBytes + 1)) throw new Error(`${filtered.length} bytes of lines`);
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

function predict(type: number, left: number, above: number, corner: number): number {
  if (type > 4) throw new Error(`filter type ${type}`);
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
