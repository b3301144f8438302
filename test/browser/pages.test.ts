import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { axeFindings, inBrowser, type OpenPage, overflowPx, untilTrue } from "../helpers/browser/console-browser.js";
import { type ConsoleCell, check, PROGRAM, PROGRAM_NAME, startConsole } from "../helpers/browser/console-cell.js";
import { listOf } from "../helpers/list-of.js";
import { receiverFor } from "../helpers/webhooks/receiver.js";

interface Shown {
  runs: Record<"passed" | "failed" | "doubtful" | "broken" | "cancelled" | "active", string>;
  webhook: string;
}

/** What the browser's log says of a page that there is not, and of an address that is refused. */
const EXPECTED = [/status of 404 .* \(\/console\/nowhere\)/, /status of 422 .* \(\/webhooks\)/];

type PageTexts = readonly [path: string, texts: readonly string[]];

/** A run of each kind, and a webhook whose deliveries fail. */
async function fill(cell: ConsoleCell, receiverUrl: string): Promise<Shown> {
  const { id: webhook } = await cell.post<{ id: string }>("/webhooks", {
    ...{ name: "MES", url: `${receiverUrl}/mes`, subscribed_events: ["ProgramCompleted", "ProgramFailed"] },
    ...{ max_retries: 1, retry_backoff_seconds: 0 },
  });
  const passed = await cell.play({
    serialNumber: "SN-1",
    checks: [check("depth", "passed", 10.01)],
    withCaptures: true,
  });
  // The producer does not say by how much it deviates.
  const deep = { ...check("depth", "failed", 10.0762), delta: null };
  const failed = await cell.play({
    serialNumber: "SN-1",
    checks: [check("width", "passed", 9.99), deep, check("angle", "not_evaluated", 10)],
    defects: () => [{ type: "dent", description: "0.3 mm deep", severity: "major", confidence: 0.9 }],
    events: [{ event_type: "part_loaded", data: { fixture: "F1" } }],
    message: "1 of 3 checks failed",
  });
  const doubtful = await cell.play({ serialNumber: "SN-2", checks: [check("depth", "error", 10)] });
  const broken = await cell.play({ serialNumber: "SN-3", end: "fail", message: "the gripper lost the part" });
  const cancelled = await cell.play({ serialNumber: null, end: "cancel" });
  const active = await cell.play({ serialNumber: "SN-4", end: "none" });
  return { runs: { passed, failed, doubtful, broken, cancelled, active }, webhook };
}

