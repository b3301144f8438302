import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import t, { type Test } from "tap";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { receiver, SECRET } from "../../helpers/webhooks/announcing-cell.js";
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
  const post = async (headers: Record<string, string>, body = BODY) =>
    (await fetch(url, { method: "POST", headers: { "X-Service-Event": "ProgramCompleted", ...headers }, body })).status;
  return { child, exited, url, until, post };
}

const signed = (): Record<string, string> =>
  signatureHeaders(signedBy(SECRET), ID, Math.floor(Date.now() / 1000), Buffer.from(BODY));

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
  await busy.until(/signatures are not verified/);
  t.equal(await busy.post({}), 503);
  await busy.until(/not verified {2}answered 503/);
  const target = await receiver(t, (_, response) => response.writeHead(207).end());
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

t.test("what it cannot do is told in one line", async (t) => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  t.teardown(() => taken.close());
  const { port } = taken.address() as { port: number };
  const refusals: [string[], RegExp][] = [
    [["--port", String(port)], /cannot listen on 127\.0\.0\.1 port \d+: the port is in use/],
    [["--answer", "99"], /--answer: "99" is not allowed/],
    [["--secret", "whsec_?"], /--secret must have at most 512 characters, with base64 after whsec_/],
    [["--forward", "ftp://h/"], /--forward: "ftp:\/\/h\/" is not allowed/],
    [["--forward", "http://h/", "--answer", "200"], /--answer and --forward cannot be given together/],
  ];
  for (const [args, line] of refusals) {
    t.match(await runCommand(["listen", ...args]), { code: 1, stdout: "", stderr: line }, args.join(" "));
  }
});
