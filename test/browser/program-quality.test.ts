import t from "tap";
import { axeFindings, inBrowser, overflowPx } from "../helpers/browser/console-browser.js";
import { check, PROGRAM, startConsole } from "../helpers/browser/console-cell.js";

const defects = (...types: readonly (string | null)[]) => types.map((type) => (type === null ? {} : { type }));

t.test("a program's yields and the Pareto chart of its defects", inBrowser, async (t) => {
  const { cell, open } = await startConsole(t);
  await cell.play({ serialNumber: "SN-1", checks: [check("depth", "passed", 10)] });
  const page = await open(t, `/console/programs/${PROGRAM}`);
  const section = page.locator("section.card", { hasText: "Quality over all runs" });
  await section.getByText("No defects were found.").waitFor();
  t.same(await section.locator("dd").allTextContents(), ["100 %", "100 %", "1"]);

  const failed = { serialNumber: "SN-2", checks: [check("depth", "failed", 11)] };
  await cell.play({ ...failed, defects: () => defects("scratch", "dent <b>", "dent <b>", null) });
  // It hears of each run that ends.
  await section.getByRole("row", { name: /dent/ }).waitFor();
  await cell.play({ ...failed, checks: [check("depth", "passed", 10)], defects: () => defects("dent <b>") });
  await section.getByRole("cell", { name: "60.0 %" }).waitFor();
  t.same(await section.locator("dd").allTextContents(), ["50.0 %", "100 %", "3"], "SN-2 passed when it came again");
  const rows = section.locator("tbody tr");
  const texts = await Promise.all((await rows.all()).map((row) => row.locator("th, td").allTextContents()));
  t.same(texts[0], ["dent <b>", "3", "2", "60.0 %"]);
  t.same(
    texts
      .slice(1)
      .map(([type]) => type)
      .sort(),
    ["Without a kind", "scratch"],
  );
  t.same(
    texts.slice(1).map(([, ...figures]) => figures),
    [
      ["1", "1", "80.0 %"],
      ["1", "1", "100 %"],
    ],
  );
  const widths = await section
    .locator(".pareto-bar")
    .evaluateAll<number[], { getBoundingClientRect(): { width: number } }>((bars) =>
      bars.map((bar) => bar.getBoundingClientRect().width),
    );
  t.ok(Math.abs((widths[1] as number) / (widths[0] as number) - 1 / 3) < 0.02, `${widths}`);
  t.same(await axeFindings(page), []);
  await page.setViewportSize({ width: 320, height: 800 });
  t.ok((await overflowPx(page)) <= 0);
});
