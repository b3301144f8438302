import t, { type Test } from "tap";
import { inBrowser, isLive, type OpenPage, openSettled, setHidden } from "../helpers/browser/console-browser.js";
import { type ConsoleCell, check, startConsole } from "../helpers/browser/console-cell.js";
import { until } from "../helpers/until.js";

t.test("when a page reads again, and when it does not", inBrowser, async (t) => {
  const { cell, open } = await startConsole(t, [/50[03]/]);
  t.test("what the service refuses for now is asked for again, with the old rows in view", (t) =>
    askAgain(t, cell, open),
  );
  t.test("a program that is not among the newest is looked for once", (t) => lookOnce(t, cell, open));
  t.test("the list of programs follows its programs, and their runs", (t) => followPrograms(t, cell, open));
  t.test("the page of a program follows its runs", (t) => followProgram(t, cell, open));
  t.test("inspections side by side follow the runs of their part", (t) => followPart(t, cell, open));
  t.test("deliveries are read again only when an event can be new on the page", (t) => spareDeliveries(t, cell, open));
  t.test("deliveries that a filter shows are looked for every ten seconds", (t) => searchDeliveries(t, cell, open));
  t.test("a serial number that matches nothing, and a browser that keeps nothing", (t) => keepNothing(t, cell, open));
  t.test("a run that cannot be read is left out, and the page says so", (t) => leaveOut(t, cell, open));
});

async function askAgain(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  await cell.play({ serialNumber: "SN-OLD" });
  const page = await open(t, "/console/");
  const parts = page.locator(".tile-name");
  await parts.getByText("SN-OLD").waitFor();
  const list = /\/runs\?limit=50$/;
  const busy = { code: "unavailable", message: "busy", retryable: true, params: { retry_after_seconds: 1 } };
  const broken = { code: "internal_error", message: "broken", retryable: true, params: {} };
  let refused = 0;
  await page.route(list, (route) => {
    refused++;
    return route.fulfill(refused === 1 ? { status: 500, json: broken } : { status: 503, json: busy });
  });
  await page.clock.install();
  await cell.play({ serialNumber: "SN-NEW", end: "none" });
  // The connection and the three changes of the run cause four reads at most: the others are made again by the page itself.
  const aMinute = () => page.clock.fastForward("01:00");
  await until("six refused reads", () => refused >= 6, aMinute);
  await page.locator(".fault-box").getByText("Busy.").waitFor();
  t.ok(await parts.getByText("SN-OLD").isVisible(), "what was read stays in view");
  await page.unroute(list);
  await until("the new part", () => parts.getByText("SN-NEW").isVisible(), aMinute);
  await page.locator(".fault-box").waitFor({ state: "detached" });
}

async function lookOnce(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const page = await open(t, "/console/webhooks");
  const list = /\/programs\?/;
  let reads = 0;
  await page.route(list, (route) => {
    reads++;
    return route.fulfill({ json: { programs: [], total: 1_001, limit: 1_000, offset: 0 } });
  });
  await openSettled(page, "/console/runs", list);
  const rows = page.locator(".runs-table .part");
  for (const serialNumber of ["SN-FIRST", "SN-SECOND", "SN-THIRD"]) {
    await cell.play({ serialNumber });
    // The same change makes the page read both lists.
    await rows.getByText(serialNumber).waitFor();
  }
  t.equal(reads, 3, "when it opened, at the first mark, and at the first run");
}

async function followPrograms(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const page = await open(t, "/console/webhooks");
  await openSettled(page, "/console/programs", /\/programs\?/);
  const programId = await cell.putProgram("Followed in the list");
  const row = page.getByRole("row", { name: "Followed in the list" });
  t.equal(await row.count(), 0);
  await cell.play({ programId, checks: [check("depth", "passed", 10)] });
  await row.getByText("100 %").waitFor();
  await cell.play({ programId, checks: [check("depth", "failed", 11)] });
  await row.getByText("50.0 %").waitFor();
  await row.getByRole("link", { name: "2", exact: true }).waitFor();
}

