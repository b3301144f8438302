/**
 * Rows of a series by the kernels of assembly/csv/csv-rows.ts where there is WebAssembly and they have the numbers (i32 with a scale that is a
 * power of ten, unscaled f32), else by csv-encoder.ts, which says what the text is: both write the same bytes.
 */
import { itemBytes } from "../../../core/capture/capture.js";
import { TIME_LIMIT_US } from "../../../core/timestamps.js";
import type { KernelMemory } from "../kernel-memory.js";
import { type CsvAppend, csvRoomBytes, decimalsOf, encodeCsvRows } from "./csv-encoder.js";
import { SHORTEST_SINGLES } from "./shortest-singles.js";

/** Decimals of integers that the kernel's sixteen bytes of text have room for. */
const MOST_DECIMALS = 12;
/** Exponent's bits of the f32 whose digits the kernel finds: from 2^-19, below which String writes exponents, up to 2^25, f32's whole numbers. */
const FIRST_EXPONENT = 127 - 19;
const LAST_EXPONENT = 127 + 24;

/** The block that assembly/csv/csv-rows.ts takes: three f64, then words from this one on. */
const SERIES_BYTES = 64;
const FIRST_WORD = 6;

/** Lanes of what the kernel swizzles: minus, point, zeros, and ten digits. */
const LANES = 16;
const MINUS_LANE = 0;
const POINT_LANE = 1;
const ZERO_LANE = 2;
const FIRST_DIGIT_LANE = 6;

/** By decimals, sign and the lane of the first digit: the order of lanes in the text. */
const MASKS = textMasks(MOST_DECIMALS + 1);
const EXPONENTS = exponentTable();
const PREFIX_BYTES = 32;

/**
 * The text of some rows, which may be of several appends, in a memory.
 *
 * Memory: room for the longest text (`csvRoomBytes`), the values, and 16 KiB.
 */
export class CsvRows {
  readonly #memory: KernelMemory;
  readonly #channels: number;
  readonly #outAt: number;
  readonly #valuesAt: number;
  readonly #series: number;
  readonly #tables: { masks: number; exponents: number; prefix: number };
  #codesAt = 0;
  #codesRoom = 0;
  #lengthBytes = 0;

  /** @param rows that will be written at most */
  constructor(memory: KernelMemory, channels: number, rows: number) {
    this.#memory = memory;
    this.#channels = channels;
    this.#outAt = memory.allocate(csvRoomBytes(channels, rows));
    this.#valuesAt = memory.allocate(rows * channels * Float64Array.BYTES_PER_ELEMENT);
    this.#series = memory.allocate(SERIES_BYTES);
    const prefix = memory.allocate(PREFIX_BYTES);
    this.#tables = { masks: place(memory, MASKS), exponents: place(memory, EXPONENTS), prefix };
  }

  get lengthBytes(): number {
    return this.#lengthBytes;
  }

