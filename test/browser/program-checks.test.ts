import type { Browser, Page } from "playwright-core";
import t, { type Test } from "tap";
import { axeFindings, inBrowser, type OpenPage, openPage, overflowPx } from "../helpers/browser/console-browser.js";
import { type ConsoleCell, check, startConsole } from "../helpers/browser/console-cell.js";
import { nextId } from "../helpers/link/link-messages.js";

const NAME = `depth <img src=x onerror="window.attacked=1"> ${"y".repeat(200)}`;
/** The eighth is outside the control limits, and fails. The third passes with a warning. */
const VALUES = [10.01, 9.99, 10.02, 10, 10.01, 9.98, 10.01, 10.2, 10, 10.01, 9.99, 10];

interface Statistics {
  checks: {
    mean: number;
    cp: number;
    cpk: number;
    pp: number;
    ppk: number;
    histogram: { counts: number[] };
    trend: object[];
  }[];
}

t.test("how a check is doing", inBrowser, async (t) => {
  const { browser, service, cell, open } = await startConsole(t, [/422/]);
  t.test("charts, figures and files, and a time", (t) => showCharts(t, cell, open));
  t.test("of 10,000 names, one is found and chosen", (t) => chooseOne(t, cell, open));
  t.test("the newest of many values, and the values of a part of the trend", (t) => narrow(t, cell, open));
  t.test("what there is not", (t) => showNothing(t, cell, open));
  t.test("one value, and checks without a verdict", (t) => showOne(t, cell, open));
  t.test("a deleted program", (t) =>
    showDeleted(t, cell, browser, `http://127.0.0.1:${service.port}/console/programs`),
  );
});

const chart = (page: Page, name: string) =>
  page.locator(".chart-figure").filter({ has: page.getByRole("heading", { name, exact: true }) });

/** Contrast (WCAG 2.2) of the band from minimum to maximum with the zone of the limits behind it. */
const BAND_CONTRAST = `(() => {
  const styleOf = (part) => getComputedStyle(document.querySelector(part));
  const [band, zone] = [".plot-band", ".plot-zone"].map((part) => styleOf(part).fill.match(/[0-9.]+/g).map(Number));
  const opacity = Number(styleOf(".plot-band").fillOpacity);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((one) => (one / 255 <= 0.04045 ? one / 3294.6 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const both = [luminance(zone), luminance(band.map((one, at) => opacity * one + (1 - opacity) * zone[at]))];
  return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
})()`;

/** Clicks on a point of a chart. */
async function clickPoint(page: Page, name: string, at: number, count: number): Promise<void> {
  const slider = page.getByRole("slider", { name, exact: true });
  const { width, height } = (await slider.boundingBox()) ?? { width: 0, height: 0 };
  // It waits until the chart moves no more: what comes above it moves it.
  await slider.click({ position: { x: (0.008 + (at * 0.984) / (count - 1)) * width, y: height / 2 } });
}

