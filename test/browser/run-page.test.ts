import t, { type Test } from "tap";
import { axeFindings, inBrowser, type OpenPage } from "../helpers/browser/console-browser.js";
import { type ConsoleCell, check, startConsole } from "../helpers/browser/console-cell.js";
import { until } from "../helpers/until.js";

const LONG = `${"0123456789".repeat(1_000)} the end`;

t.test("the page of a run", inBrowser, async (t) => {
  const { cell, open } = await startConsole(t);

  t.test("the head names the failed checks, with the steps that made them", (t) => nameFailed(t, cell, open));
  t.test("a failed check leads to its place on the surface", (t) => goToPlace(t, cell, open));
  t.test("lists name the checks for which a run did not pass", (t) => nameInLists(t, cell, open));
  t.test("a list reads no whole reports, and its reasons do not wait for pictures", (t) => readReasons(t, cell, open));
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
    const page = await open(t, `/console/runs/${runId}`);
    await page.locator(".checks-table .check-name").first().waitFor();
    t.same(await page.locator(".run-head p", { hasText: "Failed:" }).allTextContents(), words);
    await page.context().close();
  }
}

async function goToPlace(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const placed = (name: string, defect_id: unknown) => ({ ...check(name, "failed", 11), metadata: { defect_id } });
  const runId = await cell.play({
    serialNumber: "SN-PLACE",
    withCaptures: true,
    checks: [placed("depth", "second"), placed("width", null), placed("gap", "elsewhere")],
    defects: (frameId) => [
      { id: "first", type: "dent", region_2d: { file: `frame-${frameId}.png`, bbox: [5, 5, 9, 9] } },
      { id: "second", type: "out of tolerance", region_2d: { file: `frame-${frameId}.png`, bbox: [20, 10, 40, 30] } },
      { id: "elsewhere", type: "stain" },
      { id: null, type: "pit", region_2d: { file: `frame-${frameId}.png`, bbox: [1, 1, 2, 2] } },
    ],
  });
  const page = await open(t, "/");
  for (const [path, part] of [
    ["/", ".now-reasons"],
    [`/console/runs/${runId}`, ".run-head p"],
    [`/console/runs/${runId}`, ".checks-table"],
  ] as const) {
    await page.goto(path);
    await page.locator(part).getByText("gap").waitFor();
    const links = page.locator(part).getByTitle("Show it on the surface");
    await links.first().waitFor();
    t.same(await links.allTextContents(), ["depth"], `${part}: nobody said where the others are`);
    await links.click();
    await page.waitForURL(/\/console\/frames\/[^/]+\?.*defect=1/);
    await page.locator(".defects button[aria-pressed=true]", { hasText: "out of tolerance" }).waitFor();
  }
}

async function nameInLists(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const all = (status: string, ...names: string[]) => names.map((name) => check(name, status, 11));
  const runs: [serialNumber: string, checks: readonly object[], reason: string | undefined][] = [
    ["SN-L1", [...all("failed", "a", "b"), ...all("error", "e"), ...all("passed", "p")], "a, b"],
    ["SN-L2", all("failed", "a", "<b>", "c", "d", "e"), "a, <b>, c and 2 more"],
    ["SN-L3", [...all("not_evaluated", "n"), ...all("warning", "w"), ...all("error", "e")], "n, e"],
    ["SN-L4", all("passed", "p"), undefined],
  ];
  for (const [serialNumber, checks] of runs) await cell.play({ serialNumber, checks });
  const page = await open(t, "/");
  const asked: string[] = [];
  page.on("request", (request) => request.url().includes("/quality-report") && asked.push(request.url()));
  for (const [path, row, line] of [
    ["/", ".tile", ".tile-reason"],
    ["/console/runs", ".runs-table tr", ".check-message"],
  ] as const) {
    await page.goto(path);
    for (const [serialNumber, , reason] of runs) {
      const found = page.locator(row, { hasText: serialNumber });
      await found.waitFor();
      if (reason === undefined) {
        t.equal(await found.locator(line).count(), 0, `${path}: it passed`);
        continue;
      }
      await found.locator(line, { hasText: reason }).waitFor();
      t.equal(await found.locator(line).textContent(), reason, path);
    }
    t.same(await axeFindings(page), [], path);
  }
  const { runs: passed } = await cell.get<{ runs: { id: string }[] }>("/runs?serial_number=SN-L4");
  t.same(
    asked.filter((url) => url.includes(passed[0]?.id ?? "")),
    [],
    "no report is read of a run that passed",
  );
}

/** Two of 9,000 checks failed. The files of each run, which lead to its picture, have no answer. */
async function readReasons(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const checks = Array.from({ length: 9_000 }, (_, at) =>
    check(`point_${at}`, at % 4_000 === 7 ? "failed" : "passed", 11),
  );
  for (let n = 0; n < 5; n++) await cell.play({ serialNumber: `SN-D${n}`, checks });
  const page = await open(t, "/console/webhooks");
  const sizes: Promise<number>[] = [];
  page.on("response", (response) => {
    // One that is still on its way when the page goes elsewhere has no body.
    const size = () =>
      response.body().then(
        ({ length }) => length,
        () => 0,
      );
    if (response.url().includes("/quality-report?")) sizes.push(size());
  });
  await page.route(/\/runs\/[^/]+\/files$/, () => undefined);
  for (const [path, row] of [
    ["/", ".tile"],
    ["/console/runs", ".runs-table tr"],
  ] as const) {
    await page.goto(path);
    for (let n = 0; n < 5; n++) {
      const found = page.locator(row, { hasText: `SN-D${n}` });
      await found.getByText("point_7, point_4007, point_8007").waitFor();
    }
  }
  const found = (await Promise.all(sizes)).filter((size) => size > 0);
  t.ok(found.length >= 5 && Math.max(...found) < 1_500, `bytes: ${found}`);
}

/** @param others checks beside the one with the long message */
async function readLongText(t: Test, cell: ConsoleCell, open: OpenPage, others: number): Promise<void> {
  const more = Array.from({ length: others }, (_, at) => check(`point_${at}`, "passed", 10));
  const runId = await cell.play({ checks: [{ ...check("depth", "failed", 11), message: LONG }, ...more] });
  const page = await open(t, `/console/runs/${runId}`);
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
  // Until the box has its new size, there is nothing to scroll.
  const toEnd = () => page.keyboard.press("End");
  await toEnd();
  await until("the box scrolls", async () => (await scrolledPx()) > 0, toEnd);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  t.equal(await isFocused(), true, "the keyboard goes on where it was");
  await button.click();
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "detached" });
}
