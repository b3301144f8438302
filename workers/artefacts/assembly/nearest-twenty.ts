/**
 * Of twenty distances the nineteen smallest in rising order, and their sum from the smallest on, for two positions at a time. Twice ten are sorted
 * by A. Waksman's network of 29 comparators (D. E. Knuth, The Art of Computer Programming 3, 5.3.4), and merged by K. E. Batcher's odd-even
 * merge, 35 more; the wires are numbered by where they end. The test of the exact lanes has any order of distances sorted right.
 */

// @ts-nocheck: AssemblyScript

/**
 * @param places 20 addresses (i32); what is `at` bytes on from each are two distances
 * @param kept gets the worst of the nineteen, and from 16 bytes on all of them, where that is more than `limit` for one of the two
 * @returns the sums
 */
export function sumOfNearest(places: usize, at: usize, limit: v128, kept: usize): v128 {
  let v0 = v128.load(<usize>load<i32>(places, 0) + at);
  let v2 = v128.load(<usize>load<i32>(places, 4) + at);
  let v3 = v128.load(<usize>load<i32>(places, 8) + at);
  let v6 = v128.load(<usize>load<i32>(places, 12) + at);
  let v5 = v128.load(<usize>load<i32>(places, 16) + at);
  let v8 = v128.load(<usize>load<i32>(places, 20) + at);
  let v11 = v128.load(<usize>load<i32>(places, 24) + at);
  let v14 = v128.load(<usize>load<i32>(places, 28) + at);
  let v9 = v128.load(<usize>load<i32>(places, 32) + at);
  let v12 = v128.load(<usize>load<i32>(places, 36) + at);
  let t: v128;
  t = f64x2.pmin(v5, v12); v12 = f64x2.pmax(v5, v12); v5 = t;
  t = f64x2.pmin(v6, v9); v9 = f64x2.pmax(v6, v9); v6 = t;
  t = f64x2.pmin(v3, v14); v14 = f64x2.pmax(v3, v14); v3 = t;
  t = f64x2.pmin(v2, v11); v11 = f64x2.pmax(v2, v11); v2 = t;
  t = f64x2.pmin(v0, v8); v8 = f64x2.pmax(v0, v8); v0 = t;
  t = f64x2.pmin(v2, v5); v5 = f64x2.pmax(v2, v5); v2 = t;
  t = f64x2.pmin(v11, v12); v12 = f64x2.pmax(v11, v12); v11 = t;
  t = f64x2.pmin(v0, v6); v6 = f64x2.pmax(v0, v6); v0 = t;
  t = f64x2.pmin(v8, v9); v9 = f64x2.pmax(v8, v9); v8 = t;
  t = f64x2.pmin(v0, v3); v3 = f64x2.pmax(v0, v3); v0 = t;
  t = f64x2.pmin(v6, v11); v11 = f64x2.pmax(v6, v11); v6 = t;
  t = f64x2.pmin(v14, v12); v12 = f64x2.pmax(v14, v12); v14 = t;
  t = f64x2.pmin(v0, v2); v2 = f64x2.pmax(v0, v2); v0 = t;
  t = f64x2.pmin(v3, v5); v5 = f64x2.pmax(v3, v5); v3 = t;
  t = f64x2.pmin(v8, v14); v14 = f64x2.pmax(v8, v14); v8 = t;
  t = f64x2.pmin(v9, v12); v12 = f64x2.pmax(v9, v12); v9 = t;
  t = f64x2.pmin(v2, v3); v3 = f64x2.pmax(v2, v3); v2 = t;
  t = f64x2.pmin(v5, v11); v11 = f64x2.pmax(v5, v11); v5 = t;
  t = f64x2.pmin(v14, v9); v9 = f64x2.pmax(v14, v9); v14 = t;
  t = f64x2.pmin(v6, v8); v8 = f64x2.pmax(v6, v8); v6 = t;
  t = f64x2.pmin(v3, v8); v8 = f64x2.pmax(v3, v8); v3 = t;
  t = f64x2.pmin(v11, v9); v9 = f64x2.pmax(v11, v9); v11 = t;
  t = f64x2.pmin(v2, v6); v6 = f64x2.pmax(v2, v6); v2 = t;
  t = f64x2.pmin(v5, v14); v14 = f64x2.pmax(v5, v14); v5 = t;
  t = f64x2.pmin(v3, v6); v6 = f64x2.pmax(v3, v6); v3 = t;
  t = f64x2.pmin(v11, v14); v14 = f64x2.pmax(v11, v14); v11 = t;
  t = f64x2.pmin(v6, v5); v5 = f64x2.pmax(v6, v5); v6 = t;
  t = f64x2.pmin(v8, v11); v11 = f64x2.pmax(v8, v11); v8 = t;
  t = f64x2.pmin(v5, v8); v8 = f64x2.pmax(v5, v8); v5 = t;
  let v1 = v128.load(<usize>load<i32>(places, 40) + at);
  let v4 = v128.load(<usize>load<i32>(places, 44) + at);
  let v7 = v128.load(<usize>load<i32>(places, 48) + at);
  let v10 = v128.load(<usize>load<i32>(places, 52) + at);
  let v13 = v128.load(<usize>load<i32>(places, 56) + at);
  let v16 = v128.load(<usize>load<i32>(places, 60) + at);
  let v15 = v128.load(<usize>load<i32>(places, 64) + at);
  let v18 = v128.load(<usize>load<i32>(places, 68) + at);
  let v17 = v128.load(<usize>load<i32>(places, 72) + at);
  let v19 = v128.load(<usize>load<i32>(places, 76) + at);
  t = f64x2.pmin(v13, v19); v19 = f64x2.pmax(v13, v19); v13 = t;
  t = f64x2.pmin(v10, v17); v17 = f64x2.pmax(v10, v17); v10 = t;
  t = f64x2.pmin(v7, v18); v18 = f64x2.pmax(v7, v18); v7 = t;
  t = f64x2.pmin(v4, v15); v15 = f64x2.pmax(v4, v15); v4 = t;
  t = f64x2.pmin(v1, v16); v16 = f64x2.pmax(v1, v16); v1 = t;
  t = f64x2.pmin(v4, v13); v13 = f64x2.pmax(v4, v13); v4 = t;
  t = f64x2.pmin(v15, v19); v19 = f64x2.pmax(v15, v19); v15 = t;
  t = f64x2.pmin(v1, v10); v10 = f64x2.pmax(v1, v10); v1 = t;
  t = f64x2.pmin(v16, v17); v17 = f64x2.pmax(v16, v17); v16 = t;
  t = f64x2.pmin(v1, v7); v7 = f64x2.pmax(v1, v7); v1 = t;
  t = f64x2.pmin(v10, v15); v15 = f64x2.pmax(v10, v15); v10 = t;
  t = f64x2.pmin(v18, v19); v19 = f64x2.pmax(v18, v19); v18 = t;
  t = f64x2.pmin(v1, v4); v4 = f64x2.pmax(v1, v4); v1 = t;
  t = f64x2.pmin(v7, v13); v13 = f64x2.pmax(v7, v13); v7 = t;
  t = f64x2.pmin(v16, v18); v18 = f64x2.pmax(v16, v18); v16 = t;
  t = f64x2.pmin(v17, v19); v19 = f64x2.pmax(v17, v19); v17 = t;
  t = f64x2.pmin(v4, v7); v7 = f64x2.pmax(v4, v7); v4 = t;
  t = f64x2.pmin(v13, v15); v15 = f64x2.pmax(v13, v15); v13 = t;
  t = f64x2.pmin(v18, v17); v17 = f64x2.pmax(v18, v17); v18 = t;
  t = f64x2.pmin(v10, v16); v16 = f64x2.pmax(v10, v16); v10 = t;
  t = f64x2.pmin(v7, v16); v16 = f64x2.pmax(v7, v16); v7 = t;
  t = f64x2.pmin(v15, v17); v17 = f64x2.pmax(v15, v17); v15 = t;
  t = f64x2.pmin(v4, v10); v10 = f64x2.pmax(v4, v10); v4 = t;
  t = f64x2.pmin(v13, v18); v18 = f64x2.pmax(v13, v18); v13 = t;
  t = f64x2.pmin(v7, v10); v10 = f64x2.pmax(v7, v10); v7 = t;
  t = f64x2.pmin(v15, v18); v18 = f64x2.pmax(v15, v18); v15 = t;
  t = f64x2.pmin(v10, v13); v13 = f64x2.pmax(v10, v13); v10 = t;
  t = f64x2.pmin(v16, v15); v15 = f64x2.pmax(v16, v15); v16 = t;
  t = f64x2.pmin(v13, v16); v16 = f64x2.pmax(v13, v16); v13 = t;
  t = f64x2.pmin(v0, v1); v1 = f64x2.pmax(v0, v1); v0 = t;
  t = f64x2.pmin(v9, v17); v17 = f64x2.pmax(v9, v17); v9 = t;
  t = f64x2.pmin(v1, v9); v9 = f64x2.pmax(v1, v9); v1 = t;
  t = f64x2.pmin(v5, v13); v13 = f64x2.pmax(v5, v13); v5 = t;
  t = f64x2.pmin(v1, v5); v5 = f64x2.pmax(v1, v5); v1 = t;
  t = f64x2.pmin(v9, v13); v13 = f64x2.pmax(v9, v13); v9 = t;
  t = f64x2.pmin(v3, v7); v7 = f64x2.pmax(v3, v7); v3 = t;
  t = f64x2.pmin(v11, v15); v15 = f64x2.pmax(v11, v15); v11 = t;
  t = f64x2.pmin(v7, v11); v11 = f64x2.pmax(v7, v11); v7 = t;
  t = f64x2.pmin(v1, v3); v3 = f64x2.pmax(v1, v3); v1 = t;
  t = f64x2.pmin(v5, v7); v7 = f64x2.pmax(v5, v7); v5 = t;
  t = f64x2.pmin(v9, v11); v11 = f64x2.pmax(v9, v11); v9 = t;
  t = f64x2.pmin(v13, v15); v15 = f64x2.pmax(v13, v15); v13 = t;
  t = f64x2.pmin(v2, v4); v4 = f64x2.pmax(v2, v4); v2 = t;
  v12 = f64x2.pmin(v12, v19);
  t = f64x2.pmin(v4, v12); v12 = f64x2.pmax(v4, v12); v4 = t;
  t = f64x2.pmin(v8, v16); v16 = f64x2.pmax(v8, v16); v8 = t;
  t = f64x2.pmin(v4, v8); v8 = f64x2.pmax(v4, v8); v4 = t;
  t = f64x2.pmin(v12, v16); v16 = f64x2.pmax(v12, v16); v12 = t;
  t = f64x2.pmin(v6, v10); v10 = f64x2.pmax(v6, v10); v6 = t;
  t = f64x2.pmin(v14, v18); v18 = f64x2.pmax(v14, v18); v14 = t;
  t = f64x2.pmin(v10, v14); v14 = f64x2.pmax(v10, v14); v10 = t;
  t = f64x2.pmin(v4, v6); v6 = f64x2.pmax(v4, v6); v4 = t;
  t = f64x2.pmin(v8, v10); v10 = f64x2.pmax(v8, v10); v8 = t;
  t = f64x2.pmin(v12, v14); v14 = f64x2.pmax(v12, v14); v12 = t;
  t = f64x2.pmin(v16, v18); v18 = f64x2.pmax(v16, v18); v16 = t;
  t = f64x2.pmin(v1, v2); v2 = f64x2.pmax(v1, v2); v1 = t;
  t = f64x2.pmin(v3, v4); v4 = f64x2.pmax(v3, v4); v3 = t;
  t = f64x2.pmin(v5, v6); v6 = f64x2.pmax(v5, v6); v5 = t;
  t = f64x2.pmin(v7, v8); v8 = f64x2.pmax(v7, v8); v7 = t;
  t = f64x2.pmin(v9, v10); v10 = f64x2.pmax(v9, v10); v9 = t;
  t = f64x2.pmin(v11, v12); v12 = f64x2.pmax(v11, v12); v11 = t;
  t = f64x2.pmin(v13, v14); v14 = f64x2.pmax(v13, v14); v13 = t;
  t = f64x2.pmin(v15, v16); v16 = f64x2.pmax(v15, v16); v15 = t;
  t = f64x2.pmin(v17, v18); v18 = f64x2.pmax(v17, v18); v17 = t;
  v128.store(kept, v18);
  if (!v128.all_true<i64>(f64x2.le(v18, limit))) {
    v128.store(kept, v0, 16);
    v128.store(kept, v1, 32);
    v128.store(kept, v2, 48);
    v128.store(kept, v3, 64);
    v128.store(kept, v4, 80);
    v128.store(kept, v5, 96);
    v128.store(kept, v6, 112);
    v128.store(kept, v7, 128);
    v128.store(kept, v8, 144);
    v128.store(kept, v9, 160);
    v128.store(kept, v10, 176);
    v128.store(kept, v11, 192);
    v128.store(kept, v12, 208);
    v128.store(kept, v13, 224);
    v128.store(kept, v14, 240);
    v128.store(kept, v15, 256);
    v128.store(kept, v16, 272);
    v128.store(kept, v17, 288);
    v128.store(kept, v18, 304);
  }
  let sum = f64x2.add(v0, v1);
  sum = f64x2.add(sum, v2);
  sum = f64x2.add(sum, v3);
  sum = f64x2.add(sum, v4);
  sum = f64x2.add(sum, v5);
  sum = f64x2.add(sum, v6);
  sum = f64x2.add(sum, v7);
  sum = f64x2.add(sum, v8);
  sum = f64x2.add(sum, v9);
  sum = f64x2.add(sum, v10);
  sum = f64x2.add(sum, v11);
  sum = f64x2.add(sum, v12);
  sum = f64x2.add(sum, v13);
  sum = f64x2.add(sum, v14);
  sum = f64x2.add(sum, v15);
  sum = f64x2.add(sum, v16);
  sum = f64x2.add(sum, v17);
  sum = f64x2.add(sum, v18);
  return sum;
}
