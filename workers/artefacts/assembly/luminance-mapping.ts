/** `mapLuminance` of kernels/sample-mapping.ts for sixteen samples at a time. */

// @ts-nocheck: AssemblyScript

import { setU8, u16At } from "./linear-memory.js";

export function mapLuminance(raw: i32, count: i32, shift: i32, samples: i32): void {
  const most = i16x8.splat(255);
  let at = 0;
  for (; at + 16 <= count; at += 16) {
    const first = i16x8.min_u(i16x8.shr_u(v128.load(<usize>(raw + (at << 1))), shift), most);
    const second = i16x8.min_u(i16x8.shr_u(v128.load(<usize>(raw + (at << 1)), 16), shift), most);
    v128.store(<usize>(samples + at), i8x16.narrow_i16x8_u(first, second));
  }
  for (; at < count; at++) {
    const sample = u16At(raw, at) >> shift;
    setU8(samples, at, sample > 255 ? 255 : sample);
  }
}
