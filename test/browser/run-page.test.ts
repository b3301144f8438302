import t, { type Test } from "tap";
import { axeFindings, inBrowser, type OpenPage, openPage, startBrowser } from "../helpers/browser/console-browser.js";
import { ConsoleCell, check } from "../helpers/browser/console-cell.js";
import { ServiceProcess } from "../helpers/process/service-process.js";

const LONG = `${"0123456789".repeat(1_000)} the end`;

t.test("the page of a run", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const service = await ServiceProcess.startFor(t);
  const cell = await ConsoleCell.start(service);
  t.teardown(() => cell.close());
  const open: OpenPage = (path) => openPage(browser, `http://127.0.0.1:${service.port}${path}`);

  t.test("the head names the failed checks, with the steps that made them", (t) => nameFailed(t, cell, open));
  t.test("all of a long text can be read by keyboard", (t) => readLongText(t, cell, open, 0));
  t.test("all of a long text can be read in a table whose rows have one line", (t) => readLongText(t, cell, open, 300));
});

async function nameFailed(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const ofStep = { ...check("score", "failed", 57), metadata: { step: "Look at the seal" } };
  const some = [
    check("width", "passed", 10),
    ofStep,
    check("angle", "not_evaluated", 10),
    check("depth", "failed", 11),
  ];
  const many = ["a", "b", "c", "d", "e"].map((name) => check(name, "failed", 11));
  for (const [checks, words] of [
    [some, ["Failed: score (step Look at the seal), depth."]],
    [many, ["Failed: a, b, c and 2 more."]],
    [[check("width", "passed", 10)], []],
  ] as const) {
    const runId = await cell.play({ serialNumber: "SN-1", checks });
    const { page, faults } = await open(`/console/runs/${runId}`);
    await page.locator(".checks-table .check-name").first().waitFor();
    t.same(await page.locator(".run-head p", { hasText: "Failed:" }).allTextContents(), words);
    t.same(faults, []);
    await page.context().close();
  }
}

/** @param others checks beside the one with the long message */
async function readLongText(t: Test, cell: ConsoleCell, open: OpenPage, others: number): Promise<void> {
  const more = Array.from({ length: others }, (_, at) => check(`point_${at}`, "passed", 10));
  const runId = await cell.play({ checks: [{ ...check("depth", "failed", 11), message: LONG }, ...more] });
  const { page, faults } = await open(`/console/runs/${runId}`);
  const button = page.locator(".check-message").getByRole("button", { name: "Show all" });
  await button.waitFor();
  const { x = 0, width = 0 } = (await button.boundingBox()) ?? {};
  const cellBox = await page.locator(".check-name").first().boundingBox();
  t.ok(width > 0 && x + width <= (cellBox?.x ?? 0) + (cellBox?.width ?? 0), "the button is in view");
  const isFocused = () =>
    button.evaluate<boolean, { matches(selector: string): boolean }>((own) => own.matches(":focus"));
  for (let keys = 0; keys < 100 && !(await isFocused()); keys++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "The whole text" });
  t.equal(await dialog.locator("bdi").textContent(), LONG);
  t.same(await axeFindings(page), []);
  const scrolledPx = () => dialog.locator(".scroll").evaluate<number, { scrollTop: number }>((box) => box.scrollTop);
  await page.setViewportSize({ width: 320, height: 400 });
  await page.keyboard.press("End");
  while ((await scrolledPx()) === 0) await page.locator("dialog").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  t.equal(await isFocused(), true, "the keyboard goes on where it was");
  await button.click();
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "detached" });
  t.same(faults, []);
  await page.context().close();
}
