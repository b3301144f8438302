import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_123);
const HISTORIES = sized(15, 500);
const STEPS = 120;
const random = createRandom(SEED);
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));

async function diskWith(text: string): Promise<{ disk: SimulatedDisk; file: StoreFile }> {
  const disk = new SimulatedDisk();
  await disk.makeDirectory("/d");
  await disk.syncDirectory("/");
  await disk.syncDirectory("");
  const file = await disk.open("/d/a", "create");
  await file.write(bytes(text), 0);
  await file.datasync();
  await disk.syncDirectory("/d");
  return { disk, file };
}

const textOf = (disk: SimulatedDisk, path = "/d/a"): string => Buffer.from(disk.bytesOf(path)).toString();

/** What an operation gave, or the code that it failed with. */
async function outcomeOf(operation: () => Promise<unknown>): Promise<unknown> {
  try {
    return await operation();
  } catch (error) {
    if (!(error instanceof FileSystemError)) throw error;
    return error.code;
  }
}

t.test("without faults it does what the machine's own file system does", async (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  let operations = 0;
  for (let history = 0; history < HISTORIES; history++) {
    const root = temporaryDirectory(t);
    const disk = new SimulatedDisk();
    await disk.makeDirectory(root);
    const systems: FileSystem[] = [disk, nodeFileSystem];
    const both = async (what: string, operation: (system: FileSystem, at: number) => Promise<unknown>) => {
      operations++;
      const [simulated, real] = await Promise.all(systems.map((system, at) => outcomeOf(() => operation(system, at))));
      if (JSON.stringify(simulated) !== JSON.stringify(real)) t.same(simulated, real, `history ${history}: ${what}`);
    };
    const path = (): string =>
      join(root, ...(random.chance(0.5) ? [random.pick(["x", "y"])] : []), random.pick(["a", "b", "c"]));
    const folder = (): string => (random.chance(0.3) ? root : join(root, random.pick(["x", "y"])));
    // Open ones, each as both systems know it.
    const open: [StoreFile, StoreFile][] = [];
    for (let step = 0; step < STEPS; step++) {
      const kind = random.integer(0, 11);
      const [one, other, within] = [path(), path(), folder()];
      const file = open[random.integer(0, Math.max(0, open.length - 1))];
      const content = random.bytes(random.integer(0, 1_500));
      const position = random.integer(0, 3_000);
      if (kind <= 1) {
        const mode = random.pick(["read", "update", "create", "createOrUpdate"] as const);
        const pair: StoreFile[] = [];
        await both(`open ${one} ${mode}`, async (system, at) => {
          pair[at] = await system.open(one, mode);
        });
        // One opened for reading may not be written on a real one; the simulated one does not look.
        if (pair.length === 2 && mode !== "read") open.push(pair as [StoreFile, StoreFile]);
        else await Promise.all(pair.map((each) => each.close()));
      } else if (kind <= 3 && file !== undefined) {
        await both(`write ${content.length} at ${position}`, (_, at) =>
          (file[at] as StoreFile).write(content, position),
        );
        await both("size", (_, at) => (file[at] as StoreFile).size());
      } else if (kind === 4 && file !== undefined) {
        await both(`truncate ${position}`, (_, at) => (file[at] as StoreFile).truncate(position));
      } else if (kind === 5 && file !== undefined) {
        await both(`read at ${position}`, async (_, at) => {
          const into = new Uint8Array(1_000);
          const count = await (file[at] as StoreFile).read(into, position);
          return [count, Buffer.from(into).toString("base64")];
        });
        await both("datasync", (_, at) => (file[at] as StoreFile).datasync());
      } else if (kind === 6) await both(`rename ${one} ${other}`, (system) => system.rename(one, other));
      else if (kind === 7) await both(`unlink ${one}`, (system) => system.unlink(one));
      else if (kind === 8) await both(`mkdir ${within}`, (system) => system.makeDirectory(within));
      else if (kind === 9) await both(`rmdir ${within}`, (system) => system.removeDirectory(within));
      else if (kind === 10) await both(`size of ${one}`, (system) => system.sizeOf(one));
      else {
        await both(`names in ${within}`, async (system) => {
          const entries = await system.readDirectory(within);
          return entries.map(({ name, isDirectory }) => `${name} ${isDirectory}`).sort();
        });
        await both(`exists ${one}`, (system) => system.exists(one));
      }
    }
    await Promise.all(open.flat().map((each) => each.close()));
  }
  t.ok(operations > HISTORIES * STEPS * 0.8);
  t.comment(`${HISTORIES} histories, ${operations} operations`);
});

t.test("a power cut keeps what was synced, and of the rest what its mode says", async (t) => {
  const { disk, file } = await diskWith("durable");
  await file.write(bytes("changed"), 0);
  t.equal(textOf(disk), "changed", "who reads meanwhile sees what was written");
  t.equal(textOf(disk.fork("drop", random)), "durable");
  t.equal(textOf(disk.fork("keep", random)), "changed");
  await file.datasync();
  t.equal(textOf(disk.fork("drop", random)), "changed");
  await file.truncate(3);
  t.equal(textOf(disk.fork("drop", random)), "changed");
  t.equal(textOf(disk.fork("keep", random)), "cha");
  const after = disk.crash("drop", random);
  t.equal(textOf(after), "changed");
  await t.rejects(file.write(bytes("x"), 0), { code: "EIO" }, "the machine has stopped");
});

