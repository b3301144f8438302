import { createPublicKey } from "node:crypto";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import t, { type Test } from "tap";
import nacl from "tweetnacl";
import { verifyWebhook } from "../../../core/webhook/verify-webhook.js";
import type { ContractClient } from "../../helpers/http/contract-client.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { SECRET, start, subscribe, UNKNOWN_ID } from "../../helpers/webhooks/announcing-cell.js";
import { type ReceivedRequest, receiverFor } from "../../helpers/webhooks/receiver.js";

const KEY_FILE = "webhook-signing-key.pem";

/** Whether the signature of Standard Webhooks for Ed25519 is of this key, by a library of others: the package `standardwebhooks` has no Ed25519. */
function isSignedBy(publicKeyPem: string, { headers, body }: ReceivedRequest): boolean {
  const [version, signature = ""] = String(headers["webhook-signature"]).split(",");
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
  const { x = "" } = createPublicKey(publicKeyPem).export({ format: "jwk" });
  const [given, key] = [Buffer.from(signature, "base64"), Buffer.from(x, "base64url")];
  return version === "v1a" && given.length === 64 && nacl.sign.detached.verify(signed, given, key);
}

const NEW = "whsec_bmV3bmV3bmV3";
const THIRD = "whsec_dGhpcmQ=";

const passes = (check: () => unknown): boolean => {
  try {
    check();
    return true;
  } catch {
    return false;
  }
};

/** The secrets that the request is signed with, by both schemes. */
const signersOf = (t: Test, { headers, body }: ReceivedRequest): string[] =>
  [SECRET, NEW, THIRD].filter((secret) => {
    const ours = passes(() => verifyWebhook({ secret, headers, body }));
    const standard = passes(() => new Webhook(secret).verify(body.toString(), headers as Record<string, string>));
    t.equal(standard, ours, "the public package judges as ours does");
    return ours;
  });

async function badRotations(t: Test, client: ContractClient, id: string): Promise<void> {
  const rotate = (body: object) => client.rawJson("POST", `/webhooks/${id}/rotate-secret`, body);
  const bodies = [{}, { secret: "" }, { secret: null }, { secret: "whsec_?" }, { secret: "x", overlap_seconds: -1 }];
  for (const body of bodies) t.equal((await rotate(body)).status, 422, JSON.stringify(body));
  const long = await rotate({ secret: "x", overlap_seconds: 604_801 });
  t.match(long.json(), { params: { field: "overlap_seconds", allowed: "<= 604800" } });
}

