/** The memory of kernels.wasm, by the names of kernels/linear-memory.ts. */

// @ts-nocheck: AssemblyScript

@unmanaged class Words {
  @inline @operator("[]") at(index: i32): i32 {
    return load<i32>(<usize>(index << 2));
  }
  @inline @operator("[]=") set(index: i32, value: i32): void {
    store<i32>(<usize>(index << 2), value);
  }
}

@unmanaged class Singles {
  @inline @operator("[]") at(index: i32): f64 {
    return <f64>load<f32>(<usize>(index << 2));
  }
  @inline @operator("[]=") set(index: i32, value: f64): void {
    store<f32>(<usize>(index << 2), <f32>value);
  }
}

@unmanaged class Doubles {
  @inline @operator("[]") at(index: i32): f64 {
    return load<f64>(<usize>(index << 3));
  }
  @inline @operator("[]=") set(index: i32, value: f64): void {
    store<f64>(<usize>(index << 3), value);
  }
}

@inline export function viewWords(): Words {
  return changetype<Words>(0);
}

@inline export function viewSingles(): Singles {
  return changetype<Singles>(0);
}

@inline export function viewDoubles(): Doubles {
  return changetype<Doubles>(0);
}

@inline export function u8At(at: i32, index: i32): i32 {
  return load<u8>(<usize>(at + index));
}

@inline export function setU8(at: i32, index: i32, value: i32): void {
  store<u8>(<usize>(at + index), value);
}

@inline export function u16At(at: i32, index: i32): i32 {
  return load<u16>(<usize>(at + (index << 1)));
}

@inline export function setU16(at: i32, index: i32, value: i32): void {
  store<u16>(<usize>(at + (index << 1)), value);
}

@inline export function i32At(at: i32, index: i32): i32 {
  return load<i32>(<usize>(at + (index << 2)));
}

@inline export function setI32(at: i32, index: i32, value: i32): void {
  store<i32>(<usize>(at + (index << 2)), value);
}

@inline export function f32At(at: i32, index: i32): f64 {
  return <f64>load<f32>(<usize>(at + (index << 2)));
}

@inline export function setF32(at: i32, index: i32, value: f64): void {
  store<f32>(<usize>(at + (index << 2)), <f32>value);
}

@inline export function f64At(at: i32, index: i32): f64 {
  return load<f64>(<usize>(at + (index << 3)));
}

@inline export function setF64(at: i32, index: i32, value: f64): void {
  store<f64>(<usize>(at + (index << 3)), value);
}

@inline export function squareRoot(value: f64): f64 {
  return Math.sqrt(value);
}

@inline export function truncated(value: f64): i32 {
  return <i32>value;
}
