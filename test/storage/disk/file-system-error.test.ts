import t from "tap";
import {
  FileSystemError,
  isDiskFault,
  isOutOfMemory,
  isRepeatable,
  isShortage,
  shortageOf,
  translated,
} from "../../../storage/disk/file-system-error.js";

t.test(
  "memory that the machine does not give is a shortage, with and without a code; a wrong size is none",
  async (t) => {
    const errors = [
      new RangeError("Array buffer allocation failed"),
      // With a code they come from Node, whose sources name the class Error.
      Object.assign(new RangeError("Failed to allocate memory"), { code: "ERR_MEMORY_ALLOCATION_FAILED" }),
      Object.assign(new Error("Failed to allocate memory"), { code: "ERR_MEMORY_ALLOCATION_FAILED" }),
      new RangeError("WebAssembly.Memory(): could not allocate memory"),
      new RangeError("WebAssembly.Memory.grow(): Unable to grow instance memory"),
    ];
    for (const error of errors) {
      t.ok(isOutOfMemory(error) && isShortage(error) && isRepeatable(error), error.message);
      t.equal(shortageOf(error), "the machine has no memory left");
      const failed = translated("read", "meta/1.seg", Promise.reject(error));
      await t.rejects(failed, { code: "ENOMEM" });
      t.notOk(isDiskFault(await failed.catch((one: unknown) => one)));
    }
    const others = [
      new RangeError("Invalid typed array length: 68719476736"),
      new RangeError("Invalid array buffer length"),
      new RangeError("Invalid string length"),
      new RangeError("the record's type is 3, but must be 16 to 65535"),
      new Error("Array buffer allocation failed"),
      undefined,
    ];
    for (const error of others) {
      t.notOk(isOutOfMemory(error) || isShortage(error) || isRepeatable(error), String(error));
      t.equal(shortageOf(error), null);
    }
  },
);

t.test("a sync that found no memory is not repeated", async (t) => {
  const error = new FileSystemError("ENOMEM", "fdatasync", "meta/1.seg");
  t.notOk(isRepeatable(error));
  t.equal(shortageOf(error), "the machine has no memory left");
});
