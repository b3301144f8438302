import { gunzipSync } from "node:zlib";
import t, { type Test } from "tap";
import type { FrameState, LineBatch } from "../../../core/capture/capture.js";
import type { Change } from "../../../core/link/change.js";
import type { QualityCheck } from "../../../core/run/quality.js";
import type { RunEnding } from "../../../core/run/run-end.js";
import { readGreyPng } from "../../helpers/captures/png-reader.js";
import {
  overProcessedCell,
  PROCESSED_RUN,
  processedCell,
  SERIES_CHANNELS,
  SURFACE,
} from "../../helpers/captures/processed-cell.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import {
  ACTIVE_RUN,
  CANCELLED_RUN,
  FAILED_RUN,
  filled,
  id,
  ODD_NAME,
  PROGRAM,
  REMOVED_RUN,
  RUN,
  UNKNOWN,
  us,
} from "../../helpers/http/filled-cell.js";
import { rawRequest } from "../../helpers/http/raw-http.js";

const reportOf = (run: string): string => `/runs/${run}/report.html`;

const ELEMENTS = new Set(
  (
    "html head meta link title style body main header section p h1 h2 span strong bdi br dl dt dd table colgroup col thead tbody tr th td " +
    "svg rect path text div figure figcaption img"
  ).split(" "),
);
const ATTRIBUTES = new Set(
  (
    "lang charset name content http-equiv rel href class style scope src alt role viewBox preserveAspectRatio aria-hidden aria-label " +
    "x y d width height stroke vector-effect data-defect"
  ).split(" "),
);