t.test("the console", inBrowser, async (t) => {
  const receiver = await receiverFor(t, (_, response) => response.writeHead(503).end("come later"));
  const { service, cell, open } = await startConsole(t, EXPECTED);
  const { runs, webhook } = await fill(cell, receiver.url);

  const pages: PageTexts[] = [
    ["/", ["SN-4", "Scan face", "33.3 %", "Broke off", "1 producer connected", "MES", "No frame"]],
    ["/console/runs", ["SN-1", "SN-2", "the gripper lost the part", "No serial number"]],
    ["/console/runs?serial_number=SN-1", ["Side by side", "Inspection 2", "10.0762"]],
    [`/console/runs/${runs.passed}`, ["SN-1", "10.0100", "Sweep", "cl_sweep.csv", "KiB", "Scan face"]],
    [`/console/runs/${runs.failed}`, ["1 of 3 checks failed.", "+0.0762", "dent", "part_loaded", "answered 503"]],
    [`/console/runs/${runs.broken}`, ["Broke off", "The gripper lost the part.", "has no report"]],
    [`/console/runs/${runs.doubtful}`, ["Indeterminate", "1 in error"]],
    [`/console/runs/${runs.cancelled}`, ["Cancelled", "No serial number"]],
    [`/console/runs/${runs.active}`, ["Running", "Scan face", "No checks yet."]],
    ["/console/programs", [PROGRAM_NAME, "33.3 %"]],
    [`/console/programs/${PROGRAM}`, [PROGRAM_NAME, "1 of 3", "speed: 2"]],
    ["/console/webhooks", ["MES", "failed"]],
    [`/console/webhooks/${webhook}`, ["MES", `${receiver.url}/mes`, "answered 503"]],
    ["/console/system", ["dispatcher", "Free on the disk", "/metrics"]],
    ["/console/nowhere", ["There is no such page."]],
  ];
  t.test("every page at 320, 768 and 1920 px, light and dark", (t) => showEach(t, open, pages));

  t.test("checks: failed first, sorted, found, in inches; the address keeps it", (t) =>
    sortChecks(t, open, runs.failed),
  );

  t.test("times: in the viewer's zone, UTC when pointed at", async (t) => {
    const page = await open(t, `/console/runs/${runs.failed}`, { timezoneId: "Asia/Tokyo", locale: "en-GB" });
    const time = page.locator(".run-head time").first();
    await time.waitFor();
    const iso = (await time.getAttribute("datetime")) as string;
    const local = new Date(iso).toLocaleTimeString("en-GB", { timeZone: "Asia/Tokyo", hour12: false });
    t.ok((await time.textContent())?.endsWith(local));
    t.equal(await time.getAttribute("title"), iso.replace("T", " ").replace("Z", " UTC"));
  });

  t.test("a file is saved as it is, and a series is plotted", async (t) => {
    const page = await open(t, `/console/runs/${runs.passed}`);
    await page.locator(".plot canvas").waitFor();
    const saving = page.waitForEvent("download");
    await page.locator(".files-table").getByText("cl_sweep.csv").click();
    const saved = await saving;
    t.match(saved.suggestedFilename(), /cl_sweep\.csv$/);
    const csv = await (await fetch(`http://127.0.0.1:${service.port}/runs/${runs.passed}/steps/2/cl_sweep.csv`)).text();
    t.equal(readFileSync(await saved.path(), "utf8"), csv);
    await pointAtSeries(t, page, csv);
  });

  t.test("what is drawn is what the interface tells", (t) => compareWithData(t, cell, open, runs.passed));
  t.test("runs: every filter, the pages, and a step back", (t) => filterRuns(t, cell, open, runs.active));

  t.test("the first picture waits for no other run's files", (t) => firstPicture(t, cell, open));

  t.test("webhooks: made, tested, changed, deleted; a delivery is retried", (t) =>
    changeWebhooks(t, cell, open, receiver.url, runs.failed),
  );

  t.test("a series without any value says so; units and counts", (t) => unitsAndCounts(t, cell, open));
});

async function showEach(t: Test, open: OpenPage, pages: readonly PageTexts[]): Promise<void> {
  const page = await open(t, "/");
  for (const [path, texts] of pages) {
    const name = path.replace(/[0-9a-f-]{36}/, "…");
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1920, height: 1080 });
    await page.goto(path);
    for (const text of texts) await page.getByText(text).first().waitFor();
    t.equal(await overflowPx(page), 0, `${name}: 1920 px`);
    t.same(await axeFindings(page), [], `${name}: axe, light`);
    await page.setViewportSize({ width: 768, height: 1024 });
    t.equal(await overflowPx(page), 0, `${name}: 768 px`);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize({ width: 320, height: 640 });
    t.equal(await overflowPx(page), 0, `${name}: 320 px`);
    const narrow = `[...document.querySelectorAll("tbody th")].filter((cell) => cell.clientWidth < 88).length`;
    t.equal(await page.evaluate(narrow), 0, `${name}: names keep their words whole`);
    const narrowRules = ["color-contrast", "scrollable-region-focusable"];
    t.same(await axeFindings(page, narrowRules), [], `${name}: axe, dark and narrow`);
  }
}

