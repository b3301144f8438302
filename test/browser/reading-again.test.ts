import t, { type Test } from "tap";
import { inBrowser, type OpenPage, openPage, openSettled, startBrowser } from "../helpers/browser/console-browser.js";
import { ConsoleCell } from "../helpers/browser/console-cell.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

t.test("when a page reads again, and when it does not", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const service = await ServiceProcess.startFor(t);
  const cell = await ConsoleCell.start(service);
  t.teardown(() => cell.close());
  const open: OpenPage = (path) => openPage(browser, `http://127.0.0.1:${service.port}${path}`, {}, [/50[03]/]);
  t.test("what the service refuses for now is asked for again, with the old rows in view", (t) =>
    askAgain(t, cell, open),
  );
  t.test("a program that is not among the newest is looked for once", (t) => lookOnce(t, cell, open));
});

async function askAgain(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  await cell.play({ serialNumber: "SN-OLD" });
  const { page, faults } = await open("/console/");
  const parts = page.locator(".tile-name");
  await parts.getByText("SN-OLD").waitFor();
  const list = /\/runs\?limit=50$/;
  const busy = { code: "unavailable", message: "busy", retryable: true, params: { retry_after_seconds: 1 } };
  const broken = { code: "internal_error", message: "broken", retryable: true, params: {} };
  let refused = 0;
  // The connection and the three changes of the run cause four reads at most: the others are made again by the page itself.
  await new Promise<void>((resolve) => {
    void page.route(list, (route) => {
      refused++;
      if (refused === 6) resolve();
      return route.fulfill(refused === 1 ? { status: 500, json: broken } : { status: 503, json: busy });
    });
    void cell.play({ serialNumber: "SN-NEW", end: "none" });
  });
  await page.locator(".fault-box").getByText("Busy.").waitFor();
  t.ok(await parts.getByText("SN-OLD").isVisible(), "what was read stays in view");
  await page.unroute(list);
  await parts.getByText("SN-NEW").waitFor();
  await page.locator(".fault-box").waitFor({ state: "detached" });
  t.same(faults, []);
  await page.context().close();
}

async function lookOnce(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const { page, faults } = await open("/console/webhooks");
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
  t.same(faults, []);
  await page.context().close();
}
