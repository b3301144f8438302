import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { nextId, PROGRAM_ID } from "../helpers/link/link-messages.js";
import { RecorderHarness, temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { checkedCopy } from "../helpers/store/backup-state.js";
import { answersOf, RELEASES_FOLDER } from "../helpers/store/release-store.js";

for (const release of readdirSync(RELEASES_FOLDER).sort()) {
  t.test(`a store of release ${release} is whole, answers as it did then, and goes on`, async (t) => {
    const path = join(temporaryDirectory(t), "data");
    const kept = join(RELEASES_FOLDER, release);
    cpSync(join(kept, "store"), path, { recursive: true });
    // Git keeps no empty folders.
    for (const folder of ["captures", "quarantine"]) mkdirSync(join(path, folder), { recursive: true });
    const answers = JSON.parse(readFileSync(join(kept, "answers.json"), "utf8"));
    t.match(await checkedCopy(path), { ok: true });
    t.strictSame(await answersOf(path), answers);

    const recorder = await RecorderHarness.start(t, path);
    t.equal(recorder.runs.size, Object.keys(answers).length);
    const producer = await recorder.connect("another");
    let id = nextId();
    const last = Object.keys(answers).sort().at(-1) ?? "";
    while (id <= last) id = nextId();
    await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
    await producer.close();
    await recorder.stop();
    t.match(await checkedCopy(path), { ok: true });
  });
}