async function showCharts(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("Charts");
  const runIds: string[] = [];
  for (const [at, value] of VALUES.entries()) {
    const status = at === 7 ? "failed" : at === 2 ? "warning" : "passed";
    const checks = [check(NAME, status, value), check("other", "passed", 10 + at / 1e6)];
    runIds.push(await cell.play({ programId, serialNumber: `SN-${at}`, checks }));
  }
  const page = await open(t, `/console/programs/${programId}`);
  const rows = page.locator(".check-list tbody tr");
  await rows.getByText("1 of 12").waitFor();
  t.match(await rows.first().locator("th").textContent(), /^depth <img/, "what fails most comes first");
  await rows.first().getByRole("link").click();
  await chart(page, "Histogram").waitFor();
  t.equal(new URL(page.url()).searchParams.get("check"), NAME);

  const query = `check=${encodeURIComponent(NAME)}`;
  const { checks } = await cell.get<Statistics>(`/programs/${programId}/statistics?${query}`);
  const [figures] = checks;
  const shown = async (name: string) =>
    page
      .locator(".figures div")
      .filter({ has: page.getByText(name, { exact: true }) })
      .locator("dd")
      .textContent();
  for (const [name, value] of Object.entries({ Cp: "cp", Cpk: "cpk", Pp: "pp", Ppk: "ppk" } as const)) {
    t.equal(await shown(name), figures?.[value].toFixed(2), name);
  }
  t.equal(await shown("Mean"), `${figures?.mean.toFixed(4)} mm`);
  t.equal(await shown("Passed"), "91.7 % of 12", "a warning passes");
  t.equal(await shown("Lower limit (LSL)"), "9.9500 mm");

  const control = chart(page, "Control chart");
  await showLimits(t, page);
  const marks = (kind: string) => control.locator(`.plot-${kind}`).getAttribute("d");
  t.equal(await marks("outside"), await marks("fail"), "the same value is outside, and failed");
  t.equal(await chart(page, "Histogram").locator(".plot-bar").count(), figures?.histogram.counts.length);
  await chart(page, "Trend").getByText("12 values in 12 parts").waitFor();
  await openRuns(t, page, runIds);
  await limitTime(t, cell, page, runIds);
  await page.emulateMedia({ colorScheme: "light" });
  await control.locator("summary").click();
  await control.locator("tbody tr").last().waitFor();
  t.equal(await control.locator("tbody tr").count(), 8);
  t.same(await axeFindings(page), [], "light");
  t.ok((await page.evaluate<number>(BAND_CONTRAST)) > 1.5, "the trend's band stands out, light");
  await page.emulateMedia({ colorScheme: "dark" });
  t.same(await axeFindings(page), [], "dark");
  t.ok((await page.evaluate<number>(BAND_CONTRAST)) > 1.5, "the trend's band stands out, dark");
  for (const width of [1920, 768, 320]) {
    await page.setViewportSize({ width, height: 800 });
    t.equal(await overflowPx(page), 0, `${width} px`);
  }
  t.equal(await page.evaluate("window.attacked"), undefined);
  await page.goto(`/console/programs/${programId}?check=other`);
  await chart(page, "Histogram").waitFor();
  t.equal(await shown("Mean"), "10.0000 mm");
  t.equal(await shown("Standard deviation"), "0.00000361 mm", "a small spread has figures, too");
}

/** Limits by the textbook, from the values themselves. */
async function showLimits(t: Test, page: Page): Promise<void> {
  const mean = VALUES.reduce((sum, value) => sum + value, 0) / VALUES.length;
  const ranges = VALUES.slice(1).map((value, at) => Math.abs(value - (VALUES[at] as number)));
  const reach = (3 / 1.128) * (ranges.reduce((sum, range) => sum + range, 0) / ranges.length);
  const control = chart(page, "Control chart");
  const labels = await control.locator(".chart-labels li").allTextContents();
  for (const label of [
    `UCL ${(mean + reach).toFixed(4)}`,
    `Mean ${mean.toFixed(4)}`,
    `LCL ${(mean - reach).toFixed(4)}`,
    "USL 10.0500",
    "Nominal 10.0000",
    "LSL 9.9500",
  ]) {
    t.ok(labels.includes(label), `${label} of ${labels.join(", ")}`);
  }
  await control.getByText("All 12 values, one by one.").waitFor();
  await control.getByText("1 outside").waitFor();
}

/** By a click, by the keyboard, and from the table. */
async function openRuns(t: Test, page: Page, runIds: readonly string[]): Promise<void> {
  const address = page.url();
  const isAt = (at: number) => page.waitForURL(`**/console/runs/${runIds[at]}`);
  for (const name of ["Control chart", "Trend"]) {
    const slider = page.getByRole("slider", { name, exact: true });
    await clickPoint(page, name, 7, VALUES.length);
    await isAt(7);
    await page.goto(address);
    await slider.focus();
    await slider.press("Home");
    await slider.press("ArrowRight");
    t.match(await slider.getAttribute("aria-valuetext"), /9\.9900/, "the value is read out");
    await slider.press("Enter");
    await isAt(1);
    await page.goto(address);
  }
  const control = chart(page, "Control chart");
  await control.locator("summary").click();
  await control.getByRole("link", { name: "SN-4", exact: true }).click();
  await isAt(4);
  await page.goto(address);
}

