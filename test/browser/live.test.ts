import t from "tap";
import { inBrowser, openPage, startBrowser } from "../helpers/browser/console-browser.js";
import { ConsoleCell, check } from "../helpers/browser/console-cell.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

t.test("changes appear as they happen, and a lost connection heals without a reload", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const first = await ServiceProcess.start();
  t.teardown(() => first.dispose());
  const { port, dataDirectory } = first;
  const cell = await ConsoleCell.start(first);
  t.teardown(() => cell.close());
  const now = await openPage(browser, `http://127.0.0.1:${port}/`, {}, [/ERR_/]);
  const runs = await openPage(browser, `http://127.0.0.1:${port}/console/runs`, {}, [/ERR_/]);
  const live = now.page.locator(".live");
  await live.getByText("Live", { exact: true }).waitFor();
  await runs.page.locator(".live").getByText("Live", { exact: true }).waitFor();
  for (const { page } of [now, runs]) await page.evaluate("window.isTheSame = true");
  t.equal(await now.page.locator(".now-active").count(), 0);

  const id = await cell.play({ serialNumber: "SN-1", end: "none", checks: [check("depth", "passed", 10)] });
  const step = now.page.locator(".now-step");
  await step.getByText("Scan face").waitFor();
  await now.page.locator(".now-big").getByText("SN-1").waitFor();
  await runs.page.locator(".runs-table").getByText("Running").waitFor();
  const one = await openPage(browser, `http://127.0.0.1:${port}/console/runs/${id}`, {}, [/ERR_/]);
  await one.page.getByText("so far: passed").waitFor();
  await cell.say("step.finish", { run_id: id, index: 1, status: "completed" });
  await cell.say("step.start", { run_id: id, index: 2 });
  await step.getByText("Sweep").waitFor();
  await one.page.locator(".steps-table").getByText("Running").waitFor();
  await cell.say("check.add", { run_id: id, check: check("width", "failed", 11) });
  await one.page.getByText("width").waitFor();
  await cell.say("run.finish", { id });
  await now.page.locator(".now-outcome").getByText("Failed").waitFor();
  await one.page.locator(".run-head").getByText("Failed").waitFor();
  await runs.page.locator(".runs-table").getByText("Failed").waitFor();

  await first.end("SIGKILL");
  await live.getByText("Connection lost").waitFor();
  t.equal(await now.page.locator(".now-outcome").textContent(), "✕ Failed", "what was read stays in view");
  const next = await ServiceProcess.start({ args: ["serve", "--port", String(port)], dataDirectory });
  t.teardown(() => next.dispose());
  // The cell is as quick as the page: some of these are made before the page is back.
  for (let n = 2; n < 8; n++) await cell.play({ serialNumber: `SN-${n}`, checks: [check("depth", "passed", 10)] });
  await live.getByText("Live", { exact: true }).waitFor();
  await now.page.locator(".now-part").getByText("SN-7").waitFor();
  await now.page.locator(".now-card").getByText("85.7 %").waitFor();
  await runs.page.locator(".runs-table").getByText("SN-7").waitFor();
  await runs.page.locator(".live").getByText("Live", { exact: true }).waitFor();
  const { runs: listed } = await cell.get<{ runs: { serial_number: string }[] }>("/runs");
  const serials = listed.map(({ serial_number: serial }) => serial);
  t.same(await runs.page.locator(".runs-table tbody .part a").allTextContents(), serials);
  t.same(await now.page.locator(".tile-name bdi").allTextContents(), serials);
  for (const { page, faults } of [now, runs]) {
    t.equal(await page.evaluate("window.isTheSame"), true, "never loaded anew");
    t.same(faults, []);
  }
  t.same(one.faults, []);
});
