import type { Browser, Page } from "playwright-core";
import t, { type Test } from "tap";
import {
  axeFindings,
  inBrowser,
  isLive,
  openPage,
  openSettled,
  setHidden,
  startBrowser,
} from "../helpers/browser/console-browser.js";
import { ConsoleCell, check, PROGRAM_NAME } from "../helpers/browser/console-cell.js";
import { listOf } from "../helpers/list-of.js";
import { lastingPort } from "../helpers/process/lasting-port.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

t.test("what a page hears of changes", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  await t.test("changes appear as they happen, and a lost connection heals without a reload", (t) => heal(t, browser));
  await t.test("while it reads, while it is hidden, and later", (t) => hearLate(t, browser));
});

async function heal(t: Test, browser: Browser): Promise<void> {
  const args = ["serve", "--port", String(await lastingPort())];
  const first = await ServiceProcess.startFor(t, { args });
  const { port, dataDirectory } = first;
  const cell = await ConsoleCell.start(t, first);
  const open = (path: string) => openPage(t, browser, `http://127.0.0.1:${port}${path}`, {}, [/ERR_/]);
  const now = await open("/");
  const runs = await open("/console/runs");
  await isLive(now);
  await isLive(runs);
  for (const page of [now, runs]) await page.evaluate("window.isTheSame = true");
  // What it has read of programs stays in view later.
  await runs.getByRole("link", { name: "Programs", exact: true }).click();
  await runs.getByRole("row", { name: PROGRAM_NAME }).waitFor();
  await runs.getByRole("link", { name: "Runs", exact: true }).click();
  t.equal(await now.locator(".now-active").count(), 0);
  const id = await cell.play({ serialNumber: "SN-1", end: "none", checks: [check("depth", "passed", 10)] });
  const one = await open(`/console/runs/${id}`);
  await followRun(cell, id, now, runs, one);
  await first.end("SIGKILL");
  await loseConnection(t, now, runs, one);
  const second = await ServiceProcess.startFor(t, { args, dataDirectory });
  // The cell is as quick as the page: some of these are made before the page is back.
  for (let n = 2; n < 8; n++) await cell.play({ serialNumber: `SN-${n}`, checks: [check("depth", "passed", 10)] });
  await isLive(now);
  await now.locator(".now-part").getByText("SN-7").waitFor();
  await now.locator(".now-card").getByText("85.7 %").waitFor();
  await cell.play({ serialNumber: "SN-8", checks: [check("depth", "not_evaluated", 10)] });
  await now.locator(".now-outcome").getByText("Indeterminate").waitFor();
  for (const width of [320, 768, 1024, 1280, 1920]) {
    await now.setViewportSize({ width, height: 800 });
    t.equal(await cutPx(now, ".now-outcome"), 0, `the outcome fits at ${width} px`);
  }
  await runs.locator(".runs-table").getByText("SN-8").waitFor();
  await isLive(runs);
  const { runs: listed } = await cell.get<{ runs: { serial_number: string }[] }>("/runs");
  const serials = listed.map(({ serial_number: serial }) => serial);
  t.same(await runs.locator(".runs-table tbody .part a").allTextContents(), serials);
  t.same(await now.locator(".tile-name bdi").allTextContents(), serials);
  await one.getByText("Nobody is told of events.").waitFor();
  await cell.post("/webhooks", { name: "MES", url: "http://127.0.0.1:9/", subscribed_events: ["ProgramFailed"] });
  await one.reload();
  await one.locator("main").getByText("MES").waitFor();
  await second.end("SIGKILL");
  await ServiceProcess.startFor(t, { args });
  for (const page of [now, runs]) {
    // The new service has another, empty store.
    await page.getByText("No run yet.").waitFor();
    t.equal(await page.evaluate("window.isTheSame"), true, "never loaded anew");
  }
  await one.getByText("Nobody is told of events.").waitFor();
}

/** A run from its begin to its end on two pages of all, and on its own. */
async function followRun(cell: ConsoleCell, id: string, now: Page, runs: Page, one: Page): Promise<void> {
  const step = now.locator(".now-step");
  await step.getByText("Scan face").waitFor();
  await now.locator(".now-big").getByText("SN-1").waitFor();
  await runs.locator(".runs-table").getByText("Running").waitFor();
  await one.getByText("so far: passed").waitFor();
  await cell.say("step.finish", { run_id: id, index: 1, status: "completed" });
  await cell.say("step.start", { run_id: id, index: 2 });
  await step.getByText("Sweep").waitFor();
  await now.locator(".now-steps", { hasText: "✓Completed: Scan face▸Running: Sweep…Pending: Park" }).waitFor();
  await one.locator(".steps-table").getByText("Running").waitFor();
  await cell.say("check.add", { run_id: id, check: check("width", "failed", 11) });
  await one.locator(".checks-table").getByText("width").waitFor();
  await cell.say("run.finish", { id });
  await now.locator(".now-outcome").getByText("Failed").waitFor();
  await now.locator(".now-reasons li", { hasText: "width 11.0000, allowed 10.0000 ± 0.0500 mm" }).waitFor();
  await one.locator(".run-title").getByText("Failed").waitFor();
  await runs.locator(".runs-table").getByText("Failed").waitFor();
}

