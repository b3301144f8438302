import { spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { addressFault, parseAddressRange } from "../../../core/webhook/address-policy.js";
import { DELIVERY_STATUSES } from "../../../core/webhook/delivery.js";
import { WEBHOOK_DEFAULTS } from "../../../core/webhook/webhook.js";
import { signatureHeaders } from "../../../core/webhook/webhook-signature.js";
import { MarkdownPage, tableRows } from "../../helpers/documents/markdown-page.js";
import { signedBy } from "../../helpers/webhooks/webhook-fixtures.js";

const PAGE = new MarkdownPage("workers/webhooks/README.md");
const BODY = '{"hello":"Wörld ✓"}';
const SECRET = "a plain secret";

/** What each of these requests is taken for: a good one, another body, an old one, none. */
const [NOW, OLD] = [0, -301].map(
  (ageSeconds) =>
    signatureHeaders(signedBy(SECRET), "id", Math.floor(Date.now() / 1000) + ageSeconds, Buffer.from(BODY))[
      "X-Service-Signature"
    ] as string,
) as [string, string];
/** By somebody who bets that the receiver has no secret. */
const FORGED = signatureHeaders(signedBy(""), "id", Math.floor(Date.now() / 1000), Buffer.from(BODY))[
  "X-Service-Signature"
] as string;
const CASES = [
  [NOW, BODY],
  [NOW, `${BODY} `],
  [OLD, BODY],
  [null, BODY],
] as const;
const EXPECTED = "true false false false";

t.test("verifying in TypeScript, as the page says", async (t) => {
  const [code = ""] = PAGE.blocks("## Verify", "js");
  const calls = CASES.map(([signature, body]) => {
    const headers = signature === null ? {} : { "x-service-signature": signature };
    return `isOurs(${JSON.stringify(headers)}, Buffer.from(${JSON.stringify(body)}))`;
  });
  const script = `${code}\nconsole.log(${calls.join(", ")});`;
  const printed = (secret: string | undefined, text: string) => {
    const env = { ...process.env, WEBHOOK_SECRET: secret };
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", text], { env });
    return `${stdout.toString().trim()}${stderr}`;
  };
  t.equal(printed(SECRET, script), EXPECTED);
  const forged = `${code}\nconsole.log(isOurs({ "x-service-signature": "${FORGED}" }, Buffer.from('${BODY}')));`;
  for (const secret of [undefined, ""]) t.equal(printed(secret, forged), "false", "signed with an empty secret");
});

t.test("verifying an Ed25519 signature, as the page says", async (t) => {
  const [code = ""] = PAGE.blocks("## Sign with a key pair", "js");
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const signers = { secrets: [], privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
  const nowSeconds = Math.floor(Date.now() / 1000);
  const headersAt = (seconds: number) => JSON.stringify(signatureHeaders(signers, "id", seconds, Buffer.from(BODY)));
  const [now, old] = [headersAt(nowSeconds), headersAt(nowSeconds - 302)];
  const pem = JSON.stringify(publicKey.export({ type: "spki", format: "pem" }));
  const calls = [
    [now, BODY],
    [now, `${BODY} `],
    [old, BODY],
    ["{}", BODY],
  ].map(([headers, body]) => `isSigned(${headers}, Buffer.from(${JSON.stringify(body)}), ${pem})`);
  const script = `${code}\nconsole.log(${calls.join(", ")});`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script]);
  t.equal(stdout.toString().trim(), EXPECTED, stderr.toString());
});

const hasPython = spawnSync("python3", ["-c", "def f(x: str | None): pass"]).status === 0;

t.test("verifying in Python, as the page says", { skip: hasPython ? false : "no python3 of 3.10" }, async (t) => {
  const [code = ""] = PAGE.blocks("## Verify", "python");
  const calls = CASES.map(([signature, body]) => {
    const given = signature === null ? "None" : JSON.stringify(signature);
    return `is_ours(${JSON.stringify(SECRET)}, ${given}, bytes.fromhex("${Buffer.from(body).toString("hex")}"))`;
  });
  calls.push(`is_ours("", "${FORGED}", bytes.fromhex("${Buffer.from(BODY).toString("hex")}"))`);
  const { stdout, stderr } = spawnSync("python3", ["-c", `${code}\nprint(${calls.join(", ")})`]);
  t.equal(stdout.toString().trim().toLowerCase(), `${EXPECTED} false`, stderr.toString());
});

t.test("settings, states and times are the code's", async (t) => {
  const { deliveryTimeoutSeconds, retryBackoffSeconds, maxRetries } = WEBHOOK_DEFAULTS;
  const settings: [string, number, { minimum: number; maximum: number }][] = [
    ["delivery_timeout_seconds", deliveryTimeoutSeconds, LIMITS.deliveryTimeoutSeconds],
    ["retry_backoff_seconds", retryBackoffSeconds, LIMITS.retryBackoffSeconds],
    ["max_retries", maxRetries, LIMITS.maxRetries],
  ];
  t.same(
    tableRows(PAGE.section("## Attempts and times")).map(([setting, , ...figures]) => [setting, ...figures]),
    settings.map(([setting, ...[byDefault, { minimum, maximum }]]) => [
      `\`${setting}\``,
      ...[byDefault, minimum, maximum].map(String),
    ]),
  );
  t.equal(LIMITS.dispatchWindowMs, 10_000);
  const states = tableRows(PAGE.section("## Deliveries")).map(([state]) => state);
  t.same(
    states,
    DELIVERY_STATUSES.map((status) => `\`${status}\``),
  );
});

t.test("the addresses that the page names are refused, for the reason that it gives", async (t) => {
  const policy = { allow: null, deny: [], own: [], ownPort: 8000 };
  const rows = tableRows(PAGE.section("## Addresses that are refused"));
  for (const [ranges = "", reason = ""] of rows.slice(0, -1)) {
    for (const [, range = ""] of ranges.matchAll(/`([^`]+)`/g)) {
      const [address] = parseAddressRange(range) ?? [];
      t.match(addressFault(`${address}`, 80, policy), new RegExp(reason), range);
    }
  }
  t.match(addressFault("127.0.0.1", 8000, policy), /the service itself/);
  t.equal(addressFault("127.0.0.1", 9000, policy), undefined);
});
