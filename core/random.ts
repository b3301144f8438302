/**
 * A small seeded generator for what must be repeatable from a printed seed: the demo cell, property tests, fuzzing. Not for secrets or ids.
 *
 * sfc32 (Chris Doty-Humphrey, PractRand), seeded through splitmix32 so that neighbouring seeds give unrelated streams.
 */
export interface Random {
  /** Uniform in [0, 1), 32 bits of resolution. */
  next(): number;
  /** Uniform integer in [minimum, maximum], both included. */
  integer(minimum: number, maximum: number): number;
  /** Standard normal deviate (Box-Muller). */
  normal(): number;
  /** True with the given probability. */
  chance(probability: number): boolean;
  /** One of the items, which must not be empty. */
  pick<T>(items: readonly T[]): T;
  /** `length` random bytes. */
  bytes(length: number): Uint8Array;
}

export function createRandom(seed: number): Random {
  let splitmixState = seed | 0;
  const splitmix32 = (): number => {
    splitmixState = (splitmixState + 0x9e3779b9) | 0;
    let z = splitmixState;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return z ^ (z >>> 16);
  };
  let a = splitmix32();
  let b = splitmix32();
  let c = splitmix32();
  let counter = 1;
  const nextUint32 = (): number => {
    const result = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + result;
    return result >>> 0;
  };
  for (let i = 0; i < 12; i++) nextUint32();

  const next = (): number => nextUint32() / 0x1_0000_0000;
  return {
    next,
    integer: (minimum, maximum) => minimum + Math.floor(next() * (maximum - minimum + 1)),
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined && items.length === 0) throw new RangeError("pick: no items");
      return item as (typeof items)[number];
    },
    bytes: (length) => {
      const bytes = new Uint8Array(length);
      for (let i = 0; i < length; i++) bytes[i] = nextUint32();
      return bytes;
    },
  };
}
