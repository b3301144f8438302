import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import {
  axeFindings,
  inBrowser,
  type OpenPage,
  openPage,
  overflowPx,
  startBrowser,
  untilTrue,
} from "../helpers/browser/console-browser.js";
import { ConsoleCell, check } from "../helpers/browser/console-cell.js";
import { nextId } from "../helpers/link/link-messages.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

const ATTACK = `<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>"'>`;
const TURNED = "\u202eevil\u2066\u200f";
const LONG = "x".repeat(10_000);

const scrollToEnd = (page: Page, box: string) =>
  page.evaluate(
    `(() => { const box = document.querySelector(${JSON.stringify(box)}); box.scrollTop = box.scrollHeight; })()`,
  );

t.test("the console at its bounds", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const service = await ServiceProcess.startFor(t, { args: ["serve", "--retain-bytes", "1"] });
  const url = `http://127.0.0.1:${service.port}`;
  const open: OpenPage = (t, path) => openPage(t, browser, url + path);
  const openAbsent: OpenPage = (t, path) => openPage(t, browser, url + path, {}, [/status of 404/]);

  // The cell has not declared its program yet.
  await t.test("an empty store says so on each page", (t) => showNothing(t, openAbsent));

  const cell = await ConsoleCell.start(t, service);

  t.test("1,000 steps and 10,000 checks: only the rows in view are drawn", (t) => drawRowsInView(t, cell, open));

  t.test("what comes from outside is shown as text, and breaks no layout", (t) => showForeignText(t, cell, open));

  t.test("a removed capture is said to be removed", async (t) => {
    const runId = await cell.play({ serialNumber: "OLD", withCaptures: true, checks: [check("depth", "passed", 10)] });
    await cell.play({ serialNumber: "NEW", withCaptures: true });
    const page = await open(t, `/console/runs/${runId}`);
    await page.getByText("Removed by retention").first().waitFor();
    await page.getByText("Retention removed this series.").waitFor();
    await page.locator(".run-head").getByText("Retention removed captures of this run.").waitFor();
    t.equal(await page.locator(".files-table a[download]").count(), 0, "nothing to save");
  });
});

async function showNothing(t: Test, open: OpenPage): Promise<void> {
  const page = await open(t, "/");
  for (const [link, text] of [
    ["Now", "No run yet."],
    ["Runs", "No run yet."],
    ["Programs", "declared no program"],
    ["Webhooks", "Nobody is told"],
    ["System", "dispatcher"],
  ] as const) {
    await page.getByRole("link", { name: link, exact: true }).first().click();
    await page.getByText(text).first().waitFor();
  }
  for (const kind of ["run", "webhook"]) {
    await page.goto(`/console/${kind}s/${nextId()}`);
    await page.getByRole("heading", { name: `No ${kind} has this id.` }).waitFor();
    t.same(await axeFindings(page), [], kind);
  }
  await page.goto(`/console/programs/${nextId()}`);
  await page.getByRole("heading", { name: "No program has this id." }).waitFor();
  await untilTrue(
    page,
    "performance.getEntriesByType('resource').filter(({ name }) => /programs/.test(name)).length >= 3",
  );
  t.equal(await page.locator(".fault-box").count(), 1, "it is said once");
  t.equal(await page.getByRole("link", { name: "All programs" }).count(), 1, "and it leads on");
}

async function drawRowsInView(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const steps = Array.from({ length: 1_000 }, (_, at) => ({ type: "wait", name: `step ${at + 1}` }));
  const id = await cell.putProgram("Long", steps);
  const checks = Array.from({ length: 10_000 }, (_, at) =>
    check(`point_${at + 1}`, at === 9_000 ? "failed" : "passed", at === 9_000 ? 10.2 : 10 + (at % 50) / 1000),
  );
  const runId = await cell.play({ programId: id, serialNumber: "LONG", checks });
  const page = await open(t, `/console/runs/${runId}`);
  const first = page.locator(".checks-table tbody .check-name").first();
  await first.getByText("point_9001").waitFor();
  t.ok((await page.locator("tr").count()) < 250);
  await scrollToEnd(page, ".checks .scroll");
  await page.getByText("point_10000", { exact: true }).waitFor();
  const nameBox = await page.locator(".checks-table .check-name").first().boundingBox();
  t.ok((nameBox?.width ?? 0) > 110, `${nameBox?.width} pixels for the names`);
  const cut = `[...document.querySelectorAll(".checks-table td")].filter((cell) => cell.scrollWidth > cell.clientWidth).length`;
  t.equal(await page.evaluate(cut), 0, "no number is cut");
  await page.getByLabel("Find checks by name").fill("point_777");
  await page.getByText("point_7770").waitFor();
  await scrollToEnd(page, ".steps .scroll");
  await page.getByText("step 1000", { exact: true }).waitFor();
  t.same(await axeFindings(page), []);
  await page.setViewportSize({ width: 320, height: 640 });
  t.equal(await overflowPx(page), 0);
}

async function showForeignText(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const id = nextId();
  const name = `${ATTACK}${TURNED}`;
  await cell.say("program.put", {
    program: {
      id,
      name,
      status: "active",
      steps: [{ type: "wait", name }],
      description: LONG,
      metadata: { [ATTACK]: LONG },
    },
  });
  await cell.say("component.put", { key: name, status: "degraded", detail: `${ATTACK}${LONG}` });
  const runId = await cell.play({
    ...{ programId: id, serialNumber: name, metadata: { [name]: LONG } },
    checks: [{ ...check(name, "failed", 11), message: LONG }, check("y".repeat(255), "passed", 10)],
    defects: () => [{ type: name, description: LONG, severity: ATTACK }, { type: LONG.slice(0, 200) }],
    events: [{ event_type: name, data: { [name]: LONG } }],
  });
  const broken = await cell.play({ programId: id, serialNumber: name, end: "fail", message: `${name}${LONG}` });
  const target = { url: "http://127.0.0.1:9/", subscribed_events: ["ProgramStarted"] };
  const { id: webhook } = await cell.post<{ id: string }>("/webhooks", { name, ...target });
  const paths = ["/", "/console/runs", `/console/runs?serial_number=${encodeURIComponent(name)}`, "/console/programs"];
  paths.push(`/console/programs/${id}`, `/console/runs/${runId}`, `/console/runs/${broken}`);
  paths.push("/console/webhooks", `/console/webhooks/${webhook}`, "/console/system");
  const page = await open(t, "/");
  for (const path of paths) {
    await page.goto(path);
    await page.locator("main bdi", { hasText: ATTACK }).first().waitFor();
    t.equal(await page.evaluate("window.attacked"), undefined, path);
    t.equal(await page.locator("main img[src=x]").count(), 0);
    for (const width of [1920, 768, 320]) {
      await page.setViewportSize({ width, height: 800 });
      t.equal(await overflowPx(page), 0, `${path.slice(0, 40)} at ${width} px`);
    }
    t.same(await axeFindings(page, ["scrollable-region-focusable"]), [], `${path.slice(0, 40)}: axe, narrow`);
  }
}
