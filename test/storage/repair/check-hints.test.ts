import t from "tap";
import { createRandom } from "../../../core/random.js";
import { encodeHint, verifyHint } from "../../../storage/log/hint-format.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { checkDisk } from "../../helpers/store/checked-disk.js";
import { HintedStore, hintEntriesOf, hintPathsOf } from "../../helpers/store/hinted-store.js";
import { createDisk, until } from "../../helpers/store/log-harness.js";

/** A store whose sealed segments all have a hint file. */
async function hintedDisk(): Promise<SimulatedDisk> {
  const disk = await createDisk();
  const store = await HintedStore.open(disk);
  store.hints.start();
  const history = new CellHistory(createRandom(1));
  for (let nth = 0; nth < 200; nth++) await store.append(history.next());
  const sealed = disk.paths().filter((path) => path.endsWith(".seg")).length - 1;
  await until(() => hintPathsOf(disk).length === sealed, "all hint files");
  await store.close();
  return disk;
}

const found = async (disk: SimulatedDisk): Promise<string[]> => {
  const { findings } = await checkDisk(disk, "/data");
  const ofHints = findings.filter(({ file }) => file.endsWith(".hint"));
  return ofHints.map(({ code }) => code);
};

t.test("check compares each hint file with its segment", async (t) => {
  const disk = await hintedDisk();
  const path = hintPathsOf(disk)[1] as string;
  const bytes = disk.bytesOf(path);
  const cases: [what: string, codes: string[], harm: (disk: SimulatedDisk) => void][] = [
    ["as they should be", [], () => {}],
    ["one is gone", ["hint_missing"], (copy) => copy.removeFile(path)],
    ["a cut one", ["hint_damaged"], (copy) => copy.setBytes(path, bytes.slice(0, -1))],
    ["that of another segment", ["hint_unusable"], (copy) => copy.setBytes(path, disk.bytesOf(hintPathsOf(disk)[0]!))],
    [
      "one that lacks an entry, with right CRCs",
      ["hint_differs"],
      (copy) => copy.setBytes(path, encodeHint(verifyHint(bytes)!, hintEntriesOf(bytes).slice(1))),
    ],
    [
      "one without a sealed segment",
      ["hint_unusable"],
      (copy) => copy.setBytes(path.replace(/\d{16}/, "0000000000009999"), bytes),
    ],
  ];
  for (const [what, codes, harm] of cases) {
    const copy = disk.copy();
    harm(copy);
    t.same(await found(copy), codes, what);
  }
});

t.test("a damaged segment has no hint file that could be missing", async (t) => {
  const disk = await hintedDisk();
  const path = hintPathsOf(disk)[0] as string;
  disk.removeFile(path);
  const segment = path.replace(".hint", ".seg");
  const bytes = disk.bytesOf(segment).slice();
  bytes[200]! ^= 1;
  disk.setBytes(segment, bytes);
  t.same(await found(disk), []);
});