async function compareWithData(t: Test, cell: ConsoleCell, open: OpenPage, runId: string): Promise<void> {
  const page = await open(t, `/console/programs/${PROGRAM}`);
  const depth = page.locator(".check-list tbody tr", { hasText: "depth" });
  await depth.getByText("1 of 3").waitFor();
  t.same(await depth.locator("td.number").allTextContents(), ["1 of 3", "10.0287 mm", "0.11", "0.17"]);
  const line = await depth.locator(".plot-line").getAttribute("d");
  t.equal(line, "M8.0 52.1L500.0 8.0L992.0 58.7", "10.01, 10.0762 and 10, from 9.95 at the bottom");

  await page.goto(`/console/runs/${runId}`);
  const bars = page.locator(".axis-bar:visible");
  await bars.first().waitFor();
  const { steps } = await cell.get<{ steps: { completed: { started_at: string; completed_at: string }[] } }>(
    `/runs/${runId}`,
  );
  const spans = steps.completed.map((step) => [Date.parse(step.started_at), Date.parse(step.completed_at)] as const);
  const [begin = 0] = spans[0] ?? [];
  const percent = (ms: number) => Number(((ms / ((spans.at(-1)?.[1] ?? 0) - begin)) * 100).toFixed(2));
  const drawn = await bars.evaluateAll((all: { style: { left: string; width: string } }[]) =>
    all.map(({ style }) => [Number.parseFloat(style.left), Number.parseFloat(style.width)]),
  );
  t.same(
    drawn,
    spans.map(([from, to]) => [percent(from - begin), percent(to - from)]),
  );

  await page.goto("/console/system");
  const { "service-version": version } = await cell.get<{ "service-version": string }>("/system/version");
  await page.locator(".figures div", { hasText: "Version" }).getByText(version, { exact: true }).waitFor();
  await page.getByRole("link", { name: "/docs" }).click();
  await page.getByRole("heading", { name: "Inspection Results Service" }).waitFor();
}

async function filterRuns(t: Test, cell: ConsoleCell, open: OpenPage, activeId: string): Promise<void> {
  for (let n = 0; n < 60; n++) await cell.play({ serialNumber: `LOT-${n}`, end: n % 2 === 0 ? "finish" : "cancel" });
  const page = await open(t, "/");
  const parts = () => page.locator(".runs-table tbody .part a").allTextContents();
  const untilCount = (text: string) =>
    page.locator(".card-head .count", { hasText: new RegExp(`^${text}$`) }).waitFor();
  await page.locator(".tile").last().waitFor();
  t.equal(await page.locator(".tile").count(), 50, "the last of them");
  await page.locator(".now-counts div", { hasText: "failed" }).getByRole("link").click();
  await untilCount("1");
  t.same(await parts(), ["SN-1"], "what failed today");
  await page.goto("/console/runs");
  await untilCount("66");
  t.equal((await parts())[0], "LOT-59");
  const columns = () => page.locator(".runs-table tr:first-child > :visible").allTextContents();
  t.same((await columns()).slice(0, 7), ["Outcome", "Part", "Inspection", "Program", "Began", "Took", "Steps"]);
  await page.setViewportSize({ width: 320, height: 640 });
  t.match(await columns(), listOf("Outcome", "Part", "Began", /./, "LOT-59", /./), "what there is room for");
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.getByRole("button", { name: "Older", exact: true }).click();
  await page.getByText("SN-1").first().waitFor();
  t.match(page.url(), /page=2/);
  t.equal((await parts()).length, 16);
  t.equal(await page.locator(".runs-table .narrow-only:visible").count(), 0);
  await page.setViewportSize({ width: 320, height: 640 });
  t.same(await page.locator(".runs-table .narrow-only:visible").allTextContents(), ["inspection 2"]);
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.locator(".pager input").fill("1");
  await page.locator(".pager input").press("Enter");
  await page.getByText("LOT-59").waitFor();
  await page.goBack();
  await page.getByText("SN-1").first().waitFor();
  await page.getByLabel("State").selectOption("cancelled");
  await untilCount("31");
  await page.getByLabel("State").selectOption("");
  await page.getByLabel("Outcome").selectOption("failed");
  await untilCount("1");
  t.same(await parts(), ["SN-1"]);
  await page.getByLabel("Serial number").fill("SN-1");
  await page.getByLabel("Serial number").press("Enter");
  await page.getByText("2 inspections").waitFor();
  await page.locator(".runs-table tbody .part a").first().waitFor();
  t.same(await parts(), ["SN-1"], "side by side are all of them, however the list is filtered");
  await page.setViewportSize({ width: 390, height: 844 });
  const compared = page.locator(".scroll:has(.compare-table)");
  const overflowPx = await compared.evaluate((box) => box.scrollWidth - box.clientWidth);
  t.equal(overflowPx, 0, "both are in view on a phone");
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("Program").selectOption({ label: PROGRAM_NAME });
  await untilCount("66");
  const { created_at: at } = await cell.get<{ created_at: string }>(`/runs/${activeId}`);
  await page.goto(`/console/runs?to=${new Date(at).toISOString()}`);
  await untilCount("5");
  await page.goto(`/console/runs?from=${new Date(at).toISOString()}&page=2`);
  await untilCount("61");
  await untilTrue(page, `document.querySelectorAll(".runs-table tbody tr").length === 11`);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("Until").fill("2020-01-01T00:00");
  await page.getByLabel("From").fill("2020-01-01T00:00");
  await untilCount("0");
  await page.getByLabel("Until").fill("");
  await page.getByLabel("Serial number").fill("LOT-7");
  await cell.play({ serialNumber: "LOT-60", end: "cancel" });
  await untilCount("67");
  t.equal(await page.getByLabel("Serial number").inputValue(), "LOT-7", "what is typed stays when a run changes");
  await page.getByLabel("Serial number").press("Enter");
  await untilCount("1");
}

