const encoder = new TextEncoder();
const [ZERO, POINT, MINUS] = [48, 46, 45];
/** Four decimals, and a number that is an integer of 31 bits in their units. */
const DECIMALS = 10_000;
const MOST_SCALED = 2 ** 30;

/** UTF-8 text that grows at its end. Rows go into it piece by piece: strings in between would take half of the time. */
export class TextBytes {
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;

  /** @param roomBytes at first; it grows by itself @param room memory for it, used if it is large enough */
  constructor(roomBytes: number, room?: ArrayBuffer) {
    const isEnough = room !== undefined && room.byteLength >= roomBytes;
    this.#bytes = new Uint8Array(isEnough ? room : Buffer.allocUnsafeSlow(roomBytes).buffer);
  }

  get length(): number {
    return this.#length;
  }

  /** The text, in memory that is its own. */
  bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  add(bytes: Uint8Array): void {
    const start = this.#grow(bytes.length);
    // A call costs more than these few bytes.
    if (bytes.length > 32) this.#bytes.set(bytes, start);
    else for (let at = 0; at < bytes.length; at++) this.#bytes[start + at] = bytes[at] as number;
  }

  addAscii(text: string): void {
    const start = this.#grow(text.length);
    for (let at = 0; at < text.length; at++) this.#bytes[start + at] = text.charCodeAt(at);
  }

  /** As `String` writes it. Most measured values have few decimals: they need no string. */
  addNumber(value: number): void {
    const scaled = Math.round(Math.abs(value) * DECIMALS);
    // The quotient is the double that is nearest to this decimal number, which has few digits: so it is the shortest one for it.
    if (!(scaled <= MOST_SCALED) || scaled / DECIMALS !== Math.abs(value)) {
      this.addAscii(String(value));
      return;
    }
    if (value < 0) this.#add(MINUS);
    const whole = Math.trunc(scaled / DECIMALS);
    let divisor = 1;
    while (whole >= 10 * divisor) divisor *= 10;
    for (; divisor >= 1; divisor /= 10) this.#add(ZERO + (Math.trunc(whole / divisor) % 10));
    let rest = scaled % DECIMALS;
    if (rest > 0) this.#add(POINT);
    for (let digit = DECIMALS / 10; rest > 0; digit /= 10) {
      this.#add(ZERO + Math.trunc(rest / digit));
      rest %= digit;
    }
  }

  addText(text: string): void {
    if (text === "") return;
    // At most three bytes of UTF-8 for one UTF-16 unit.
    const start = this.#grow(3 * text.length);
    this.#length = start + encoder.encodeInto(text, this.#bytes.subarray(start)).written;
  }

  #add(byte: number): void {
    const start = this.#grow(1);
    this.#bytes[start] = byte;
  }

  /** @returns where the new bytes begin */
  #grow(moreBytes: number): number {
    const start = this.#length;
    this.#length += moreBytes;
    if (this.#length > this.#bytes.length) {
      const larger = new Uint8Array(2 * this.#length);
      larger.set(this.#bytes.subarray(0, start));
      this.#bytes = larger;
    }
    return start;
  }
}
