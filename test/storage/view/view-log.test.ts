import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { Log } from "../../../storage/log/log.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { differences } from "../../helpers/store/view-comparison.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_709);
const EMPTY = new Uint8Array(0);

t.test(
  `a view over the log itself answers as a plain model does, live and at every opening, seed ${seed}`,
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "view-log-"));
    const [directory, quarantineDirectory] = [join(folder, "meta"), join(folder, "quarantine")];
    await nodeFileSystem.makeDirectory(directory);
    await nodeFileSystem.makeDirectory(quarantineDirectory);
    const reader = new LogReader({ fileSystem: nodeFileSystem, directory, maximumOpenFiles: 3 });
    t.teardown(() => {
      reader.close();
      rmSync(folder, { recursive: true });
    });

    const history = new CellHistory(createRandom(seed));
    const random = createRandom(seed + 1);
    let appended = 0;
    for (let opening = 1; opening <= 4; opening++) {
      const view = new View({ reader });
      const log = await Log.open({
        fileSystem: nodeFileSystem,
        directory,
        quarantineDirectory,
        durability: "none",
        segmentBytes: 64 * 1024,
        openingState: () => ({ index: EMPTY, body: EMPTY }),
        onRecords: (batch) => view.fold.applyBatch(batch),
        onCommitted: (batch) => view.fold.applyBatch(batch),
      });
      view.fold.finishOpening();
      t.same(await differences(view, history, random, 150), [], `opening ${opening}`);
      for (let group = 0; group < 80; group++) {
        for (let count = random.integer(1, 40); count > 0; count--) {
          const { timeUs, ...record } = history.next();
          log.append({ ...record, flags: 1, timeUs });
          appended++;
        }
        const last = log.nextSequence - 1;
        await log.whenCommitted(last);
        if (view.fold.appliedSequence < last) t.fail("committed, and not in the view");
        if (group % 8 === 0) t.same(await differences(view, history, random, 20), [], `live, group ${group}`);
      }
      await log.close();
    }
    const segments = readdirSync(directory).length;
    t.comment(`${appended} records in ${segments} segments, ${history.runs.size} runs`);
    t.ok(segments > 10, "the log went through many segments");
  },
);