async function changeWebhooks(
  t: Test,
  cell: ConsoleCell,
  open: OpenPage,
  target: string,
  runId: string,
): Promise<void> {
  const page = await open(t, "/console/webhooks");
  await page.getByRole("button", { name: "New webhook" }).click();
  await page.getByLabel("Name").fill("SCADA");
  await page.getByLabel("Address").fill("ftp://nowhere");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText(/^Must be .*http/).waitFor();
  await page.getByLabel("Address").fill(`${target}/scada`);
  await page.getByLabel("Secret").fill("a secret");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "SCADA" }).waitFor();
  await page.getByText("with a secret", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Test" }).click();
  await page.locator("p.fault", { hasText: "answered 503" }).waitFor();
  await page.getByLabel("Event").selectOption("WebhookTest");
  await page.getByRole("button", { name: "1 attempt" }).click();
  await page.getByText("come later").waitFor();
  await page.getByLabel("State").selectOption("delivered");
  await page.getByText("No delivery matches.").waitFor();
  await page.getByLabel("State").selectOption("failed");
  await page.getByRole("button", { name: "1 attempt" }).click();
  await page.getByText("Payload").click();
  await page.locator("pre", { hasText: '"event_name": "WebhookTest"' }).waitFor();
  t.same(await axeFindings(page), []);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Name").fill("SCADA 2");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "SCADA 2" }).waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.locator("dialog :focus", { hasText: "Keep it" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("dialog", { hasText: "Delete SCADA" }).waitFor({ state: "hidden" });
  t.equal((await cell.get<unknown[]>("/webhooks")).length, 2, "Enter keeps it");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.getByRole("link", { name: "MES" }).click();
  t.equal((await cell.get<unknown[]>("/webhooks")).length, 1);
  await page.getByRole("button", { name: "Retry" }).first().click();
  await page.getByRole("button", { name: "3 attempts" }).waitFor();
  await page.goto(`/console/runs/${runId}`);
  await page.getByRole("button", { name: "2 attempts" }).waitFor();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByRole("button", { name: "3 attempts" }).waitFor();
}

