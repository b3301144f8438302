import type { Test } from "tap";

/** As V8 tells of it. */
export function outOfMemory(): RangeError {
  return new RangeError("Array buffer allocation failed");
}

const TYPES = ["ArrayBuffer", "SharedArrayBuffer", "Uint8Array", "Uint16Array", "Uint32Array", "Float64Array"] as const;

/** This thread's memory, of which a test says how much is left. Create it before what is tested. */
export class ShortMemory {
  /** Whatever takes so many bytes or more is refused. */
  leastRefusedBytes = Number.POSITIVE_INFINITY;
  /** So many are still refused. */
  refusesNext = Number.POSITIVE_INFINITY;
  refusals = 0;

  constructor(t: Test) {
    const globals = globalThis as unknown as Record<string, unknown>;
    for (const name of TYPES) {
      const type = globalThis[name] as unknown as { new (...args: unknown[]): object; BYTES_PER_ELEMENT?: number };
      const itemBytes = type.BYTES_PER_ELEMENT ?? 1;
      const short: typeof type = new Proxy(type, {
        construct: (target, args, newTarget) => {
          if (typeof args[0] === "number") this.#refuse(args[0] * itemBytes);
          return Reflect.construct(target, args, newTarget === short ? target : newTarget);
        },
      });
      globals[name] = short;
      t.teardown(() => {
        globals[name] = type;
      });
    }
    const { allocUnsafeSlow } = Buffer;
    Buffer.allocUnsafeSlow = (bytes) => {
      this.#refuse(bytes);
      return allocUnsafeSlow(bytes);
    };
    t.teardown(() => {
      Buffer.allocUnsafeSlow = allocUnsafeSlow;
    });
  }

  #refuse(bytes: number): void {
    if (bytes < this.leastRefusedBytes || this.refusesNext <= 0) return;
    this.refusesNext--;
    this.refusals++;
    throw outOfMemory();
  }
}
