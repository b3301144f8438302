import type { Random } from "../../core/random.js";

const ALPHABETS = ["abcdefghijklmnopqrstuvwxyz_ 0123456789", "äöüß€", "😀🦊", "\ufeff\0\u2028"];

/** Any JSON value, at most so deep. */
export function randomValue(random: Random, depth: number): unknown {
  const kind = random.integer(0, depth > 0 ? 7 : 5);
  if (kind === 0) return null;
  if (kind === 1) return random.chance(0.5);
  if (kind === 2) return random.integer(-5, 300) * 2 ** random.integer(0, 50);
  if (kind === 3) return random.normal() * 10 ** random.integer(-20, 20);
  if (kind <= 5) return randomText(random);
  const length = random.integer(0, 20);
  if (kind === 6) return Array.from({ length }, () => randomValue(random, depth - 1));
  return Object.fromEntries(Array.from({ length }, () => [randomText(random), randomValue(random, depth - 1)]));
}

export function randomText(random: Random): string {
  const characters = [...random.pick(ALPHABETS), ...(random.chance(0.3) ? random.pick(ALPHABETS) : "")];
  return Array.from({ length: random.chance(0.1) ? random.integer(0, 400) : random.integer(0, 24) }, () =>
    random.pick(characters),
  ).join("");
}
