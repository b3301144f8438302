import t, { type Test } from "tap";
import { axeFindings, inBrowser, type OpenPage } from "../helpers/browser/console-browser.js";
import { type ConsoleCell, startConsole } from "../helpers/browser/console-cell.js";

/** After this time the bar reads the health again. */
const HEALTH_MS = 10_000;

t.test("what surrounds the pages", inBrowser, async (t) => {
  const { cell, open } = await startConsole(t, [/status of 503 .*\/health/, /ERR_FAILED.*\/frame-page-/]);

  t.test("the bar says that the cell is not well, and leads to the reason", (t) => showHealth(t, cell, open));
  t.test("each figure of the system page is what the service measures", (t) => showFigures(t, cell, open));
  t.test("the code of the frame's page does not come: the page says so, and can try again", (t) =>
    loseFramePage(t, cell, open),
  );
});

async function showHealth(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  await cell.say("component.put", { key: "lamp", status: "healthy", required: true });
  const page = await open(t, "/");
  // Before the page sets its timers.
  await page.clock.install();
  await page.goto("/console/system");
  const mark = page.locator(".bar .health-mark");
  /** Resolves when the page has the next answer. */
  const readAgain = async (): Promise<void> => {
    const answer = page.waitForResponse(/\/health$/);
    await page.clock.fastForward(HEALTH_MS);
    await (await answer).finished();
  };
  await page.getByText("lamp").waitFor();
  t.equal(await mark.count(), 0, "a healthy cell needs no words");
  await page.getByRole("link", { name: "Programs", exact: true }).click();

  await cell.say("component.put", { key: "lamp", status: "degraded", detail: "it flickers", required: true });
  await readAgain();
  await mark.getByText("Degraded", { exact: true }).waitFor();
  t.same(await axeFindings(page), []);
  await cell.say("component.put", { key: "lamp", status: "down", detail: "it is broken", required: true });
  await readAgain();
  await mark.getByText("Cell down", { exact: true }).waitFor();
  t.same(await axeFindings(page), []);
  await mark.click();
  await page.waitForURL(/\/console\/system$/);
  await page.getByText("it is broken").waitFor();

  await cell.say("component.put", { key: "lamp", status: "healthy", required: true });
  await readAgain();
  await mark.waitFor({ state: "detached" });
}

/** The figures as the page shows them, by their words, and what each is in the Prometheus text. */
const FIGURES = {
  Memory: "process_resident_memory_bytes",
  "Producers connected": "inspection_producers",
  "Open requests": "inspection_http_open_requests",
  "Waiting deliveries": "inspection_webhook_waiting",
  "Free on the disk": "inspection_disk_free_bytes",
  Captures: "inspection_captured_bytes",
  Log: "inspection_log_bytes",
  "Files made on demand": "inspection_made_bytes",
  Runs: "inspection_runs",
  "Captures removed since the start": "inspection_retention_bytes_total",
};
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

async function showFigures(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  await cell.play({ withCaptures: true });
  const page = await open(t, "/");
  // So that the page does not read again while the test looks.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 1_000);
  const answer = page.waitForResponse(/\/metrics$/);
  await page.goto("/console/system");
  const text = await (await answer).text();
  await page.getByText("Free on the disk").waitFor();
  const rows = await page
    .locator(".figures > div")
    .evaluateAll((all: { children: { textContent: string }[] }[]) =>
      all.map(({ children }) => [children[0]?.textContent ?? "", children[1]?.textContent ?? ""] as const),
    );
  t.same(
    rows.map(([word]) => word),
    ["Version", "Running for", ...Object.keys(FIGURES)],
  );
  const shown = new Map(rows);
  t.match(shown.get("Version"), /^\d+\.\d+\.\d+/);
  t.match(shown.get("Running for"), /^\d+(\.\d)? (s|min)/);
  for (const [word, name] of Object.entries(FIGURES)) {
    const measured = Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
    const [amount = "", unit = "B"] = (shown.get(word) ?? "").split(" ");
    const value = Number(amount.replaceAll("\u2009", "")) * 1024 ** UNITS.indexOf(unit);
    t.ok(Math.abs(value - measured) <= 0.01 * measured, `${word}: ${amount} ${unit}, ${measured}`);
  }
  for (const word of ["Captures", "Log", "Memory", "Free on the disk"]) t.notMatch(shown.get(word), /^0/, word);
  for (const word of ["Producers connected", "Runs"]) t.equal(shown.get(word), "1", word);
}

async function loseFramePage(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const runId = await cell.play({ withCaptures: true });
  const code = /\/assets\/frame-page-[^/]*\.js$/;
  const page = await open(t, `/console/runs/${runId}`);
  await page.route(code, (route) => route.abort());
  const frameLink = page.locator(".files-table td a").first();
  const fault = page.getByRole("heading", { name: "This part of the page could not be loaded." });
  const again = page.getByRole("button", { name: "Load the page again" });

  await frameLink.click();
  await fault.waitFor();
  t.same(await axeFindings(page), []);
  const address = page.url();
  const asked = page.waitForRequest(code);
  await again.click();
  await asked;
  await fault.waitFor();
  await page.unroute(code);
  await again.click();
  await page.locator("canvas[data-painted]").waitFor();
  t.equal(page.url(), address, "it is the same frame");

  await page.goto(`/console/runs/${runId}`);
  await page.route(code, (route) => route.abort());
  await page.evaluate("window.isTheSame = true");
  await frameLink.click();
  await fault.waitFor();
  await page.unroute(code);
  await page.goBack();
  await frameLink.click();
  await page.locator("canvas[data-painted]").waitFor();
  t.equal(await page.evaluate("window.isTheSame"), true, "to come again is enough");
}