/** The service is away, and each page says so. */
async function loseConnection(t: Test, now: Page, runs: Page, one: Page): Promise<void> {
  await now.locator(".live").getByText("Connection lost").waitFor();
  await one.getByRole("link", { name: "System", exact: true }).click();
  await one.getByText("dispatcher").waitFor();
  await one.getByText("The service does not answer.").first().waitFor();
  await one.locator(".card-head .mark").waitFor({ state: "detached" });
  t.same(await axeFindings(one), [], "a page without its figures");
  await one.getByRole("link", { name: "Webhooks", exact: true }).click();
  await one.getByText("The service does not answer.").first().waitFor();
  t.equal(await now.locator(".now-outcome").textContent(), "✕ Failed", "what was read stays in view");
  const refused = runs.waitForEvent("requestfailed", (request) => /\/programs\?/.test(request.url()));
  await runs.getByRole("link", { name: "Programs", exact: true }).click();
  await refused;
  const told = await runs.locator(".fault-box").allTextContents();
  t.match(told, listOf(/^Connection lost\. What you see may be old\./), "it is said once");
  await runs.getByRole("link", { name: "Runs", exact: true }).click();
}

async function hearLate(t: Test, browser: Browser): Promise<void> {
  const { service, cell } = await ConsoleCell.startFor(t);
  const url = `http://127.0.0.1:${service.port}`;

  t.test("a change that comes while the page reads is read too", (t) => hearWhileReading(t, cell, browser, url));

  t.test("a hidden page holds no connection, and goes on from its mark when it is seen", (t) =>
    hearWhenSeen(t, cell, browser, url),
  );

  t.test("a delivery that fails later, and a new day, are told, though no run changes", (t) =>
    hearOfDelivery(t, cell, browser, url),
  );

  t.test("a program's first run, and a connection without a mark, read again what no stream tells", (t) =>
    hearOfSettings(t, cell, browser, url),
  );
}

