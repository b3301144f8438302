/**
 * Keeps a store of this release, and what it answers, for `test/storage/releases.test.ts`:
 * `node dist/test/helpers/store/make-release-store.js 1.0`. It is run once for each release, before that is published.
 */
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runWithCaptures } from "../captures/kept-captures.js";
import { seriesAppend } from "../link/link-messages.js";
import { RawProducer } from "../link/raw-producer.js";
import { ServiceProcess } from "../process/service-process.js";
import { answersOf, RELEASES_FOLDER, type ReleaseAnswers } from "./release-store.js";
import { makeWebhooks, ReleaseService } from "./release-webhooks.js";

const release = process.argv[2];
if (release === undefined || !/^\d+\.\d+$/.test(release)) throw new Error("which release? such as 1.0");
const folder = join(RELEASES_FOLDER, release);
if (existsSync(folder)) throw new Error(`${folder} is there: a release's store is made once`);

const RUNS = 8;

/** @returns how many have ended: the last one goes on */
async function makeRuns(producer: RawProducer): Promise<number> {
  for (let nth = 1; nth <= RUNS; nth++) {
    const { id } = await runWithCaptures(producer, nth);
    const ofRun = { run_id: id };
    await producer.accept({ type: "step.start", ...ofRun, index: 1 });
    await producer.accept(seriesAppend(id), new Uint8Array(24));
    const status = nth % 3 === 0 ? "failed" : "passed";
    await producer.accept({ type: "check.add", ...ofRun, check: { name: "gap", status, value: nth / 4 } });
    await producer.accept({ type: "defect.add", ...ofRun, defect: { type: "dent", confidence: 0.5 } });
    await producer.accept({ type: "step.finish", ...ofRun, index: 1, status: "completed" });
    if (nth < RUNS) await producer.accept({ type: "run.finish", id });
  }
  return RUNS - 1;
}

const script = new URL("../process/small-segments-service.js", import.meta.url).pathname;
const service = await ServiceProcess.start({ script });
try {
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const asked = new ReleaseService(service.port);
  const resends = await makeWebhooks(asked, () => makeRuns(producer));
  const webhooks = await asked.webhookAnswers(resends);
  await service.end();
  mkdirSync(folder, { recursive: true });
  const store = join(folder, "store");
  cpSync(service.dataDirectory, store, {
    recursive: true,
    filter: (path) => !/ballast\.bin|cell\.sock|\/lock$/.test(path),
  });
  const answers: ReleaseAnswers = { runs: await answersOf(store), webhooks };
  writeFileSync(join(folder, "answers.json"), `${JSON.stringify(answers, null, 1)}\n`);
} finally {
  await service.dispose();
}
rmSync(join(folder, "store", "lock"), { recursive: true, force: true });
