/**
 * Reads and writes items of arrays in the memory. `at` is the address of the array, aligned to its items. `index` may
 * be negative where there is padding.
 */

export function i32At(at: usize, index: i32): i32 {
  return load<i32>(at + (index << 2));
}

export function setI32(at: usize, index: i32, value: i32): void {
  store<i32>(at + (index << 2), value);
}

export function f32At(at: usize, index: i32): f64 {
  return load<f32>(at + (index << 2));
}

export function setF32(at: usize, index: i32, value: f64): void {
  store<f32>(at + (index << 2), <f32>value);
}

export function f64At(at: usize, index: i32): f64 {
  return load<f64>(at + (index << 3));
}

export function setF64(at: usize, index: i32, value: f64): void {
  store<f64>(at + (index << 3), value);
}

/** Stores as many of four f32 as there is room for: the values after them belong to the next line. */
export function storeLanes(out: usize, lanes: v128, count: i32): void {
  if (count >= 4) {
    v128.store(out, lanes);
    return;
  }
  store<f32>(out, f32x4.extract_lane(lanes, 0));
  if (count > 1) store<f32>(out, f32x4.extract_lane(lanes, 1), 4);
  if (count > 2) store<f32>(out, f32x4.extract_lane(lanes, 2), 8);
}