t.test("rotation: both secrets sign until the overlap is ended, also over a restart", async (t) => {
  const directory = temporaryDirectory(t);
  const first = await start(t, [], directory);
  const target = await receiverFor(t);
  const { id } = await subscribe(first.client, target.url, ["ProgramFailed"], { secret: SECRET });
  const path = { webhook_id: id };
  const send = async (client: ContractClient): Promise<ReceivedRequest> => {
    t.match(await client.post("/webhooks/{webhook_id}/test", { path }), { delivered: true });
    return target.requests.at(-1) as ReceivedRequest;
  };
  const signers = (request: ReceivedRequest) => signersOf(t, request);
  t.same(signers(await send(first.client)), [SECRET]);
  const rotated = await first.client.post("/webhooks/{webhook_id}/rotate-secret", { path, body: { secret: NEW } });
  const endsInMs = Date.parse(String(rotated.previous_secret_expires_at)) - Date.now();
  t.ok(endsInMs > 86_000_000 && endsInMs <= 86_400_000, "a day, if nothing else is asked for");
  t.notMatch(JSON.stringify(rotated), /whsec_/);
  const both = await send(first.client);
  t.same(signers(both), [SECRET, NEW]);
  t.match(both.headers["x-service-signature"], /^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
  const again = { path, body: { secret: THIRD } };
  const refused = await first.client.refusal(
    "post",
    "/webhooks/{webhook_id}/rotate-secret",
    409,
    "rotation_in_progress",
    again,
  );
  t.equal(refused.params.previous_secret_expires_at, rotated.previous_secret_expires_at);
  t.equal(refused.retryable, false, "the overlap can last for days");
  await first.client.refusal("post", "/webhooks/{webhook_id}/rotate-secret", 404, "webhook_not_found", {
    path: { webhook_id: UNKNOWN_ID },
    body: { secret: "x" },
  });
  await badRotations(t, first.client, id);
  t.equal((await first.service.end("SIGKILL")).signal, "SIGKILL");

  const second = await start(t, [], directory);
  t.same(signers(await send(second.client)), [SECRET, NEW], "after a kill");
  const { previous_secret_expires_at: endsAt } = await second.client.get("/webhooks/{webhook_id}", { path });
  t.equal(endsAt, rotated.previous_secret_expires_at);
  const forced = await second.client.post("/webhooks/{webhook_id}/rotate-secret", {
    path,
    body: { secret: THIRD, overlap_seconds: 1, force: true },
  });
  t.type(forced.previous_secret_expires_at, "string");
  t.same(signers(await send(second.client)), [NEW, THIRD], "by force the oldest ends");
  await second.client.until("/webhooks/{webhook_id}", (now) => now.previous_secret_expires_at === null, { path });
  t.same(signers(await send(second.client)), [THIRD], "the overlap is over");
  await second.client.post("/webhooks/{webhook_id}/rotate-secret", { path, body: { secret: NEW } });
  t.match(await second.client.patch("/webhooks/{webhook_id}", { path, body: { secret: SECRET } }), {
    ...{ has_secret: true, previous_secret_expires_at: null },
  });
  t.same(signers(await send(second.client)), [SECRET], "a PATCH ends it at once");
});

t.test("custom headers go with each delivery, and only their names are shown", async (t) => {
  const directory = temporaryDirectory(t);
  const first = await start(t, [], directory);
  const target = await receiverFor(t);
  const { id } = await subscribe(first.client, target.url, ["ProgramFailed"], {
    secret: SECRET,
    headers: { "X-Gateway-Key": "hush hush", authorization: "Bearer hushhush" },
  });
  const path = { webhook_id: id };
  const shown = await first.client.get("/webhooks/{webhook_id}", { path });
  t.same(shown.header_names, ["X-Gateway-Key", "authorization"]);
  t.notMatch(JSON.stringify(await first.client.get("/webhooks")), /hush/);
  await first.client.post("/webhooks/{webhook_id}/test", { path });
  t.match(target.requests[0]?.headers, {
    ...{ "x-gateway-key": "hush hush", authorization: "Bearer hushhush", "content-type": "application/json" },
  });
  const { updated_at: unchangedAt } = await first.client.patch("/webhooks/{webhook_id}", { path, body: shown });
  t.equal(unchangedAt, shown.updated_at, "sent back as it came, it changes nothing");
  const wrong = await first.client.rawJson("PATCH", `/webhooks/${id}`, { headers: { "X-A": "hush\r\nX-B: 1" } });
  t.equal(wrong.status, 422);
  t.match(wrong.json(), { params: { field: "headers/X-A", value: null } });
  t.notMatch(wrong.body.toString(), /hush/);
  await first.service.end("SIGKILL");
  const inspected = await runCommand(["inspect", "--data", directory]);
  t.match(inspected.stdout, /X-Gateway-Key/);
  t.notMatch(inspected.stdout, /hush/);

  const second = await start(t, [], directory);
  await second.client.patch("/webhooks/{webhook_id}", { path, body: { headers: { "X-Other": "1" } } });
  await second.client.post("/webhooks/{webhook_id}/test", { path });
  const { headers } = target.requests[1] as ReceivedRequest;
  t.match(headers, { "x-other": "1" });
  t.notOk("authorization" in headers, "all are replaced");
});

t.test("ed25519: verified with the public key alone; the private one is the owner's only", async (t) => {
  const directory = temporaryDirectory(t);
  const first = await start(t, [], directory);
  const target = await receiverFor(t);
  const file = join(directory, KEY_FILE);
  t.throws(() => statSync(file), { code: "ENOENT" }, "no key before it is needed");
  const { id } = await subscribe(first.client, target.url, ["ProgramFailed"], { signing: "ed25519" });
  t.equal(statSync(file).mode & 0o777, 0o600);
  const path = { webhook_id: id };
  const key = await first.client.get("/webhooks/signing-key");
  const raw = createPublicKey(key.public_key_pem).export({ format: "jwk" }).x as string;
  t.equal(key.public_key, `whpk_${Buffer.from(raw, "base64url").toString("base64")}`);
  await first.client.post("/webhooks/{webhook_id}/test", { path });
  const [unsecret] = target.requests as [ReceivedRequest];
  t.ok(isSignedBy(key.public_key_pem, unsecret));
  t.notOk(isSignedBy(key.public_key_pem, { ...unsecret, body: Buffer.from("{}") }));
  t.notOk("x-service-signature" in unsecret.headers, "no secret, no HMAC");
  await first.client.patch("/webhooks/{webhook_id}", { path, body: { secret: SECRET } });
  await first.service.end("SIGKILL");

  const second = await start(t, [], directory);
  t.same(await second.client.get("/webhooks/signing-key"), key, "the same key after a kill");
  await second.client.post("/webhooks/{webhook_id}/test", { path });
  const withSecret = target.requests[1] as ReceivedRequest;
  t.ok(isSignedBy(key.public_key_pem, withSecret));
  verifyWebhook({ secret: SECRET, headers: withSecret.headers, body: withSecret.body });
  t.match(await second.client.patch("/webhooks/{webhook_id}", { path, body: { signing: "hmac" } }), {
    signing: "hmac",
  });
  await second.client.post("/webhooks/{webhook_id}/test", { path });
  const { headers, body } = target.requests[2] as ReceivedRequest;
  new Webhook(SECRET).verify(body.toString(), headers as Record<string, string>);
  await second.client.patch("/webhooks/{webhook_id}", { path, body: { signing: "ed25519" } });
  t.equal((await second.service.end()).code, 0);

  const pem = readFileSync(file);
  writeFileSync(file, "no key");
  const third = await start(t, [], directory);
  const broken = await third.client.refusal("get", "/webhooks/signing-key", 503, "unavailable");
  t.match(broken.message, /webhook-signing-key\.pem is no Ed25519 private key in PEM/);
  await third.client.refusal("post", "/webhooks/{webhook_id}/test", 503, "unavailable", { path });
  t.equal(target.requests.length, 3, "nothing is sent unsigned");
  writeFileSync(file, pem);
  // A reading that began before is answered with what it found.
  while ((await third.client.raw("GET", "/webhooks/signing-key")).status === 503);
  t.same(await third.client.get("/webhooks/signing-key"), key, "it is read again");
  t.match(await third.client.post("/webhooks/{webhook_id}/test", { path }), { delivered: true });
  t.equal((await third.service.end()).code, 0);
  const checked = await runCommand(["check", "--data", directory]);
  t.match(checked, { code: 0, stdout: /^ok$/m });

  rmSync(file);
  const fourth = await start(t, [], directory);
  const remade = await fourth.client.get("/webhooks/signing-key");
  t.not(remade.public_key, key.public_key);
  t.match(await fourth.client.post("/webhooks/{webhook_id}/test", { path }), { delivered: true });
  t.ok(isSignedBy(remade.public_key_pem, target.requests.at(-1) as ReceivedRequest));
});
