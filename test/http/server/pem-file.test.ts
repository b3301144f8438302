import { X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { type PemContent, PemFileError, readPemFile } from "../../../http/server/pem-file.js";
import { RECEIVER_CERTIFICATE, TEST_AUTHORITY } from "../../helpers/http/test-authority.js";
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from "../../helpers/http/test-certificate.js";
import { sized } from "../../helpers/test-size.js";

const BUNDLE = `# Line 7\n${TEST_AUTHORITY}\nOffice\n======\n${RECEIVER_CERTIFICATE}${TEST_CERTIFICATE}`;
const END = "-----END CERTIFICATE-----";

/** The complaint about a file with this text; undefined if it is taken as it is. */
async function fault(t: Test, text: string | Uint8Array, content: PemContent = "certificate") {
  const path = join(t.testdirName, "file.pem");
  writeFileSync(path, text);
  try {
    if ((await readPemFile(path, content)) !== text) t.fail("another text");
    return undefined;
  } catch (error) {
    if (!(error instanceof PemFileError) || !error.message.startsWith(path)) t.fail(String(error));
    return (error as Error).message.slice(path.length);
  }
}

t.test("whole files are taken: bundles with remarks, of one line, with the line ends of Windows", async (t) => {
  t.testdir();
  const ending = TEST_AUTHORITY.trimEnd();
  for (const text of [
    TEST_AUTHORITY,
    BUNDLE,
    ending,
    BUNDLE.replaceAll("\n", "\r\n"),
    `--\n-\n----\n${ending}\n# end`,
  ]) {
    t.equal(await fault(t, text), undefined);
  }
  for (const text of [TEST_PRIVATE_KEY, `${TEST_CERTIFICATE}${TEST_PRIVATE_KEY}`]) {
    t.equal(await fault(t, text, "private key"), undefined);
  }
});

t.test("a bundle that is cut off anywhere is refused, unless it ends after a certificate", async (t) => {
  t.testdir();
  for (let length = 0; length < BUNDLE.length; length += length < BUNDLE.length - 100 ? sized(29, 7) : 1) {
    const text = BUNDLE.slice(0, length);
    const rest = text.slice(text.lastIndexOf(END) + END.length);
    const isWhole = text.includes(END) && !rest.includes("-----B") && !/-$/.test(rest);
    const said = await fault(t, text);
    if ((said === undefined) !== isWhole) t.fail(`${length}: ${said} of …${text.slice(-40)}`);
  }
  t.match(await fault(t, BUNDLE.slice(0, -60)), /^: a PEM block is damaged or cut off, at line 26$/);
});

t.test("a damaged certificate is named, wherever it stands", async (t) => {
  t.testdir();
  const lines = RECEIVER_CERTIFICATE.split("\n");
  const without = (line: number): string => lines.filter((_, at) => at !== line).join("\n");
  const [first, last] = [1, lines.length - 3];
  for (const damaged of [without(first), without(4), without(last), RECEIVER_CERTIFICATE.replace("MIIB", "MIIC")]) {
    t.match(await fault(t, `${damaged}\n${BUNDLE}`), /^: certificate 1 of 4, at line 1, cannot be read \(.+\)/);
    t.match(await fault(t, `${BUNDLE}${damaged}`), /^: certificate 4 of 4, at line 37, cannot be read/);
  }
});

t.test("edges that do not belong together are refused", async (t) => {
  t.testdir();
  const [begin] = TEST_AUTHORITY.split("\n");
  for (const [text, line] of [
    [`${END}\n${TEST_AUTHORITY}`, 1],
    [`${TEST_AUTHORITY}${END}\n`, 11],
    [`${begin}\n${TEST_AUTHORITY}`, 1],
    [TEST_AUTHORITY.replace(END, "-----END X509 CRL-----"), 1],
    // Two files put together, the first of which has no newline at its end.
    [`${TEST_AUTHORITY.trimEnd()}${RECEIVER_CERTIFICATE}`, 1],
    [TEST_AUTHORITY.replace("BEGIN ", "BEGIN"), 1],
  ] as const) {
    t.equal(await fault(t, text), `: a PEM block is damaged or cut off, at line ${line}`);
  }
});

t.test("what is not there is named: the other kind, DER, zeros, nothing", async (t) => {
  t.testdir();
  const der = new X509Certificate(TEST_AUTHORITY).raw;
  for (const text of ["", "no certificate", TEST_PRIVATE_KEY, der, Buffer.alloc(4096)]) {
    t.equal(await fault(t, text), " has no certificate in PEM");
  }
  t.equal(await fault(t, BUNDLE, "private key"), " has no private key in PEM");
  t.match(await fault(t, TEST_PRIVATE_KEY.slice(0, 150), "private key"), /^: a PEM block is damaged .* at line 1$/);
});
