import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { IN_3D, inBrowser, openPage, startBrowser } from "../helpers/browser/console-browser.js";
import { ConsoleCell, check, PROGRAM } from "../helpers/browser/console-cell.js";
import { isFullSize } from "../helpers/test-size.js";
import { until } from "../helpers/until.js";

/** From here on the pages have two columns. */
const COLUMNS_FROM_PX = 1_120;
/** With two columns, and a phone. */
const WIDTHS = [1280, 390];

/** More than a page answers while one more command is on its way to the browser. */
const KEYS_AT_ONCE = 16;

/** The element that has the focus. Its place is in pixels on the page. */
interface Stop {
  name: string;
  /** The focus can be seen: it has a ring, and some of it is not covered. */
  isRinged: boolean;
  isFree: boolean;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const REACHABLE = "a[href], button, input, select, summary, [tabindex='0']";

/** A stop; undefined if it is within the one before; null after the last one. A radio button is drawn by its label. */
const stopOf = (key: string) => `(() => {
  const element = document.activeElement;
  if (element === window.lastStop) return undefined;
  if (element === document.body || element.reachedBy === ${JSON.stringify(key)}) return null;
  window.lastStop = element;
  element.reachedBy = ${JSON.stringify(key)};
  const shown = element.type === "radio" ? element.closest("label") : element;
  const points = [...shown.getClientRects()].flatMap(({ left, width, top, height }) =>
    [0.1, 0.5, 0.9].map((share) => [left + width / 2, top + share * height]));
  const isFree = points.some(([x, y]) => shown.contains(document.elementFromPoint(x, y)));
  const { left, right, top, bottom } = shown.getBoundingClientRect();
  return {
    name: element.tagName + " " + (element.ariaLabel ?? element.name ?? "") + " " + shown.textContent.trim().slice(0, 30),
    // In a field for a time, the browser itself marks the part that has the focus.
    isRinged: element.type === "datetime-local" || getComputedStyle(shown).outlineStyle === "solid", isFree,
    left, right, top: top + scrollY, bottom: bottom + scrollY,
  };
})()`;

/** Follows the focus from here on. Once it has left the page, keys have no effect any more. */
const follow = (key: string) => `(() => {
  const stops = [];
  let [keys, isOver] = [0, false];
  const note = () => {
    const stop = keys === 0 || isOver ? undefined : ${stopOf(key)};
    if (stop) stops.push(stop);
    isOver ||= stop === null;
    return isOver;
  };
  window.onkeydown = (event) => {
    if (event.key !== "Tab") return;
    if (note()) event.preventDefault();
    keys++;
  };
  window.walk = { stops, isOver: note };
})()`;

/** Everything that a mouse can use, and that was not reached. Arrow keys reach the other radio buttons. */
const MISSED = `[...document.querySelectorAll(${JSON.stringify(REACHABLE)})]
  .filter((one) => !one.reachedBy && !one.disabled && one.checkVisibility() && !(one.type === "radio" && !one.checked))
  .map((one) => one.outerHTML.slice(0, 200))`;

/** How many there are. */
const COUNT = `document.querySelectorAll(${JSON.stringify(REACHABLE)}).length`;
/** Forgets an earlier walk. */
const BEGIN = `(() => {
  for (const one of document.querySelectorAll("*")) delete one.reachedBy;
  delete window.lastStop;
  document.activeElement.blur();
  return ${COUNT};
})()`;

t.test("the keyboard reaches everything in the order of the page, and shows where it is", inBrowser, async (t) => {
  const browser = await startBrowser(t, IN_3D);
  const { service, cell } = await ConsoleCell.startFor(t);
  const target = { url: "http://127.0.0.1:9/", subscribed_events: ["ProgramCompleted"], max_retries: 0 };
  const { id: webhook } = await cell.post<{ id: string }>("/webhooks", { name: "MES", ...target });
  for (let n = 1; n < 9; n++) await cell.play({ serialNumber: `SN-${n}`, checks: [check("depth", "passed", 10)] });
  const checks = Array.from({ length: 13 }, (_, at) => check(`depth_${at}`, "failed", 11));
  const run = await cell.play({ serialNumber: "SN-1", withCaptures: true, checks, defects: () => [{ type: "dent" }] });
  const { results } = await cell.get<{ results: { frame_ids: string[] } }>(`/runs/${run}`);
  const frame = `/console/frames/${results.frame_ids[0]}`;
  const base = `http://127.0.0.1:${service.port}`;
  const pages = [
    ["/", "text=the connection was refused"],
    ["/console/runs?serial_number=SN-1", "text=Inspection 2"],
    ["/console/runs", "text=SN-8"],
    [`/console/runs/${run}`, "text=1 attempt"],
    ["/console/programs", "text=Housing top"],
    [`/console/programs/${PROGRAM}`, "text=depth_12"],
    [`/console/programs/${PROGRAM}?check=depth`, "text=Histogram as a table"],
    ["/console/webhooks", "text=failed"],
    [`/console/webhooks/${webhook}`, "text=1 attempt"],
    ["/console/system", "text=dispatcher"],
    [`${frame}?cut=0,10,3,150`, "text=Save CSV"],
    [`${frame}?view=cloud`, "[data-points]"],
  ] as const;
  for (const [nth, [path, last]] of pages.entries()) {
    // In a commit's size only the page of a run, which has most, is walked at both widths.
    const isBoth = isFullSize || path.endsWith(run);
    for (const width of isBoth ? WIDTHS : [WIDTHS[nth % 2] as number]) {
      const page = await openPage(t, browser, base + path, { viewport: { width, height: 480 } });
      await page.locator(last).first().waitFor();
      await page.locator("[aria-busy=true]").first().waitFor({ state: "hidden" });
      await walk(t, page, `${path.replace(/[0-9a-f-]{36}/, "…")} at ${width} px`, width);
      await page.context().close();
    }
  }
});

async function walk(t: Test, page: Page, name: string, width: number): Promise<void> {
  let stops: Stop[] = [];
  // What came during the walk may lie behind it: then the walk begins anew.
  await until(`a walk of ${name} in which nothing comes`, async () => {
    const before = await page.evaluate<number>(BEGIN);
    stops = await press(page, "Tab");
    return (await page.evaluate<number>(COUNT)) === before;
  });
  const isBack = (at: number): boolean => {
    const [before, { left, bottom }] = stops.slice(at - 1, at + 1) as [Stop, Stop];
    return bottom <= before.top && (width < COLUMNS_FROM_PX || left < before.right);
  };
  t.same(await page.evaluate(MISSED), [], `${name}: everything is reached`);
  t.same(
    stops.filter((_, at) => at > 0 && isBack(at)).map(({ name }) => name),
    [],
    `${name}: the focus goes down`,
  );
  // Make the boxes scroll below their heads, as long lists do.
  await page.evaluate(`for (const box of document.querySelectorAll(".scroll")) box.style.maxHeight = "8rem"`);
  const hidden = [...stops, ...(await press(page, "Shift+Tab"))].filter(({ isRinged, isFree }) => !isRinged || !isFree);
  t.same(
    hidden.map(({ name }) => name),
    [],
    `${name}: the focus is seen`,
  );
}

/** Presses the key until the focus leaves the page. Each keydown of those that are sent together notes what the one before it reached. */
async function press(page: Page, key: string): Promise<Stop[]> {
  await page.evaluate(follow(key));
  const [pressed = "", ...held] = key.split("+").reverse();
  const pressSome = async () => {
    for (const one of held) await page.keyboard.down(one);
    await Promise.all(Array.from({ length: KEYS_AT_ONCE }, () => page.keyboard.down(pressed)));
    for (const one of [pressed, ...held]) await page.keyboard.up(one);
  };
  await until("the focus leaves the page", () => page.evaluate<boolean>("window.walk.isOver()"), pressSome);
  return page.evaluate<Stop[]>("window.walk.stops");
}