t.test("a name is durable when its folder was synced", async (t) => {
  const { disk } = await diskWith("a");
  const made = await disk.open("/d/b", "create");
  await made.write(bytes("b"), 0);
  await made.datasync();
  t.same(disk.fork("drop", random).paths(), ["/d/a"], "its bytes are of no use without it");
  await disk.rename("/d/b", "/d/c");
  t.same(disk.fork("keep", random).paths(), ["/d/a", "/d/c"]);
  await disk.syncDirectory("/d");
  await disk.unlink("/d/a");
  t.same(disk.fork("drop", random).paths(), ["/d/a", "/d/c"], "an unlinked one comes back");
  await disk.makeDirectory("/d/e");
  const inner = await disk.open("/d/e/f", "create");
  await inner.datasync();
  await disk.syncDirectory("/d/e");
  t.same(disk.fork("drop", random).paths(), ["/d/a", "/d/c"], "what lies in a folder goes with it");
  await disk.syncDirectory("/d");
  t.same(disk.fork("drop", random).paths(), ["/d/c", "/d/e/f"]);
  t.same(disk.kill().paths(), ["/d/c", "/d/e/f"], "the end of a process alone loses nothing");
});

t.test("a torn write keeps any of its sectors, also older ones over newer ones, as its seed says", async (t) => {
  const sectors = (value: number): Uint8Array => new Uint8Array(4 * 512).fill(value);
  const tear = async (seed: number): Promise<string> => {
    const { disk, file } = await diskWith("");
    for (const value of [1, 2]) await file.write(sectors(value), 0);
    const left = disk.crash("tear", createRandom(seed)).bytesOf("/d/a");
    const kept = Array.from({ length: 4 }, (_, at) => left[at * 512] ?? "-");
    for (const [at, value] of kept.entries()) {
      const sector = left.subarray(at * 512, (at + 1) * 512);
      if (!sector.every((byte) => byte === value)) t.fail(`seed ${seed}: a sector is not whole`);
    }
    return kept.join("");
  };
  const found = new Set<string>();
  for (let seed = 0; seed < 300; seed++) {
    const outcome = await tear(seed);
    t.equal(await tear(seed), outcome);
    found.add(outcome);
  }
  t.ok(
    [...found].some((outcome) => /1.*2|2.*1/.test(outcome)),
    "older beside newer",
  );
  t.ok(found.has("2222") && [...found].some((outcome) => outcome.includes("0")), [...found].join(" "));
});

t.test("a failed sync leaves in memory what no later sync writes", async (t) => {
  const { disk, file } = await diskWith("durable");
  await file.write(bytes("changed"), 0);
  disk.onOperation = ({ kind }) => (kind === "datasync" ? { error: "EIO" } : undefined);
  await t.rejects(file.datasync(), { code: "EIO", operation: "fdatasync" });
  disk.onOperation = () => undefined;
  await file.datasync();
  t.equal(textOf(disk), "changed");
  t.equal(textOf(disk.fork("keep", random)), "durable");
});

t.test("writes are short and fail on command, and when the disk is full", async (t) => {
  const { disk, file } = await diskWith("");
  disk.onOperation = ({ kind }) => (kind === "write" ? { short: 2 } : undefined);
  t.equal(await file.write(bytes("abcd"), 0), 2);
  t.equal(textOf(disk), "ab");
  disk.onOperation = ({ kind }) => (kind === "rename" ? { error: "EIO" } : undefined);
  await t.rejects(disk.rename("/d/a", "/d/b"), { code: "EIO" });
  t.ok(disk.has("/d/a") && !disk.has("/d/b"), "and nothing was done");
  disk.onOperation = () => undefined;
  disk.limitBytes = disk.usedBytes + 3;
  t.equal(await file.write(bytes("cdefgh"), 2), 3, "as much as there is room for");
  await t.rejects(file.write(bytes("x"), 5), { code: "ENOSPC" });
  await t.rejects(disk.open("/d/b", "create"), { code: "ENOSPC" });
  t.equal(await file.write(bytes("AB"), 0), 2, "what is there already can be overwritten");
  t.equal(textOf(disk), "ABcde");
  disk.onRead = () => "EIO";
  await t.rejects(file.read(new Uint8Array(1), 0), { code: "EIO" });
  disk.onOperation = ({ kind }) => (kind === "write" ? { short: 1, dies: true } : undefined);
  await t.rejects(file.write(bytes("XY"), 0), { code: "EIO" });
  t.equal(Buffer.from(disk.fork("keep", random).bytesOf("/d/a")).toString(), "XBcde", "the machine stopped within it");
});
