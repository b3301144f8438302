import type { Route } from "playwright-core";
import t, { type Test } from "tap";
import { inBrowser, type OpenPage } from "../helpers/browser/console-browser.js";
import { startConsole } from "../helpers/browser/console-cell.js";
import { until } from "../helpers/until.js";

t.test("a preview that could not be read is read again", inBrowser, async (t) => {
  const { cell, open } = await startConsole(t, [/ERR_FAILED/, /status of 50[03]/]);
  const runId = await cell.play({ withCaptures: true });

  t.test("in a tile", (t) => heal(t, open, "/", ".tile .preview", [/\/files$/, /\/preview\.png$/]));
  t.test("on the page of its run", (t) =>
    heal(t, open, `/console/runs/${runId}`, ".frame-list .preview", [/\/preview\.png$/]),
  );
});

/** @param reads what the picture asks for, one after the other */
async function heal(t: Test, open: OpenPage, path: string, field: string, reads: readonly RegExp[]): Promise<void> {
  const page = await open(t, "/console/system");
  const broken = { code: "internal_error", message: "broken", params: {}, retryable: true };
  const busy = { code: "unavailable", message: "busy", params: {}, retryable: true };
  for (const read of reads) {
    // The first read gets no answer, and the next ones get refusals that pass.
    const answers = [
      (route: Route) => route.abort(),
      (route: Route) => route.fulfill({ status: 500, json: broken }),
      (route: Route) => route.fulfill({ status: 503, json: busy }),
    ];
    await page.route(read, (route) => answers.shift()?.(route), { times: answers.length });
  }
  await page.clock.install();
  const lost = page.waitForEvent("requestfailed", (request) => reads[0]?.test(request.url()) === true);
  await page.goto(path);
  await lost;
  const picture = page.locator(`${field} img`);
  await until(
    `the picture at ${path}`,
    () => picture.isVisible(),
    () => page.clock.fastForward("00:10"),
  );
}
