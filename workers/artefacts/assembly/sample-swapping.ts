/** kernels/sample-swapping.ts for eight at a time. */

// @ts-nocheck: AssemblyScript

import { i32At } from "./linear-memory.js";

/** What lies up to 14 bytes behind the samples is overwritten. */
export function swapSamples(raw: i32, count: i32, codes: i32, codeCount: i32, samples: i32): void {
  for (let at = 0; at < count; at += 8) {
    let values = v128.load(<usize>(raw + (at << 1)));
    for (let nth = 0; nth < codeCount; nth++) {
      values = v128.andnot(values, i16x8.eq(values, i16x8.splat(<i16>i32At(codes, nth))));
    }
    v128.store(<usize>(samples + (at << 1)), i8x16.shuffle(values, values, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  }
}
