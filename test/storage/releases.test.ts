import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { nextId, PROGRAM_ID } from "../helpers/link/link-messages.js";
import { RecorderHarness, temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { checkedCopy } from "../helpers/store/backup-state.js";
import { answersOf, copyReleaseStore, RELEASES_FOLDER } from "../helpers/store/release-store.js";

for (const release of readdirSync(RELEASES_FOLDER).sort()) {
  t.test(`a store of release ${release} is whole, answers as it did then, and goes on`, async (t) => {
    const path = join(temporaryDirectory(t), "data");
    const kept = join(RELEASES_FOLDER, release);
    copyReleaseStore(join(kept, "store"), path);
    const answers = JSON.parse(readFileSync(join(kept, "answers.json"), "utf8"));
    t.match(await checkedCopy(path), { ok: true });
    // A later release may say more, but not something else.
    t.hasStrict(await answersOf(path, t), answers);

    const recorder = await RecorderHarness.start(t, path);
    const ids: string[] = answers["/runs?limit=1000"].runs.map(({ id }: { id: string }) => id);
    t.equal(recorder.runs.size, ids.length);
    const producer = await recorder.connect("another");
    let id = nextId();
    const last = ids.sort().at(-1) ?? "";
    while (id <= last) id = nextId();
    await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.close();
    await recorder.stop();
    t.match(await checkedCopy(path), { ok: true });
  });
}
