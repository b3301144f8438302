import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import t from "tap";
import {
  type VerificationFault,
  type VerifyWebhookOptions,
  verifyWebhook,
  WebhookVerificationError,
} from "../../../core/webhook/verify-webhook.js";
import { isUsableSecret, signatureHeaders } from "../../../core/webhook/webhook-signature.js";

import { signedBy } from "../../helpers/webhooks/webhook-fixtures.js";

const ID = "019b0a5e-7c00-7000-8000-000000000001";
const AT = 1_800_000_000;
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = Buffer.from('{"hello":"Wörld ✓"}');
const README = readFileSync("workers/webhooks/README.md", "utf8");

function signed(overrides: Partial<VerifyWebhookOptions> = {}, header?: string): VerifyWebhookOptions {
  const headers = signatureHeaders(signedBy(SECRET), ID, AT, BODY);
  const value = header ?? headers["X-Service-Signature"];
  return { secret: SECRET, headers: { "x-service-signature": value }, body: BODY, nowSeconds: AT, ...overrides };
}

function faultOf(options: VerifyWebhookOptions): VerificationFault | undefined {
  try {
    verifyWebhook(options);
    return undefined;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.fault;
    throw error;
  }
}

t.test("the vectors of the documentation", async (t) => {
  t.ok(README.includes(BODY.toString("hex")) && README.includes(String(AT)) && README.includes(ID), "their inputs");
  const rows = [...README.matchAll(/^\| `([^`]+)` \| `(t=[^`]+)` \| `(v1,[^`]+)` \|$/gm)];
  t.equal(rows.length, 2, "two vectors");
  for (const [, secret, service, standard] of rows) {
    const headers = signatureHeaders(signedBy(secret as string), ID, AT, BODY);
    t.equal(headers["X-Service-Signature"], service);
    t.equal(headers["webhook-signature"], standard);
    t.equal(headers["webhook-timestamp"], String(AT));
    t.equal(headers["webhook-id"], ID);
    const options = { secret: secret as string, headers: { "X-Service-Signature": service }, body: BODY };
    t.same(verifyWebhook({ ...options, nowSeconds: AT }), { timestampSeconds: AT });
  }
});

t.test("accepts what was signed, however headers and body are held", async (t) => {
  const value = signatureHeaders(signedBy(SECRET), ID, AT, BODY)["X-Service-Signature"] as string;
  t.equal(faultOf(signed()), undefined);
  t.equal(faultOf(signed({ headers: new Headers({ "X-Service-Signature": value }) })), undefined, "Headers");
  t.equal(faultOf(signed({ headers: { "x-service-signature": [value] } })), undefined, "a list of one");
  t.equal(faultOf(signed({ body: BODY.toString() })), undefined, "text");
  t.equal(faultOf(signed({ headers: { get: value, "X-SERVICE-SIGNATURE": value } })), undefined, "a header named get");
});

t.test("says which check failed", async (t) => {
  const good = signatureHeaders(signedBy(SECRET), ID, AT, BODY)["X-Service-Signature"] as string;
  t.equal(faultOf(signed({ headers: {} })), "signature_missing");
  t.equal(faultOf(signed({ headers: new Headers() })), "signature_missing");
  for (const header of ["", "v1=ab", `${good}0`, good.toUpperCase(), `t=-1,${good.split(",")[1]}`, ` ${good}`]) {
    t.equal(faultOf(signed({}, header)), "signature_malformed", header);
  }
  t.equal(faultOf(signed({ headers: { "x-service-signature": [good, good] } })), "signature_malformed", "twice");
  t.equal(faultOf(signed({ secret: "another" })), "signature_mismatch");
  t.equal(faultOf(signed({ body: Buffer.from(`${BODY} `) })), "signature_mismatch");
  t.equal(faultOf(signed({}, good.replace(/t=\d+/, `t=${AT + 1}`))), "signature_mismatch", "the time is signed too");
  const flipped = good.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  t.equal(faultOf(signed({}, flipped)), "signature_mismatch", "one digit");
});

t.test("without a usable secret or key nothing is verified: anybody could sign with an empty one", async (t) => {
  const empty = signatureHeaders(signedBy(""), ID, AT, BODY)["X-Service-Signature"] as string;
  const prefix = signatureHeaders(signedBy("whsec_"), ID, AT, BODY)["X-Service-Signature"] as string;
  const refuses = (overrides: object, header: string, message: RegExp) =>
    t.throws(() => verifyWebhook(signed(overrides, header)), { name: "TypeError", message });
  for (const secret of ["", [], [""], new Uint8Array(), null, 0]) refuses({ secret }, empty, /^secret must be/);
  refuses({ secret: "whsec_" }, prefix, /^secret must be/);
  refuses({ secret: undefined }, empty, /^pass either secret or publicKey/);
  refuses({ publicKey: "x" }, empty, /^pass either secret or publicKey/);
  for (const publicKey of ["", "x", [], null]) refuses({ secret: undefined, publicKey }, empty, /^publicKey must be/);
});

t.test("a public key verifies the signature of Standard Webhooks", async (t) => {
  const { privateKey, publicKey: key } = generateKeyPairSync("ed25519");
  const publicKey = key.export({ type: "spki", format: "pem" }).toString();
  const privatePem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const good = signatureHeaders({ secrets: [SECRET], privateKey: privatePem }, ID, AT, BODY);
  const options = { publicKey, headers: good, body: BODY, nowSeconds: AT };
  const fault = (overrides: object, headers: object = {}) =>
    faultOf({ ...options, headers: { ...good, ...headers }, ...overrides });
  t.same(verifyWebhook(options), { timestampSeconds: AT });
  t.equal(fault({ headers: new Headers(good) }), undefined);
  const other = `v1,${"A".repeat(43)}= v1a,${"A".repeat(86)}==`;
  t.equal(fault({}, { "webhook-signature": `${other} ${good["webhook-signature"]}` }), undefined, "any of several");
  t.equal(fault({}, { "webhook-signature": other }), "signature_mismatch");
  t.equal(fault({ body: "x" }), "signature_mismatch");
  t.equal(fault({}, { "webhook-id": "another" }), "signature_mismatch");
  t.equal(fault({}, { "webhook-timestamp": String(AT + 1) }), "signature_mismatch");
  t.equal(fault({ headers: {} }), "signature_missing");
  const hmac = signatureHeaders(signedBy(SECRET), ID, AT, BODY);
  t.equal(fault({ headers: hmac }), "signature_missing", "signed with hmac");
  const twice = [good["webhook-signature"], good["webhook-signature"]];
  for (const signature of ["", "v1a", "v1a,?", twice]) {
    t.equal(fault({}, { "webhook-signature": signature }), "signature_malformed", String(signature));
  }
  t.equal(fault({}, { "webhook-timestamp": "now" }), "signature_malformed");
  t.equal(fault({ nowSeconds: AT + 301 }), "timestamp_too_old");
  t.equal(fault({ nowSeconds: AT - 301 }), "timestamp_too_new");
  const another = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "pem" }).toString();
  t.equal(fault({ publicKey: another }), "signature_mismatch");
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey;
  for (const wrong of [privatePem, rsa.export({ type: "spki", format: "pem" }).toString()]) {
    t.throws(() => verifyWebhook({ ...options, publicKey: wrong }), { name: "TypeError", message: /^publicKey must/ });
  }
});

t.test("any of several signatures may be of the receiver's secret, while two secrets overlap", async (t) => {
  const both = signatureHeaders({ secrets: [SECRET, "the old one"], privateKey: null }, ID, AT, BODY);
  const header = both["X-Service-Signature"] as string;
  t.match(header, /^t=1800000000,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
  t.match(both["webhook-signature"], /^v1,\S{44} v1,\S{44}$/);
  for (const secret of [SECRET, "the old one"]) {
    t.equal(faultOf(signed({ secret }, header)), undefined);
    t.equal(faultOf(signed({ secret, body: "x" }, header)), "signature_mismatch");
  }
  t.equal(faultOf(signed({ secret: "a third" }, header)), "signature_mismatch");
  t.equal(faultOf(signed({}, `${header}${`,v1=${"0".repeat(64)}`.repeat(15)}`)), "signature_malformed", "17 of them");
});

t.test("the tolerance holds in both directions, to the second", async (t) => {
  t.equal(faultOf(signed({ nowSeconds: AT + 300 })), undefined);
  t.equal(faultOf(signed({ nowSeconds: AT + 301 })), "timestamp_too_old");
  t.equal(faultOf(signed({ nowSeconds: AT - 300 })), undefined);
  t.equal(faultOf(signed({ nowSeconds: AT - 301 })), "timestamp_too_new");
  t.equal(faultOf(signed({ nowSeconds: AT + 11, toleranceSeconds: 10 })), "timestamp_too_old");
  t.equal(faultOf(signed({ nowSeconds: Date.now() / 1000 + 1e9 })), "timestamp_too_old");
});

t.test("the package exports it, and nothing beside it", async (t) => {
  const script = (specifier: string) =>
    `import("${specifier}").then((m) => console.log(Object.keys(m).sort().join()), (e) => console.log(e.code))`;
  const run = (specifier: string) =>
    execFileSync(process.execPath, ["--input-type=module", "-e", script(specifier)], { encoding: "utf8" }).trim();
  t.equal(run("inspection-results-service/verify"), "DEFAULT_TOLERANCE_SECONDS,WebhookVerificationError,verifyWebhook");
  t.equal(run("inspection-results-service/dist/core/verify-webhook.js"), "ERR_PACKAGE_PATH_NOT_EXPORTED");
});

t.test("a secret after whsec_ must be base64", async (t) => {
  for (const secret of ["x", "whsec", "WHSEC_?", SECRET, "whsec_YQ=="]) t.ok(isUsableSecret(secret), secret);
  for (const secret of ["whsec_", "whsec_?", "whsec_YQ=", "whsec_YQ", "whsec_YQ==x"]) {
    t.notOk(isUsableSecret(secret), secret);
  }
});

t.test("a tolerance or a time that is no number is an error, not a request of any age that passes", (t) => {
  const options = { secret: SECRET, headers: {}, body: "" };
  for (const toleranceSeconds of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
    t.throws(() => verifyWebhook({ ...options, toleranceSeconds }), { name: "TypeError", message: /toleranceSeconds/ });
  }
  t.throws(() => verifyWebhook({ ...options, nowSeconds: Number.NaN }), { name: "TypeError", message: /nowSeconds/ });
  t.end();
});
