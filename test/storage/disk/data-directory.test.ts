import t from "tap";
import { createRandom } from "../../../core/random.js";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { readWholeFile, replaceFile } from "../../../storage/disk/whole-files.js";
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

t.test(
  "a store keeps its id; one without an id gets it at its next start, and not from a command that reads",
  async (t) => {
    const disk = new SimulatedDisk();
    const path = "/srv/data";
    const format = async () => JSON.parse(new TextDecoder().decode(await readWholeFile(disk, `${path}/format.json`)));
    const { storeId } = await open(disk);
    t.match(storeId, /^[0-9a-f-]{36}$/);
    t.equal((await open(disk)).storeId, storeId);
    t.match(await format(), { format: 1, store_id: storeId });
    t.not((await open(new SimulatedDisk())).storeId, storeId, "another store has another id");

    const old = '{"format":1,"release":"1.0","service":"inspection-results-service"}\n';
    await replaceFile(disk, path, "format.json", new TextEncoder().encode(old));
    t.equal((await openDataDirectory({ path, creates: false, fileSystem: disk, lock })).storeId, null);
    t.equal((await format()).store_id, undefined, "a command that reads changes nothing");
    const given = (await open(disk)).storeId;
    t.match(given, /^[0-9a-f-]{36}$/);
    t.equal((await open(disk)).storeId, given);

    for (const id of ["", "../x", 7]) {
      const text = old.replace("}", `,"store_id":${JSON.stringify(id)}}`);
      await replaceFile(disk, path, "format.json", new TextEncoder().encode(text));
      await t.rejects(open(disk), {
        code: "format_unsupported",
        message: /store_id should be a UUID in lower case, but is/,
      });
    }
  },
);
