import { join } from "node:path";
import t, { type Test } from "tap";
import { artefactTasks } from "../../../../workers/artefacts/pool/artefact-tasks.js";
import { MemoryNeed, type MemoryNeedOptions } from "../../../../workers/artefacts/pool/memory-need.js";
import { taskFailure } from "../../../../workers/artefacts/pool/task-failures.js";
import { surfaceFrame } from "../../../helpers/captures/made-frames.js";
import { storedFrame } from "../../../helpers/captures/stored-frame.js";

class Clock {
  nowMs = 5_000_000;
  readonly options: MemoryNeedOptions = { keptBytes: 1_000_000, keptLargeMs: 60_000, nowMs: () => this.nowMs };
}

/** How many memories this thread has made since. */
function madeMemories(t: Test): () => number {
  const { WebAssembly: wasm } = globalThis as unknown as { WebAssembly: { Memory: new (...args: object[]) => object } };
  const { Memory } = wasm;
  let made = 0;
  wasm.Memory = class extends Memory {
    constructor(...args: object[]) {
      super(...args);
      made++;
    }
  };
  t.teardown(() => {
    wasm.Memory = Memory;
  });
  return () => made;
}

function storedFrames(t: Test) {
  const folder = t.testdir();
  return {
    large: storedFrame(join(folder, "large.cap"), surfaceFrame(7, 500, 400)).source,
    small: storedFrame(join(folder, "small.cap"), surfaceFrame(8, 40, 30)).source,
  };
}

t.test("a large memory is kept for a time after the last frame that needed it, a small one for good", async (t) => {
  const clock = new Clock();
  const need = new MemoryNeed(clock.options);
  t.equal(need.isKept(1_000_000), true);
  t.equal(need.isKept(1_000_001), false, "nothing has needed it");
  need.note(1_000_001);
  t.equal(need.isKept(2_000_000), true);
  clock.nowMs += 59_999;
  t.equal(need.isKept(1_000_001), true);
  need.note(1_000_000);
  clock.nowMs += 1;
  t.equal(need.isKept(1_000_001), false, "a small frame is no need");
  need.note(1_000_001);
  clock.nowMs += 59_999;
  t.equal(need.isKept(1_000_001), true, "the time begins anew");
  t.equal(new MemoryNeed().isKept(256 * 1024 * 1024), true, "the bound of the service");
  t.equal(new MemoryNeed().isKept(256 * 1024 * 1024 + 1), false);
});

t.test("large frame after large frame has one memory, and small ones make away with it in time", async (t) => {
  const clock = new Clock();
  const made = madeMemories(t);
  const tasks = artefactTasks(undefined, new MemoryNeed(clock.options));
  const { large, small } = storedFrames(t);
  for (let nth = 0; nth < 4; nth++) {
    await tasks.filter(large);
    clock.nowMs += 59_000;
  }
  t.equal(made(), 1);
  await tasks.filter(small);
  clock.nowMs += 59_000;
  await tasks.filter(small);
  t.equal(made(), 1, "a minute is not over");
  clock.nowMs += 1_000;
  await tasks.filter(small);
  t.equal(made(), 2, "a smaller one");
  clock.nowMs += 1_000_000;
  await tasks.filter(small);
  t.equal(made(), 2, "which stays");
});

t.test("a buffer that the machine does not give says nothing of the frame", async (t) => {
  const vastBytes = 2 ** 45;
  for (const allocate of [() => new ArrayBuffer(vastBytes), () => new SharedArrayBuffer(vastBytes)]) {
    try {
      allocate();
      t.fail("the machine has that much");
    } catch (error) {
      t.equal(taskFailure(error).code, "out_of_memory");
    }
  }
  for (const message of ["WebAssembly.Memory(): could not allocate memory", "Unable to grow instance memory"]) {
    t.equal(taskFailure(new RangeError(message)).code, "out_of_memory");
  }
  t.equal(taskFailure(new RangeError("Invalid string length")).code, "too_large");
});