async function hearWhileReading(t: Test, cell: ConsoleCell, browser: Browser, url: string): Promise<void> {
  const id = await cell.play({ end: "none" });
  const page = await openPage(t, browser, `${url}/console/runs/${id}`);
  await isLive(page);
  const read = new RegExp(`/runs/${id}$`);
  let letGo = (): void => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const asked = new Promise<void>((resolve) => {
    void page.route(read, async (route) => {
      const answer = await route.fetch();
      resolve();
      await held;
      await route.fulfill({ response: answer });
    });
  });
  const report = /\/quality-report$/;
  const readOnce = page.waitForResponse(report);
  await cell.say("check.add", { run_id: id, check: check("depth", "passed", 10) });
  await Promise.all([asked, readOnce]);
  // The page hears of the end while the answer from before is still on its way.
  const readAgain = page.waitForRequest(report);
  await cell.say("run.finish", { id });
  await readAgain;
  letGo();
  await page.locator(".run-head").getByText("Passed").waitFor();
  // It may read once more.
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function hearWhenSeen(t: Test, cell: ConsoleCell, browser: Browser, url: string): Promise<void> {
  const page = await openPage(t, browser, `${url}/console/runs`, {}, [/403/]);
  await isLive(page);
  const ended = page.waitForEvent("requestfailed", (request) => CHANGES.test(request.url()));
  await setHidden(page, true);
  await ended;
  await cell.play({ serialNumber: "SN-HIDDEN" });
  const again = page.waitForRequest(CHANGES);
  await setHidden(page, false);
  t.match((await again).url(), /updated_since=/);
  await page.locator(".runs-table").getByText("SN-HIDDEN").waitFor();
  await isLive(page);

  await loseMark(page);
  await cell.play({ serialNumber: "SN-LOST" });
  await regain(page);
  await page.locator(".runs-table").getByText("SN-LOST").waitFor();
}

/** No stream tells of a new program or of changed settings: a program's first run does, and a connection without a mark. */
async function hearOfSettings(t: Test, cell: ConsoleCell, browser: Browser, url: string): Promise<void> {
  const target = { url: "http://127.0.0.1:9/", subscribed_events: ["ProgramFailed"] };
  const { id: webhook } = await cell.post<{ id: string }>("/webhooks", { name: "Old name", ...target });
  const runs = await openPage(t, browser, `${url}/console/webhooks`, {}, [/403/]);
  await openSettled(runs, "/console/runs", PROGRAMS);
  const offered = (name: string) => runs.getByLabel("Program").locator("option", { hasText: name });
  await offered("Housing top").waitFor({ state: "attached" });
  await cell.play({ programId: await cell.putProgram("Second program") });
  await offered("Second program").waitFor({ state: "attached" });

  const one = await openPage(t, browser, `${url}/console/webhooks/${webhook}`, {}, [/403/]);
  await one.getByRole("heading", { name: "Old name" }).waitFor();
  await one.getByRole("button", { name: "Edit" }).click();
  for (const page of [runs, one]) await loseMark(page);
  await cell.putProgram("Third program");
  await cell.patch(`/webhooks/${webhook}`, { name: "New name" });
  for (const page of [runs, one]) await regain(page);
  await offered("Third program").waitFor({ state: "attached" });
  await one.getByRole("heading", { name: "New name" }).waitFor();
  t.equal(await one.getByRole("textbox", { name: "Name" }).inputValue(), "Old name", "a form stays as it was opened");
}

async function hearOfDelivery(t: Test, cell: ConsoleCell, browser: Browser, url: string): Promise<void> {
  const target = { name: "MES", url: "http://127.0.0.1:9/", subscribed_events: ["ProgramCompleted"] };
  const { id } = await cell.post<{ id: string }>("/webhooks", target);
  const page = await openPage(t, browser, `${url}/console/`, {}, [/ERR_FAILED.*\/test/]);
  await page.clock.install();
  await degrade(t, page, cell);
  const today = page.getByLabel("Yield today");
  await today.getByText("100 %").waitFor();
  await page.clock.setSystemTime(new Date().setHours(24, 0, 0, 0));
  await page.clock.fastForward(1_000);
  await today.getByText("–", { exact: true }).waitFor();
  await page.goto("/console/webhooks");
  await page.getByText("none fails").waitFor();
  const json = [{ status: "failed", created_at: "2026-01-01T00:00:00Z", last_error: "refused" }];
  await page.route(/\/deliveries\?/, (route) => route.fulfill({ json }));
  await page.clock.fastForward(10_000);
  await page.getByText("1 of 1 failed").waitFor();

  await page.route(/\/test$/, (route) => route.abort());
  await page.goto(`/console/webhooks/${id}`);
  await page.getByRole("button", { name: "Test" }).click();
  const fault = page.getByText("The service does not answer.");
  await fault.waitFor();
  await setHidden(page, true);
  await setHidden(page, false);
  await fault.waitFor({ state: "detached" });
}

/** A component that is no longer well goes to the top of the list, and has another colour there. */
async function degrade(t: Test, page: Page, cell: ConsoleCell): Promise<void> {
  const { components, ...health } = await cell.get<{ components: Record<string, object> }>("/health");
  const last = Object.keys(components).at(-1) as string;
  let status = "healthy";
  await page.route(/\/health$/, (route) =>
    route.fulfill({ json: { ...health, status, components: { ...components, [last]: { status } } } }),
  );
  await page.reload();
  const first = page.locator(".components li").first();
  await page.locator(".components li").last().getByText(last.replaceAll("_", " ")).waitFor();
  status = "degraded";
  await page.clock.fastForward(10_000);
  await first.getByText(last.replaceAll("_", " ")).waitFor();
  const colours = `[...document.querySelectorAll(".component-doubt > :is(.component-sign, .component-name)")].map((part) => getComputedStyle(part).color)`;
  const [sign, name] = await page.evaluate<string[]>(colours);
  t.equal(name, sign, "its name has the colour of its sign");
}

const PROGRAMS = /\/programs\?/;
const CHANGES = /\/runs\/changes\?/;

/** A proxy refuses for a while. Then the page knows no mark any more, so it reads everything anew. */
async function loseMark(page: Page): Promise<void> {
  await page.clock.install();
  await page.route(CHANGES, (route) => route.fulfill({ status: 403, body: "" }));
  await setHidden(page, true);
  await setHidden(page, false);
  await page.locator(".live").getByText("Connection lost").waitFor();
}

/** The proxy refuses no longer, and the page tries again. */
async function regain(page: Page): Promise<void> {
  await page.unroute(CHANGES);
  await page.clock.fastForward(10_000);
  await isLive(page);
}

/** By how many pixels the content of an element is wider than it. */
function cutPx(page: Page, selector: string): Promise<number> {
  return page.locator(selector).evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
}
