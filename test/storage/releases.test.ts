import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { verifyWebhook } from "../../core/webhook/verify-webhook.js";
import { nextId, PROGRAM_ID } from "../helpers/link/link-messages.js";
import { ServiceProcess } from "../helpers/process/service-process.js";
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
    await webhooksGoOn(t, path, webhooks);
    t.match(await checkedCopy(path), { ok: true });
  });
}

/** They answer as then, and sign with the secrets and the key that they had. */
async function webhooksGoOn(t: Test, path: string, kept: WebhookAnswers): Promise<void> {
  const process = await ServiceProcess.startFor(t, { dataDirectory: path });
  const service = new ReleaseService(process.port);
  t.match(await service.webhookAnswers(Object.keys(kept.resends)), kept);
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const id = kept.webhooks.find(({ name }) => name === "mes")?.id;
  // The overlap is over by now. A new one shows that the newest secret is the one that was kept.
  await service.ask("POST", `/webhooks/${id}/rotate-secret`, { secret: "whsec_dGhpcmQ=", force: true });
  await service.ask("PATCH", `/webhooks/${id}`, { url: receiver.url });
  t.match(await service.ask("POST", `/webhooks/${id}/test`), { delivered: true });
  const [request] = receiver.requests as [ReceivedRequest];
  const { headers, body } = request;
  verifyWebhook({ secret: RELEASE_SECRETS[1], headers, body });
  t.equal(headers["x-gateway-key"], "of the gateway");
  t.ok(isSignedBy((kept.signingKey as { public_key_pem: string }).public_key_pem, request));
  t.equal((await process.end()).code, 0);
}
