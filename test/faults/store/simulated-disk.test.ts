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

async function diskWithFile(): Promise<{ disk: SimulatedDisk; file: StoreFile }> {
  const disk = new SimulatedDisk();
  await disk.makeDirectory("/d");
  await disk.syncDirectory("/");
  await disk.syncDirectory("");
  const file = await disk.open("/d/a", "create");
  await file.datasync();
  await disk.syncDirectory("/d");
  return { disk, file };
}

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
    // Open files, each as both systems know it.
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
        // A real file that was opened for reading cannot be written. The simulated disk does not check that.
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

t.test("a torn write keeps any of its sectors, also older ones over newer ones, as its seed says", async (t) => {
  const sectors = (value: number): Uint8Array => new Uint8Array(4 * 512).fill(value);
  const tear = async (seed: number): Promise<string> => {
    const { disk, file } = await diskWithFile();
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