async function followProgram(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("Followed on its page");
  await cell.play({ programId, serialNumber: "SN-P1", checks: [check("depth", "passed", 10)] });
  const page = await open(t, "/console/webhooks");
  const reads = [new RegExp(`/programs/${programId}$`), /\/runs\?limit=100$/, /\/statistics$/];
  await openSettled(page, `/console/programs/${programId}`, ...reads);
  await page.locator(".check-list").getByText("0 of 1").waitFor();
  await cell.play({ programId, serialNumber: "SN-P2", checks: [check("depth", "failed", 11)] });
  await page.locator(".check-list").getByText("1 of 2").waitFor();
  await page.locator(".runs-table").getByText("SN-P2").waitFor();
  await page.locator(".run-head .fact-list div", { hasText: "Runs" }).getByText("2", { exact: true }).waitFor();
}

async function followPart(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  await cell.play({ serialNumber: "SN-AGAIN", checks: [check("depth", "passed", 10)] });
  const page = await open(t, "/console/webhooks");
  await openSettled(page, "/console/runs?serial_number=SN-AGAIN", /\/runs\?serial_number=SN-AGAIN&limit=100$/);
  for (const inspections of [2, 3]) {
    await cell.play({ serialNumber: "SN-AGAIN", checks: [check("depth", "passed", 10)] });
    await page.getByRole("columnheader", { name: `Inspection ${inspections}` }).waitFor();
  }
}

async function leaveOut(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("With a damaged run");
  const runIds: string[] = [];
  for (const name of ["first", "second", "third"]) {
    runIds.push(await cell.play({ programId, serialNumber: "SN-DAMAGED", checks: [check(name, "passed", 10)] }));
  }
  const page = await open(t, "/console/webhooks");
  const json = { code: "internal_error", message: "the record is damaged", retryable: true, params: {} };
  await page.route(`**/runs/${runIds[1]}/quality-report`, (route) => route.fulfill({ status: 500, json }));
  await page.goto("/console/runs?serial_number=SN-DAMAGED");
  await page.getByText("1 of 3 inspections cannot be read.").waitFor();
  t.same(await page.locator(".compare-table tbody th").allTextContents(), ["third", "first"]);
}

async function spareDeliveries(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const target = { name: "MES", url: "http://127.0.0.1:9/", subscribed_events: ["ProgramCancelled"] };
  const { id } = await cell.post<{ id: string }>("/webhooks", target);
  for (const [query, expected] of [
    ["", 1],
    ["before=2020-01-01T00:00:00Z", 0],
  ] as const) {
    const page = await open(t, "/console/runs");
    const list = /\/deliveries\?/;
    await openSettled(page, `/console/webhooks/${id}?${query}`, list);
    let reads = 0;
    page.on("request", (request) => list.test(request.url()) && reads++);
    await page.clock.install();
    await setHidden(page, true);
    await cell.play({ checks: [check("depth", "passed", 10)] });
    await setHidden(page, false);
    // What it has missed comes first, so it has heard of the run when it says so.
    await isLive(page);
    await page.clock.fastForward(5_000);
    t.equal(await page.evaluate("1").then(() => reads), expected, query);
    await page.context().close();
  }
}

/** No change of a run tells when a delivery fails in the end. */
async function searchDeliveries(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const target = { name: "PLC", url: "http://127.0.0.1:9/", subscribed_events: ["ProgramCompleted"], max_retries: 0 };
  const { id } = await cell.post<{ id: string }>("/webhooks", target);
  const page = await open(t, `/console/webhooks/${id}?status=failed&event=ProgramCompleted`);
  await page.getByText("No delivery matches.").waitFor();
  await page.clock.install();
  await cell.play({});
  const found = page.locator(".delivery-list").getByText("ProgramCompleted");
  await until(
    "the failed delivery",
    () => found.isVisible(),
    () => page.clock.fastForward("00:10"),
  );
}

async function keepNothing(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  await cell.play({ serialNumber: "SN-Case" });
  const page = await open(t, "/console/system");
  await page.addInitScript(`
    for (const name of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(window, name, { get: () => { throw new DOMException("blocked", "SecurityError"); } });
    }`);
  await page.goto("/console/runs?serial_number=sn-case");
  await page.getByText("No run matches.").waitFor();
  await page.getByText("Serial numbers are compared whole, with upper and lower case.").waitFor();
  await page.getByText("in", { exact: true }).click();
  t.ok(await page.getByLabel("in", { exact: true }).isChecked());
}