async function limitTime(t: Test, cell: ConsoleCell, page: Page, runIds: readonly string[]): Promise<void> {
  const { completed_at: since } = await cell.get<{ completed_at: string }>(`/runs/${runIds[4]}`);
  const address = new URL(page.url());
  address.searchParams.set("completed_since", since);
  await page.goto(address.href);
  await chart(page, "Control chart").getByText("All 8 values").waitFor();
  await page.getByRole("heading", { name: "Quality in this time" }).waitFor();
  for (const [name, format] of [
    ["CSV", "csv"],
    ["NDJSON", "ndjson"],
    ["Q-DAS", "dfq"],
  ] as const) {
    const link = await page.getByRole("link", { name, exact: true }).getAttribute("href");
    const { pathname, searchParams } = new URL(link ?? "", page.url());
    t.match(pathname, new RegExp(`/programs/.*/checks\\.${format}$`));
    t.same(Object.fromEntries(searchParams), { check: NAME, completed_since: since });
  }
}

async function chooseOne(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("Many names");
  const checks = Array.from({ length: 10_000 }, (_, at) => check(`point_${at + 1}`, "passed", 10 + (at % 7) / 1000));
  checks[8_999] = check("point_9000", "failed", 11);
  await cell.play({ programId, checks });
  const page = await open(t, `/console/programs/${programId}`);
  await page.locator(".check-list tbody tr").first().getByText("point_9000", { exact: true }).waitFor();
  t.ok((await page.locator("tr").count()) < 250, "only the rows in view are drawn");
  t.same(await axeFindings(page), []);
  await page.setViewportSize({ width: 320, height: 800 });
  t.equal(await overflowPx(page), 0);
  await page.getByLabel("Find checks by name").fill("point_777");
  await page.getByRole("link", { name: "point_7770", exact: true }).click();
  await page.getByRole("heading", { name: "point_7770" }).waitFor();
  await chart(page, "Control chart").getByText("Control limits need two values.").waitFor();
  t.equal(await overflowPx(page), 0);
  await page.getByRole("link", { name: "All checks" }).click();
  await page.getByRole("link", { name: "point_7770", exact: true }).waitFor();
  t.equal(await page.getByLabel("Find checks by name").inputValue(), "point_777", "the words are still there");
}

async function narrow(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("Many values");
  const ended: string[] = [];
  // Checks of one name in one run are successive values.
  for (const count of [101, 100, 102]) {
    const checks = Array.from({ length: count }, (_, at) => check("flat", "passed", 10 + (at % 5) / 100));
    const id = await cell.play({ programId, checks });
    ended.push((await cell.get<{ completed_at: string }>(`/runs/${id}`)).completed_at);
  }
  const page = await open(t, `/console/programs/${programId}?check=flat`);
  await chart(page, "Control chart").getByText("The newest 300 of 303 values").waitFor();
  t.equal(await page.getByRole("slider", { name: "Control chart" }).getAttribute("max"), "299");
  // Each of its 152 parts has two values. Those of the 51st are of the first and of the second run.
  await clickPoint(page, "Trend", 50, 152);
  await page.waitForURL(/completed_until/);
  await chart(page, "Control chart").getByText("All 201 values").waitFor();
  const { searchParams } = new URL(page.url());
  t.same([searchParams.get("completed_since"), searchParams.get("completed_until")], [ended[0], ended[2]]);
}

