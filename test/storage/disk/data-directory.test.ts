import t from "tap";
import { createRandom } from "../../../core/random.js";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const lock = async () => ({ release: async () => {}, restore: async () => "intact" as const });

function open(fileSystem: SimulatedDisk) {
  return openDataDirectory({ path: "/srv/data", creates: true, fileSystem, lock });
}

t.test("a crash at every operation of the creation of a store: the next start has a store, whole", async (t) => {
  const random = createRandom(SEED);
  const counting = new SimulatedDisk();
  const made = await open(counting);
  let crashes = 0;
  for (let at = 0; at <= counting.operations; at++) {
    // What is torn differs from time to time.
    for (const mode of ["drop", "keep", ...Array<"tear">(20).fill("tear")] as const) {
      const disk = new SimulatedDisk();
      disk.onOperation = ({ number }) => (number === at ? { dies: true } : undefined);
      await open(disk).catch(() => undefined);
      const after = disk.crash(mode, random);
      const isDone = at === counting.operations;
      if (isDone) t.ok(await after.exists(`${made.metaPath}`), "what was made is durable");
      const again = await open(after);
      for (const path of [again.metaPath, again.capturesPath, again.quarantinePath]) {
        if (!(await after.exists(path))) t.fail(`${mode} at ${at}: no ${path}`);
      }
      crashes++;
    }
  }
  t.comment(`${crashes} crashes at ${counting.operations} operations`);
  t.ok(counting.operations > 8);
});
