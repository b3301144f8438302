import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import t, { type Test } from "tap";
import type { QualityCheck } from "../../core/run/quality.js";
import type { RunEnding } from "../../core/run/run-end.js";
import { axeFindings, inBrowser, openPage } from "../helpers/browser/console-browser.js";
import { type ConsoleCell, check, startConsole } from "../helpers/browser/console-cell.js";
import { type PdfSheet, pdfSheets } from "../helpers/browser/pdf-text.js";
import { filled, REMOVED_RUN, us } from "../helpers/http/filled-cell.js";
import { temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { sized } from "../helpers/test-size.js";

const CHECKS = 200;
/** Chromium needs a minute to lay out 10,000. */
const MANY_CHECKS = sized(2_000, 10_000);
const number = (at: number): string => String(at).padStart(4, "0");
/** Columns 1 to 3 of 4, lines 20 to 60 of 200. */
const BBOX = [1, 20, 3, 60];

t.test("the report page of a run", inBrowser, async (t) => {
  const { browser, service, cell } = await startConsole(t);
  const runId = await play(cell);
  const origin = `http://127.0.0.1:${service.port}`;
  const saved = join(temporaryDirectory(t), "report.html");

  t.test("the console's page of the run saves it", (t) => save(t, browser, `${origin}/console/runs/${runId}`, saved));
  t.test("it opens offline, and asks for nothing", (t) => openOffline(t, browser, saved));
  t.test("it prints on A4: no row of a table is cut, and each sheet has the head", (t) => print(t, browser, saved));
  t.test("with many checks, without captures, it prints too", (t) => printMany(t, browser));
});

async function printMany(t: Test, browser: Browser): Promise<void> {
  const { cell, client } = await filled(t);
  const checks = Array.from({ length: MANY_CHECKS }, (_, at) => {
    const message = `${at % 100 === 0 ? "It was measured twice. ".repeat(16) : ""}end-${number(at)}`;
    return { ...check(`begin-${number(at)}`, at % 50 === 3 ? "failed" : "passed", 10 + (at % 7) / 100), message };
  });
  const ending: RunEnding = { status: "completed", errorMessage: null, notes: [] };
  cell.end(us(80), REMOVED_RUN, ending, {
    checks: checks as QualityCheck[],
    capturesRemovedAtUs: us(80),
    updatedAtUs: us(80),
  });
  const { body } = await client.raw("GET", `/runs/${REMOVED_RUN}/report.html`);
  const saved = join(temporaryDirectory(t), "report.html");
  writeFileSync(saved, body);
  const { page, asked } = await opened(browser, saved);
  const sheets = pdfSheets(await page.pdf({ preferCSSPageSize: true }));
  // A row has two lines, so some 26 rows find room on a sheet; each hundredth has more.
  const least = MANY_CHECKS / 33;
  t.ok(sheets.length > least && sheets.length < 2 * least, `${sheets.length} sheets`);
  const rows = checks.map((_, at) => number(at));
  t.same(cutRows(sheets, rows), []);
  const withRows = sheets.filter(({ text }) => /begin-\d/.test(text));
  const fewest = Math.min(...withRows.slice(1, -1).map(({ text }) => text.split("begin-").length));
  t.ok(fewest > 15, `${fewest} rows on a sheet: none is left half empty`);
  t.ok(withRows.every(({ text, width, height }) => /Within\s*tolerance/.test(text) && width < 596 && height < 843));
  t.match(sheets.map(({ text }) => text).join(""), /Retention removed the captures of this run\./);
  t.same(asked, [pathToFileURL(saved).href]);
}

/** A run with rows of one line and of many. */
async function play(cell: ConsoleCell): Promise<string> {
  const checks = Array.from({ length: CHECKS }, (_, at) => {
    const message = `${"It was measured twice. ".repeat(at % 17)}end-${number(at)}`;
    return { ...check(`begin-${number(at)}`, at % 50 === 3 ? "failed" : "passed", 10 + (at % 7) / 100), message };
  });
  Object.assign(checks[0] as object, { value: -123.4567, nominal: -123.45, delta: -0.0067 });
  let frame = "";
  const runId = await cell.play({
    ...{ serialNumber: "SN-1 \u202e<b>", checks, withCaptures: true, message: "4 checks failed" },
    defects: (frameId) => {
      frame = frameId;
      const description = `${"A flat place beside the seam. ".repeat(9)}end-defect`;
      return [{ type: "begin-defect", description, region_2d: { file: `frame-${frameId}.png`, bbox: BBOX } }];
    },
  });
  for (let hasPreview = false; !hasPreview; ) {
    const files = await cell.get<{ available_formats: string[] }>(`/sensor/frames/${frame}/files`);
    hasPreview = files.available_formats.includes("preview.png");
  }
  return runId;
}

async function save(t: Test, browser: Browser, url: string, saved: string): Promise<void> {
  const page = await openPage(t, browser, url);
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Report", exact: true }).click();
  await (await download).saveAs(saved);
  t.match((await download).suggestedFilename(), /^report-[0-9a-f-]{36}\.html$/);
}

/** Opens the saved page without a network. @returns what it asked for, and what the browser complains of */
async function opened(browser: Browser, saved: string): Promise<{ page: Page; asked: string[] }> {
  const context = await browser.newContext({ offline: true, viewport: { width: 900, height: 1200 } });
  const page = await context.newPage();
  const asked: string[] = [];
  page.on("request", (request) => request.url().startsWith("data:") || asked.push(request.url()));
  page.on("console", (message) => asked.push(message.text()));
  page.on("pageerror", (error) => asked.push(String(error)));
  await page.goto(pathToFileURL(saved).href);
  return { page, asked };
}

/** Edges of each drawn box, without its stroke, as shares of its picture. */
const BOX_SHARES = `[...document.querySelectorAll(".over .box")].map((path) => {
  const { x, y, width, height } = path.getBBox();
  const { a, d, e, f } = path.getScreenCTM();
  const picture = path.closest(".over").querySelector("img").getBoundingClientRect();
  const share = (at, from, size) => (at - from) / size;
  return [
    share(x * a + e, picture.x, picture.width),
    share(y * d + f, picture.y, picture.height),
    share((x + width) * a + e, picture.x, picture.width),
    share((y + height) * d + f, picture.y, picture.height),
  ];
})`;

/** Texts of an element that do not stand on one line. */
const brokenTexts = (selector: string): string => `[...document.querySelectorAll("${selector}")]
  .filter((one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return new Set([...range.getClientRects()].filter(({ height }) => height > 9).map(({ top }) => top)).size > 1;
  }).map((one) => one.textContent)`;

async function openOffline(t: Test, browser: Browser, saved: string): Promise<void> {
  const { page, asked } = await opened(browser, saved);
  t.equal(await page.locator("h1").textContent(), "SN-1 \u202e<b>");
  t.equal(await page.locator("table.checks tbody tr").count(), CHECKS);
  const drawn = "Promise.all([...document.images].map((image) => image.decode().then(() => image.naturalWidth > 0)))";
  t.same(await page.evaluate(drawn), [true, true], "height map and luminance");
  t.equal(await page.locator("svg.plot path").count(), 2, "a line for each channel");
  for (const shares of await page.evaluate<number[][]>(BOX_SHARES)) {
    const expected = [1 / 4, 20 / 200, 3 / 4, 60 / 200];
    const isThere = shares.every((share, edge) => Math.abs(share - (expected[edge] as number)) < 0.01);
    t.ok(isThere, `the defect's box: ${shares.map((share) => share.toFixed(3))}`);
  }
  t.equal(await page.locator(".over .box").count(), 2, "in both pictures");
  t.same(await page.evaluate(brokenTexts("table.checks td:nth-child(4)")), [], "a value and its unit are on one line");
  for (let width = 300; width < 700; width += sized(50, 10)) {
    await page.setViewportSize({ width, height: 1200 });
    t.same(await page.evaluate(brokenTexts(".channel")), [], `a channel's name is on one line, ${width} px`);
  }
  t.same(await axeFindings(page), []);
  t.same(asked, [pathToFileURL(saved).href]);
  t.equal(readFileSync(saved, "utf8").includes("<script"), false);
}

/** The rows that do not stand once, and whole on one sheet. */
function cutRows(sheets: readonly PdfSheet[], rows: readonly string[]): string[] {
  const sheetsOf = new Map<string, number[]>();
  for (const [at, { text }] of sheets.entries()) {
    for (const [word] of text.matchAll(/(?:begin|end)-(?:\d{4}|defect)/g)) {
      sheetsOf.set(word, [...(sheetsOf.get(word) ?? []), at]);
    }
  }
  const places = (word: string): string => String(sheetsOf.get(word));
  return rows.filter((row) => !/^\d+$/.test(places(`begin-${row}`)) || places(`end-${row}`) !== places(`begin-${row}`));
}

async function print(t: Test, browser: Browser, saved: string): Promise<void> {
  const { page } = await opened(browser, saved);
  const pdf = await page.pdf({ preferCSSPageSize: true });
  const sheets = pdfSheets(pdf);
  t.ok(sheets.length > 4, `${sheets.length} sheets`);
  for (const { width, height } of sheets) t.same([Math.round(width), Math.round(height)], [595, 842]);
  t.same(cutRows(sheets, [...Array.from({ length: CHECKS }, (_, at) => number(at)), "defect"]), []);
  for (const { text } of sheets.filter(({ text }) => /begin-\d/.test(text))) t.match(text, /Within\s*tolerance/);
}