async function firstPicture(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const id = await cell.play({ serialNumber: "SN-PICTURE", withCaptures: true });
  const page = await open(t, "/console/system");
  // All of the last runs are in view, and ask for their pictures.
  await page.setViewportSize({ width: 1920, height: 2400 });
  let letGo = (): void => {};
  const isShown = new Promise<void>((resolve) => (letGo = resolve));
  await page.route(/\/runs\/[^/]+\/files$/, async (route) => {
    if (!route.request().url().includes(id)) await isShown;
    await route.continue();
  });
  await page.getByRole("link", { name: "Now", exact: true }).click();
  await page.locator(".tile img").waitFor();
  letGo();
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function sortChecks(t: Test, open: OpenPage, runId: string): Promise<void> {
  const page = await open(t, `/console/runs/${runId}`);
  const names = () => page.locator(".checks-table tbody .check-name bdi").allTextContents();
  await page.getByText("+0.0762").waitFor();
  t.same(await names(), ["depth", "angle", "width"]);
  await page.getByRole("button", { name: "Value" }).click();
  t.same(await names(), ["width", "angle", "depth"]);
  await page.getByRole("button", { name: "Value" }).click();
  t.same(await names(), ["depth", "angle", "width"]);
  await page.getByRole("button", { name: "Check", exact: true }).click();
  t.same(await names(), ["angle", "depth", "width"]);
  t.match(page.url(), /sort=name/);
  await page.getByRole("button", { name: "Deviation" }).click();
  t.same(await names(), ["width", "angle", "depth"]);
  await page.getByRole("button", { name: "Check", exact: true }).click();
  await page.getByText("in", { exact: true }).click();
  await page.getByText((10.0762 / 25.4).toFixed(5)).waitFor();
  await page.reload();
  await page.getByText((10.0762 / 25.4).toFixed(5)).waitFor();
  t.same(await names(), ["angle", "depth", "width"], "the same after a reload");
  const zone = await page.locator(".row-fail .deviation-value").getAttribute("style");
  t.match(zone, /left: 88\.1%/, "0.0762 of 0.05 allowed: 1.524 of a quarter beyond the middle");
}

async function pointAtSeries(t: Test, page: Page, csv: string): Promise<void> {
  await page.locator(".plot .u-over").hover();
  await page.locator(".plot .u-value", { hasText: " s" }).waitFor();
  const [time = "", ...values] = await page.locator(".plot .u-value").allTextContents();
  // The samples are 0.1 ms apart.
  const sample = Math.round(Number.parseFloat(time) * 10_000);
  t.equal(time, `${(sample / 10_000).toFixed(6)} s`);
  t.same(values, csv.split("\n")[sample + 1]?.split(",").slice(1), "the values of that time");
}

async function unitsAndCounts(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const runId = await cell.play({
    ...{ withCaptures: true, sample: Number.NaN },
    checks: [check("depth", "warning", 10.04), { name: "gap", status: "not_evaluated", nominal: 2, threshold: 0.1 }],
    defects: (frameId) => [
      { type: "dent", confidence: 0.98, region_3d: { file: `frame-${frameId}.ply`, location: [11.5, 0, -0.89] } },
    ],
  });
  const page = await open(t, `/console/runs/${runId}`);
  await page.getByText("No channel measured a value.").waitFor();
  t.equal(await page.locator(".plot").count(), 0);
  await page.getByText("1 passed, 1 of them with a warning").waitFor();
  t.same(await page.locator(".checks-table tbody td:nth-child(4)").allTextContents(), ["– mm", "10.0400 mm"]);
  await page.getByText("98 % sure").waitFor();
  await page.getByText("x 11.50, y 0.00, z \u22120.89 mm").waitFor();
  await page.locator(".run-head").getByText("1 defect was found.").waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  const beyond =
    "document.querySelector('.checks .scroll').scrollWidth - document.querySelector('.checks .scroll').clientWidth";
  t.equal(await page.evaluate<number>(beyond), 0, "value and tolerance are in view on a phone");
  await page.locator(".run-head").getByText("Show on the surface").click();
  await page.waitForURL(/\/console\/frames\/[^/]+\?defect=0/);
}
