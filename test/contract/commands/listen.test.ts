import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { MarkdownPage } from "../../helpers/documents/markdown-page.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { SECRET, start } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";
import { signedBy } from "../../helpers/webhooks/webhook-fixtures.js";

const ID = "019b0a5e-7c00-7000-8000-000000000001";
const BODY = '{"event_name":"ProgramCompleted","name":"Wörld"}';

/** The command while it listens, and what it has said. */
async function listening(t: Test, args: readonly string[]) {
  const child = spawn(process.execPath, ["dist/http/main.js", "listen", "--port", "0", ...args]);
  t.teardown(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  const until = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(said);
      if (match !== null) return match;
      if (child.exitCode !== null) throw new Error(`it ended before ${pattern}: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const [, url = ""] = await until(/listening on (\S+)/);
  const printed = () => said;
  const post = async (headers: Record<string, string>, body = BODY) =>
    (await fetch(url, { method: "POST", headers: { "X-Service-Event": "ProgramCompleted", ...headers }, body })).status;
  return { child, exited, url, until, printed, post };
}

const signed = (secret = SECRET): Record<string, string> =>
  signatureHeaders(signedBy(secret), ID, Math.floor(Date.now() / 1000), Buffer.from(BODY));

t.test("it verifies, prints each event and its body, and answers; a signal ends it", async (t) => {
  const { child, exited, url, until, post } = await listening(t, ["--secret", SECRET]);
  t.equal(await post(signed()), 200);
  await until(new RegExp(`^\\S+Z {2}ProgramCompleted {2}${ID} {2}verified {2}answered 200\\n${BODY}$`, "m"));
  t.equal(await post(signed(), `${BODY} `), 401);
  await until(/the signature does not match this secret and this body {2}answered 401$/m);
  t.equal(await post({}), 401);
  await until(/ProgramCompleted {2}no id {2}the request has no X-Service-Signature {2}answered 401$/m);
  t.equal(await post({ "X-Service-Event": "x" }, "\u001b[2J"), 401);
  await until(/\\u001b\[2J|\\x1b\[2J/);
  t.equal((await fetch(url)).status, 405);
  child.kill("SIGTERM");
  t.same(await exited, [0, null]);
});

t.test("without a secret all is taken; the status is chosen, or that of another receiver", async (t) => {
  const busy = await listening(t, ["--answer", "503"]);
  await busy.until(/signatures are not verified: give --secret or --public-key to verify them/);
  t.equal(await busy.post({}), 503);
  await busy.until(/not verified {2}answered 503/);
  const target = await receiverFor(t, (_, response) => response.writeHead(207).end());
  const passing = await listening(t, ["--secret", SECRET, "--forward", `${target.url}/hook?x=1`]);
  t.equal(await passing.post({ ...signed(), "X-Gateway-Key": "k" }), 207);
  t.match(
    target.requests,
    listOf({ method: "POST", path: "/hook?x=1", headers: { "webhook-id": ID, "x-gateway-key": "k" } }),
  );
  t.equal(target.requests[0]?.body.toString(), BODY, "byte for byte");
  t.equal(await passing.post({}), 401);
  t.equal(target.requests.length, 1, "what is not verified is not passed on");
  await target.close();
  t.equal(await passing.post(signed()), 502);
  await passing.until(/answered 502: \S+ gave no answer/);
});

t.test("with a public key it verifies what a webhook with signing ed25519 gets", async (t) => {
  const folder = temporaryDirectory(t);
  const { client } = await start(t);
  const answer = await client.get("/webhooks/signing-key");
  const [saved, pem] = [join(folder, "signing-key.json"), join(folder, "key.pem")];
  writeFileSync(saved, JSON.stringify(answer));
  writeFileSync(pem, answer.public_key_pem);
  for (const file of [saved, pem]) {
    const { url, until, post } = await listening(t, ["--public-key", file]);
    const subscribed = { name: "mes", subscribed_events: ["ProgramFailed" as const], signing: "ed25519" as const };
    const { id } = await client.post("/webhooks", { body: { ...subscribed, url } });
    t.match(await client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: id } }), { delivered: true });
    await until(/ {2}WebhookTest {2}\S+ {2}verified {2}answered 200$/m);
    t.equal(await post({}), 401);
    await until(/the request has not all of webhook-id, webhook-timestamp and webhook-signature {2}answered 401$/m);
    t.equal(await post(signed()), 401, "signed with a secret");
  }
});

t.test("it prints what the page about webhooks shows", async (t) => {
  const page = new MarkdownPage("workers/webhooks/README.md");
  const [command = ""] = page.blocks("## Verify", "sh");
  const [shown = ""] = page.blocks("## Verify", "text");
  const [, secret = ""] = /^npx inspection-service listen --port 9000 --secret (\S+)\n$/.exec(command) ?? [];
  const { url, until, post, printed } = await listening(t, ["--secret", secret]);
  t.equal(await post(signed(secret)), 200);
  await until(/\n\{.*\}\n/);
  const form = (text: string) =>
    text
      .replace(url, "http://127.0.0.1:9000")
      .replace(/^\d{4}-\S+Z/m, "TIME")
      .replace(/^\{.*\}$/m, "{}");
  t.equal(form(printed()), form(shown));
});

t.test("what it cannot do is told in one line", async (t) => {
  const folder = temporaryDirectory(t);
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const contents = {
    key: publicKey.export({ type: "spki", format: "pem" }),
    private: privateKey.export({ type: "pkcs8", format: "pem" }),
    rsa: generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ type: "spki", format: "pem" }),
    ...{ empty: "", error: '{"code": "unauthorized"}', null: "null" },
  };
  for (const [name, content] of Object.entries(contents)) writeFileSync(join(folder, name), content);
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  t.teardown(() => taken.close());
  const { port } = taken.address() as { port: number };
  const refusals: [string[], RegExp][] = [
    [["--port", String(port)], /cannot listen on 127\.0\.0\.1 port \d+: the port is in use/],
    [["--answer", "99"], /--answer: "99" is not allowed/],
    [["--public-key", join(folder, "absent")], /^inspection-service: --public-key: \S+absent does not exist\n$/],
    [["--public-key", folder], /^inspection-service: --public-key: .+\n$/],
    ...["private", "rsa", "empty", "error", "null"].map((name): [string[], RegExp] => [
      ["--public-key", join(folder, name)],
      /^inspection-service: --public-key: \S+ must have the answer of GET \/webhooks\/signing-key, or an Ed25519 .+\n$/,
    ]),
    [["--public-key", join(folder, "key"), "--secret", SECRET], /--secret and --public-key cannot be given together/],
    [["--public-key", ""], /--public-key/],
    [["--secret", ""], /--secret: "" is not allowed/],
    [["--secret", "whsec_"], /--secret must have at most 512 characters/],
    [["--secret", "whsec_?"], /--secret must have at most 512 characters, with base64 after whsec_/],
    [["--forward", "ftp://h/"], /--forward: "ftp:\/\/h\/" is not allowed/],
    [["--forward", "http://h/", "--answer", "200"], /--answer and --forward cannot be given together/],
  ];
  for (const [args, line] of refusals) {
    t.match(await runCommand(["listen", ...args]), { code: 1, stdout: "", stderr: line }, args.join(" "));
  }
});