async function showNothing(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("Nothing");
  const page = await open(t, `/console/programs/${programId}`);
  await page.getByText("No completed run yet.").waitFor();
  await cell.play({ programId });
  await page.getByText("The completed runs have no checks.").waitFor();
  const { value: _, ...unmeasured } = check("unmeasured", "error", 0);
  await cell.play({ programId, checks: [unmeasured] });
  const mean = page.locator(".check-list tbody tr").first().locator("td").nth(2);
  t.equal(await mean.textContent(), "–", "what there is not has no unit");
  await page.getByRole("link", { name: "unmeasured" }).click();
  await page.getByText("None of these checks has a value.").waitFor();
  t.same(await axeFindings(page), []);
  for (const [query, text] of [
    ["check=unknown", "No completed run of this time has this check."],
    ["completed_until=2020-01-01T00:00:00Z", "No run was completed in this time."],
    ["completed_since=yesterday", "completed_since"],
    ["completed_since=2021-01-01T00:00:00Z&completed_until=2020-01-01T00:00:00Z", "is before completed_since"],
  ] as const) {
    await page.goto(`/console/programs/${programId}?${query}`);
    await page.locator(".column-main").getByText(text).first().waitFor();
  }
  await page.getByRole("button", { name: "All times" }).click();
  await page.getByRole("link", { name: "unmeasured" }).waitFor();
}

async function showOne(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("One value");
  const { value: _, ...unmeasured } = check("flat", "not_evaluated", 0);
  const checks = [check("flat", "passed", 10.01), unmeasured, { ...unmeasured, status: "error" }];
  const runId = await cell.play({ programId, checks });
  const { completed_at: ended } = await cell.get<{ completed_at: string }>(`/runs/${runId}`);
  const since = `${ended.slice(0, 19)}Z`;
  const page = await open(t, `/console/programs/${programId}?check=flat&completed_since=${since}`);
  await chart(page, "Control chart").getByText("The only value. Control limits need two values.").waitFor();
  await chart(page, "Trend").getByText("Mean, minimum and maximum of 1 value in 1 part.").waitFor();
  await chart(page, "Histogram").getByText("1 value in 5 bins.").waitFor();
  const figures = page.locator(".figures div", { hasText: "Without a verdict" });
  t.equal(await figures.locator("dd").textContent(), "2");
  const field = page.getByLabel("Completed since");
  const shown = await field.inputValue();
  t.equal(
    Date.parse(`${shown}${shown.length === 16 ? ":00" : ""}`),
    Date.parse(since),
    "the field shows the seconds, too",
  );
  await field.fill("2020-01-01T00:00:07");
  await field.press("Enter");
  await page.waitForURL(/completed_since=2020-01-01T\d\d%3A\d\d%3A07\.000Z/);

  // The answers about the values come one after the other.
  await page.route(/checks\.ndjson/, (route) => route.fulfill({ status: 200, body: "" }));
  await page.goto(`/console/programs/${programId}?check=flat`);
  await chart(page, "Trend").waitFor();
  t.equal(await chart(page, "Control chart").count(), 0);
  t.notMatch(await page.locator("main").textContent(), /Infinity|NaN/);
}

/** The browser's log has the 404 of the program itself. */
async function showDeleted(t: Test, cell: ConsoleCell, browser: Browser, programs: string): Promise<void> {
  const programId = await cell.putProgram("Gone <b>");
  await cell.play({ programId, serialNumber: "SN-GONE", checks: [check("depth", "failed", 11)] });
  const unused = await cell.putProgram("Never used");
  for (const id of [programId, unused]) await cell.say("program.delete", { id });
  const page = await openPage(t, browser, `${programs}/${programId}`, {}, [/status of 404/]);
  await page.getByRole("heading", { name: "Gone <b>", exact: true }).waitFor();
  await page.getByText("This program was deleted.").waitFor();
  await page.locator(".check-list tbody tr").getByText("1 of 1").waitFor();
  await page.locator(".runs-table").getByRole("link", { name: "SN-GONE" }).waitFor();
  t.equal(await page.getByRole("heading", { name: "Steps" }).count(), 0);
  t.same(await axeFindings(page), []);
  await page.goto(`${programs}/${unused}`);
  await page.getByRole("heading", { name: "Deleted program", exact: true }).waitFor();
  await page.getByText("No run yet.").waitFor();
  await page.goto(`${programs}/${nextId()}`);
  await page.getByRole("link", { name: "All programs" }).waitFor();
}