  /** The text, in a buffer of its own. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#memory.copyOf(this.#outAt, this.#lengthBytes);
  }

  /**
   * Writes rows behind those before.
   *
   * @param values little-endian, [rows, channels], row-major; aligned to its items
   * @param firstRow of these values within the append
   */
  write(append: CsvAppend, firstRow: number, values: Uint8Array): void {
    const memory = this.#memory;
    const rows = values.length / (this.#channels * itemBytes(append.dtype));
    const outAt = this.#outAt + this.#lengthBytes;
    const kind = kindOf(append, firstRow + rows);
    if (memory.wasm === null || kind === undefined) {
      const out = memory.bytes(outAt, csvRoomBytes(this.#channels, rows));
      this.#lengthBytes += encodeCsvRows(append, this.#channels, firstRow, values, out);
      return;
    }
    this.#describe(append, firstRow, kind);
    memory.bytes(this.#valuesAt, values.length).set(values);
    const write = kind === "singles" ? memory.wasm.writeSingleRows : memory.wasm.writeDecimalRows;
    this.#lengthBytes += write(this.#series, this.#valuesAt, rows, outAt);
  }

  #describe(append: CsvAppend, firstRow: number, kind: Kind): void {
    const memory = this.#memory;
    const codes = codesOf(append);
    if (codes.length > this.#codesRoom) {
      this.#codesAt = memory.allocate(codes.byteLength);
      this.#codesRoom = codes.length;
    }
    memory.bytes(this.#codesAt, codes.byteLength).set(new Uint8Array(codes.buffer));
    const { masks, exponents, prefix } = this.#tables;
    memory.doubles(this.#series, 3).set([append.firstTimestampUs, append.samplePeriodUs, firstRow]);
    const decimals = kind === "singles" ? 0 : kind.decimals;
    const words = [this.#channels, decimals, this.#codesAt, codes.length, masks, exponents, prefix];
    memory.words(this.#series, SERIES_BYTES / 4).set(words, FIRST_WORD);
  }
}

type Kind = "singles" | { decimals: number };

/** Undefined for what the kernels do not write. */
function kindOf(append: CsvAppend, endRow: number): Kind | undefined {
  const { dtype, firstTimestampUs, samplePeriodUs } = append;
  if (firstTimestampUs < 0 || firstTimestampUs + endRow * samplePeriodUs >= TIME_LIMIT_US) return undefined;
  if ((append.valueOffset ?? 0) !== 0) return undefined;
  const scale = append.valueScale ?? 1;
  if (dtype === "f32" && scale === 1) return "singles";
  const decimals = dtype === "i32" ? decimalsOf(scale) : undefined;
  return decimals === undefined || decimals > MOST_DECIMALS ? undefined : { decimals };
}

function codesOf({ dtype, invalid }: CsvAppend): Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer> {
  // A code that no i32 is stands for nothing; one that no f32 is, for the f32 nearest to it.
  return dtype === "i32" ? Int32Array.from(invalid.filter((code) => (code | 0) === code)) : Float32Array.from(invalid);
}

function place(memory: KernelMemory, bytes: Uint8Array): number {
  const at = memory.allocate(bytes.length);
  memory.bytes(at, bytes.length).set(bytes);
  return at;
}

function textMasks(mostDecimals: number): Uint8Array {
  const masks = new Uint8Array((mostDecimals + 1) * 2 * LANES * LANES);
  for (let decimals = 0; decimals <= mostDecimals; decimals++) {
    const ones = LANES - 1 - decimals;
    for (let sign = 0; sign < 2; sign++) {
      for (let first = 0; first < LANES; first++) {
        const lanes = sign === 1 ? [MINUS_LANE] : [];
        for (let lane = first; lane < LANES; lane++) {
          lanes.push(lane < FIRST_DIGIT_LANE ? ZERO_LANE : lane);
          if (lane === ones && decimals > 0) lanes.push(POINT_LANE);
        }
        masks.set(lanes.slice(0, LANES), ((2 * decimals + sign) * LANES + first) * LANES);
      }
    }
  }
  return masks;
}

/** 32 bytes by the exponent's bits: power of ten, what is surely within reach and what surely is not (f64), decimals (i32), -1 outside. */
function exponentTable(): Uint8Array {
  const bytes = new Uint8Array(32 * 256);
  const doubles = new Float64Array(bytes.buffer);
  const words = new Int32Array(bytes.buffer);
  for (let exponent = 0; exponent < 256; exponent++) {
    const isWithin = exponent >= FIRST_EXPONENT && exponent <= LAST_EXPONENT;
    words[8 * exponent + 6] = isWithin ? (SHORTEST_SINGLES.decimals[exponent] as number) : -1;
    if (!isWithin) continue;
    const power = SHORTEST_SINGLES.powers[exponent] as number;
    const reach = (SHORTEST_SINGLES.halfUnits[exponent] as number) * power;
    doubles.set([power, reach * SHORTEST_SINGLES.surely, reach / SHORTEST_SINGLES.surely], 4 * exponent);
  }
  return bytes;
}