/** Every tag is one that the page itself makes: no script, no handler, nothing that loads. */
function foreignParts(html: string): string[] {
  const found: string[] = [];
  for (const [tag, name = "", rest = ""] of html.matchAll(/<\/?([a-zA-Z][^\s/>]*)((?:"[^"]*"|[^">])*)>/g)) {
    if (!ELEMENTS.has(name)) found.push(tag);
    for (const [, attribute = "", value = ""] of rest.matchAll(/([^\s="/]+)(?:="([^"]*)")?/g)) {
      const isLoaded = (attribute === "href" || attribute === "src") && !value.startsWith("data:");
      if (!ATTRIBUTES.has(attribute) || isLoaded || /url\(/i.test(value)) found.push(tag.slice(0, 200));
    }
  }
  const [, style = ""] = /<style>([^<]*)<\/style>/.exec(html) ?? [];
  return /url\(|@import/i.test(style) ? [...found, "the style loads something"] : found;
}

async function pageOf(t: Test, client: ContractClient, run: string): Promise<string> {
  const { status, headers, body } = await client.raw("GET", reportOf(run));
  t.equal(status, 200);
  t.equal(headers["content-type"], "text/html; charset=utf-8");
  const html = body.toString();
  t.same(foreignParts(html), [], "nothing but the page's own elements");
  return html;
}

/** Prints no page when it fails. */
function says(t: Test, html: string, words: string | RegExp, isThere = true): void {
  const found = typeof words === "string" ? html.includes(words) : words.test(html);
  t.equal(found, isThere, `${isThere ? "" : "not "}${words}`);
}

/** The lines of the series of the processed cell: the least and the greatest value in each of 400 parts of its time. */
function plainLines(series: Float32Array): string[] {
  const [low, high] = [1 / 8, (series.length - 1) / 8];
  const y = (value: number): number => Number((100 - (value - low) * (100 / (high - low))).toFixed(2));
  return Array.from({ length: SERIES_CHANNELS }, (_, channel) => {
    const parts = Array.from({ length: 400 }, (): number[] => []);
    for (let row = 0; row < 10_000; row++) {
      const value = series[row * SERIES_CHANNELS + channel] as number;
      if (!Number.isNaN(value)) parts[Math.min(399, Math.trunc(row * 1000 * (400 / 9_999_000)))]?.push(value);
    }
    return parts
      .map((values, at) => {
        const ends = [Math.min(...values), Math.max(...values)] as const;
        return `${at === 0 ? "M" : "L"}${at} ${y(ends[0])}L${at} ${y(ends[1])}`;
      })
      .join("");
  });
}

overProcessedCell("the pictures and the plot of a run are in its page", async (t, client, { frames, series }) => {
  const { status, headers, body } = await client.raw("GET", reportOf(PROCESSED_RUN));
  t.equal(status, 200);
  t.equal(headers["content-security-policy"], "default-src 'none'; style-src 'unsafe-inline'; img-src data:");
  const html = await pageOf(t, client, PROCESSED_RUN);
  t.equal(html, body.toString(), "the same bytes again");
  const pictures = [...html.matchAll(/<img alt="([^"]*)" src="data:image\/png;base64,([^"]*)"/g)].map(
    ([, alt, base64 = ""]) => ({ alt, bytes: Buffer.from(base64, "base64") }),
  );
  for (const [frameId, { planes, geometry, luminance }] of frames) {
    const heights = pictures.shift();
    t.equal(heights?.alt, "Height map of the frame");
    const preview = await client.raw("GET", `/sensor/frames/${frameId}/preview.png`);
    t.ok(heights?.bytes.equals(preview.body), "the preview, as it is served");
    if (planes.luminance === undefined) continue;
    const light = pictures.shift();
    t.equal(light?.alt, "Luminance of the frame");
    const { width, height, samples } = readGreyPng(light?.bytes as Buffer);
    t.same([width, height], [geometry.width, geometry.lines]);
    t.ok(
      samples.every((sample, at) => sample === luminance?.[at]),
      "every point of it",
    );
  }
  t.equal(pictures.length, 0);
  says(t, html, `${series.length / 3} samples, in the unit of the sensor`);
  says(t, html, 'aria-label="3 channels from 0.125 to 3749.88"');
  const lines = [...html.matchAll(/<path stroke="[^"]+" d="([^"]+)"/g)].map(([, line]) => line);
  t.ok(JSON.stringify(lines) === JSON.stringify(plainLines(series)), "a line for each channel");
});

overProcessedCell("conditions, compression and HEAD of a page", async (t, client) => {
  const path = reportOf(PROCESSED_RUN);
  const { headers, body } = await client.raw("GET", path);
  t.equal((await client.raw("GET", path, `If-None-Match: ${headers.etag}\r\n`)).status, 304);
  const packed = await client.raw("GET", path, "Accept-Encoding: gzip\r\n");
  t.equal(packed.headers["content-encoding"], "gzip");
  t.ok(gunzipSync(packed.body).equals(body));
  const head = await rawRequest(client.port, `HEAD ${path} HTTP/1.1\r\nHost: x\r\n\r\n`, "HEAD");
  t.match(head, { status: 200, headers: { "content-length": String(body.length) } });
  const refused = await client.raw("POST", path);
  t.equal(refused.status, 405);
});

t.test("a run in each state, and one that is not there", async (t) => {
  const { client } = await filled(t);
  for (const [run, words] of [
    [RUN, ["<bdi>SN+1 é</bdi>", ">Passed<", "Housing top", "flatness", "dent", "all good", ODD_NAME, "90 % sure"]],
    [FAILED_RUN, [">Run failed: no result<", "This run broke off.", "<bdi>robot fault</bdi>", "1 check: 1 passed"]],
    [CANCELLED_RUN, [">Run cancelled: no result<", "This run was cancelled.", "captured no frame", "has no files"]],
    [REMOVED_RUN, ["Retention removed the captures of this run.", "Height map: removed by retention", ">removed 2026"]],
    [ACTIVE_RUN, [">Not finished<", "has not ended (running)", "Height map: not complete yet", "No checks were made"]],
  ] as const) {
    const html = await pageOf(t, client, run);
    for (const word of words) t.ok(html.includes(word), word);
  }
  const { params } = await client.rawRefusal(reportOf(UNKNOWN), 404, "run_not_found");
  t.match(params, { field: "run_id", in: "path", value: UNKNOWN });
  await client.rawRefusal(reportOf("no-id"), 404, "run_not_found");
});

t.test("a run that goes on has a new page after each change", async (t) => {
  const { cell, client } = await filled(t);
  says(t, await pageOf(t, client, ACTIVE_RUN), /a late check/, false);
  const check: QualityCheck = { name: "a late check", status: "passed" };
  cell.apply(us(60), { kind: "check_added", runId: ACTIVE_RUN, check });
  says(t, await pageOf(t, client, ACTIVE_RUN), /a late check/);
  cell.end(us(61), ACTIVE_RUN, { status: "completed", errorMessage: null, notes: [] });
  says(t, await pageOf(t, client, ACTIVE_RUN), /class="outcome pass">Passed</);
});

function created(runId: string, programName: string, serialNumber: string | null, step: string): Change {
  const head = { programId: PROGRAM, robotId: "r1", revision: 1, metadata: null, traceId: null };
  return { kind: "run_created", runId, ...head, programName, serialNumber, steps: [{ type: "wait", name: step }] };
}

async function aloneWith(t: Test): Promise<{ cell: RecordedCell; client: ContractClient }> {
  const cell = new RecordedCell();
  return { cell, client: new ContractClient(t, await cell.listenFor(t)) };
}

const COMPLETED: RunEnding = { status: "completed", errorMessage: null, notes: [] };
const SCRIPT = `</title></style><script>alert("x")</script><img src=//evil.example onerror='go()'>&lt;`;
const ESCAPED =
  "&lt;/title&gt;&lt;/style&gt;&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&lt;img src=//evil.example onerror=&#39;go()&#39;&gt;&amp;lt;";
/** Marks that turn the direction of writing, a NUL, and half a surrogate pair. */
const ODD = "\u202egnp.\u2067\u0000\ud800";

t.test("texts from outside stay texts, and have no effect beyond their place", async (t) => {
  const { cell, client } = await aloneWith(t);
  const text = (of: string): string => `${of} ${SCRIPT} ${ODD}`;
  const run = id(1);
  cell.apply(us(1), created(run, text("program"), text("serial"), text("step")));
  cell.apply(us(2), { kind: "run_started", runId: run });
  const check: QualityCheck = { name: text("check"), status: "failed", value: 1, message: text("message") };
  cell.apply(us(3), { kind: "check_added", runId: run, check });
  const defect = { type: text("type"), description: text("description"), severity: text("severity") };
  cell.apply(us(4), { kind: "defect_added", runId: run, defect });
  const file = { type: "report", stepIndex: null, frameId: null, offset: 0, lengthBytes: 0, crc32: 0 } as const;
  const named = { name: text("file"), contentType: text("content"), description: text("note") };
  cell.apply(us(5), { kind: "file_stored", runId: run, file: { ...file, ...named } });
  cell.apply(us(6), { kind: "run_finalizing", runId: run, summary: text("summary"), results: null });
  cell.end(us(7), run, COMPLETED);
  const html = await pageOf(t, client, run);
  for (const of of "program serial check message type description severity file note summary".split(" ")) {
    t.ok(html.includes(`<bdi>${of} ${ESCAPED} \u202egnp.\u2067\ufffd\ufffd</bdi>`), of);
  }
  const outside = html.replace(/<bdi>[^<]*<\/bdi>/g, "").replace(/<title>[^<]*<\/title>/, "");
  says(t, outside, /[\u202a-\u202e\u2066-\u2069]/, false);
  says(t, html, "\u0000", false);
});

t.test("a text of 10,000 characters is cut, and says so", async (t) => {
  const { cell, client } = await aloneWith(t);
  const run = id(1);
  cell.apply(us(1), created(run, "Top", null, "wait"));
  cell.apply(us(2), { kind: "run_started", runId: run });
  const check: QualityCheck = {
    name: "long",
    status: "error",
    message: `${"x".repeat(399)}\u{1f600}${"y".repeat(9_599)}`,
  };
  cell.apply(us(3), { kind: "check_added", runId: run, check });
  cell.end(us(4), run, COMPLETED);
  const html = await pageOf(t, client, run);
  says(t, html, "No serial number");
  t.ok(
    html.includes(`<bdi>${"x".repeat(399)}…</bdi> <span class="note">(cut: 10000 characters)</span>`),
    "no half character",
  );
});

t.test("10,000 checks: each has its row, the failed ones first", async (t) => {
  const { cell, client } = await aloneWith(t);
  const run = id(1);
  cell.apply(us(1), created(run, "Top", "SN-1", "wait"));
  cell.apply(us(2), { kind: "run_started", runId: run });
  const checks = Array.from({ length: 10_000 }, (_, at): QualityCheck => {
    const isBad = at % 1_000 === 7;
    const value = isBad ? 8.9 : 10 + (at % 9) / 100;
    // Most producers do not say by how much a value deviates.
    const numbers = { value, nominal: 10, threshold: 0.5, ...(at % 100 === 8 && { delta: 0.25 }) };
    return { name: `check ${at}`, status: isBad ? "failed" : "passed", ...numbers };
  });
  cell.apply(us(3), ...checks.map((check) => ({ kind: "check_added", runId: run, check }) as const));
  cell.end(us(4), run, COMPLETED);
  const html = await pageOf(t, client, run);
  says(t, html, "10000 checks: 10 failed, 9990 passed.");
  const names = [...html.matchAll(/<th scope="row"><bdi>(check \d+)<\/bdi>/g)].map(([, name]) => name);
  const ordered = [
    ...checks.filter((one) => one.status === "failed"),
    ...checks.filter((one) => one.status === "passed"),
  ];
  t.same(
    names,
    ordered.map(({ name }) => name),
  );
  t.equal(html.match(/<svg class="bar"/g)?.length, 10_000, "each with its bar");
  // 8.9 lies more than two tolerances below: beyond the bar.
  says(t, html, `<path class="value-fail" d="M0 5L7 1V9Z"/>`);
  says(t, html, `<td class="number">\u22121.100</td><td class="number">± 0.500</td>`);
  says(t, html, `<td class="number">+0.250</td><td class="number">± 0.500</td>`);
  t.ok(html.length < 8 * 1024 * 1024, `${html.length} bytes`);
});

t.test("damaged captures are left out and named, until they are mended", async (t) => {
  const { cell } = await processedCell();
  const client = new ContractClient(t, await cell.listenFor(t));
  const frame = cell.state(PROCESSED_RUN).frames.find((one) => one.id === SURFACE) as FrameState;
  const { offset, lengthBytes } = frame.batches[1] as LineBatch;
  const captures = cell.files.get(`${PROCESSED_RUN}/capture`) as Uint8Array;
  const flip = (at: number): number => (captures[at] = (captures[at] ?? 0) ^ 1);
  const NOTICE = "Stored captures of this run are damaged or missing.";
  flip(offset + lengthBytes - 1);
  const damaged = await pageOf(t, client, PROCESSED_RUN);
  says(t, damaged, "Luminance: the stored bytes are damaged");
  says(t, damaged, "Height map: the stored bytes", false);
  says(t, damaged, NOTICE);
  cell.files.delete(`${PROCESSED_RUN}/capture`);
  const missing = await pageOf(t, client, PROCESSED_RUN);
  says(t, missing, "Height map: the stored bytes are missing");
  says(t, missing, NOTICE);
  says(t, missing, "<img", false);
  flip(offset + lengthBytes - 1);
  cell.files.set(`${PROCESSED_RUN}/capture`, captures);
  says(t, await pageOf(t, client, PROCESSED_RUN), NOTICE, false);
  t.equal(cell.openFiles, 0);
  cell.end(Date.UTC(2026, 1, 28) * 1000, PROCESSED_RUN, COMPLETED, {
    capturesRemovedAtUs: Date.UTC(2026, 1, 28) * 1000,
  });
  const removed = await pageOf(t, client, PROCESSED_RUN);
  says(t, removed, "Retention removed the captures of this run.");
  says(t, removed, "Removed by retention.");
  says(t, removed, "<img", false);
});
