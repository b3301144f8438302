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
import { answersOf, copyReleaseStore, RELEASES_FOLDER } from "./release-store.js";

const release = process.argv[2];
if (release === undefined || !/^\d+\.\d+$/.test(release)) throw new Error("which release? such as 1.0");
const folder = join(RELEASES_FOLDER, release);
if (existsSync(folder)) throw new Error(`${folder} is there: a release's store is made once`);

const script = new URL("../process/small-segments-service.js", import.meta.url).pathname;
const service = await ServiceProcess.start({ script });
try {
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const send = async (path: string, body: object): Promise<Record<string, string>> => {
    const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, request);
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
    return (await answer.json()) as Record<string, string>;
  };
  // Nobody listens there: each delivery fails at once.
  const settings = {
    url: "http://127.0.0.1:9/",
    max_retries: 0,
    subscribed_events: ["ProgramStarted", "ProgramCompleted"],
  };
  const { id: rotated } = await send("/webhooks", { ...settings, name: "hmac", secret: "whsec_b25lb25lb25l" });
  await send("/webhooks", { ...settings, name: "ed25519", signing: "ed25519", headers: { "X-Cell": "7" } });
  await send(`/webhooks/${rotated}/rotate-secret`, { secret: "whsec_dHdvdHdvdHdv", overlap_seconds: 604_800 });
  for (let nth = 1; nth <= 8; nth++) {
    const { id } = await runWithCaptures(producer, nth);
    const ofRun = { run_id: id };
    await producer.accept({ type: "step.start", ...ofRun, index: 1 });
    await producer.accept(seriesAppend(id), new Uint8Array(24));
    const status = nth % 3 === 0 ? "failed" : "passed";
    await producer.accept({ type: "check.add", ...ofRun, check: { name: "gap", status, value: nth / 4 } });
    await producer.accept({ type: "defect.add", ...ofRun, defect: { type: "dent", confidence: 0.5 } });
    await producer.accept({ type: "step.finish", ...ofRun, index: 1, status: "completed" });
    // The last one goes on.
    if (nth < 8) await producer.accept({ type: "run.finish", id });
  }
  const resends = `/webhooks/${rotated}/resend`;
  const { resend_id } = await send(resends, { since: "2020-01-01T00:00:00Z", per_second: 1000 });
  for (let state = "running"; state === "running"; ) {
    const answer = await fetch(`http://127.0.0.1:${service.port}${resends}s/${resend_id}`);
    ({ state } = (await answer.json()) as { state: string });
  }
  await service.end();
  mkdirSync(folder, { recursive: true });
  const store = join(folder, "store");
  // No key that signs is published, and none is needed: the next one is made when it is asked for.
  const isLeftOut = (path: string): boolean => /ballast\.bin|cell\.sock|\/lock$|\.pem$/.test(path);
  cpSync(service.dataDirectory, store, { recursive: true, filter: (path) => !isLeftOut(path) });
  const copy = join(service.dataDirectory, "..", `${release}-answers`);
  try {
    copyReleaseStore(store, copy);
    writeFileSync(join(folder, "answers.json"), `${JSON.stringify(await answersOf(copy), null, 1)}\n`);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
} finally {
  await service.dispose();
}
