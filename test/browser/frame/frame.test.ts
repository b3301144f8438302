import type { Page, Request, Route } from "playwright-core";
import t, { type Test } from "tap";
import { inBrowser, openPage, startBrowser } from "../../helpers/browser/console-browser.js";
import {
  FrameCell,
  madeCapture,
  SMALL,
  surface,
  type TakenFrame,
  withOutliers,
} from "../../helpers/browser/frame-cell.js";
import { colourAt, FrameView, isGreyAt, near, text } from "../../helpers/browser/frame-view.js";
import { sized } from "../../helpers/test-size.js";

const NPY = /\/file\.npy$/;
/** Asks for the header, and for no lines. */
const isHead = (request: Request): boolean => /=0-/.test(request.headers().range ?? "");

/** The size that a page must show within a second on a local network. */
const LARGE = { width: 3200, lines: 1000, xPitchMm: 0.02, yPitchMm: 0.05 };

t.test("the maps of a frame", inBrowser, async (t) => {
  const { service, cell } = await FrameCell.startFor(t);
  const large = await cell.take("SN-LARGE", madeCapture({ ...LARGE, hasLuminance: false }, surface));
  const small = await cell.take("SN-1", madeCapture(SMALL, withOutliers), (frameId) => [
    {
      type: "dent",
      description: "dent <b>of</b> 1 mm",
      region_2d: { file: `frame-${frameId}.png`, bbox: [30, 30, 50, 50] },
      region_3d: {
        // 2 mm beside its box in the picture.
        ...{ file: `frame-${frameId}.ply`, location: [-6, 9, 0], extents: [1, 2, 0.5] },
        orientation: [0, 0, 0, 1],
      },
    },
    { type: "dust" },
    { type: "scratch", region_2d: { file: `frame-${frameId}.png`, bbox: [60, 180, 290, 195] } },
  ]);
  const browser = await startBrowser(t);
  const url = `http://127.0.0.1:${service.port}/console/frames/${large.frameId}`;
  const page = await openPage(t, browser, url, {}, [/ERR_FAILED .*\/file\.npy/]);
  const view = new FrameView(page);

  await t.test("a large frame is shown, and read out with the values of its NPY", (t) => readLarge(t, view));

  await t.test("a height that is pointed at becomes exact when its line comes", () => waitForLines(view));

  await t.test("so does the height beside it, of the same place in another frame", (t) =>
    readBeside(t, view, small, large),
  );

  await view.open(large.frameId);

  await t.test("lines that cannot be read are said to be missing", () => missLines(view, large));

  await t.test("the range of the colours is set by fields and by percentiles", (t) => setRange(t, view, small));

  await t.test("a drag and two fingers move the map", (t) => dragAndPinch(t, view, small));

  await t.test("z, x and y under the pointer; a point without measurement says so", (t) => readSmall(t, view, small));

  await t.test("the luminance has the values that were sent", async (t) => {
    await view.open(small.frameId, "view=luminance");
    await view.untilPainted();
    await page.mouse.move(...(await view.screenPlace(SMALL, 77, 30)));
    await page.waitForSelector('[data-value=column] dd:text-is("77")');
    t.equal((await view.readout()).luminance, (77 + 3 * 30) % 256);
    const colour = await colourAt(page, ...(await view.screenPlace(SMALL, 77, 30)));
    t.ok(Math.max(...colour.map((one) => Math.abs(one - 167))) < 2, `and they are drawn: ${colour}`);
  });

  await t.test("defects are drawn, and gone to by a click on the list, and by one on the map", (t) =>
    goToDefects(t, view, small),
  );

  await t.test("the keyboard points, zooms and cuts", (t) => useKeys(t, view, small));
});

/** Zooms in by the wheel until every point has pixels of its own. */
async function zoomTo(view: FrameView, frame: typeof LARGE, column: number, line: number): Promise<void> {
  await view.page.mouse.move(...(await view.screenPlace(frame, column, line)));
  for (let turn = 0; turn < 4; turn++) await view.page.mouse.wheel(0, -600);
  await view.page.waitForURL(/at=/);
}

/** Moves the point that is read out by keys, from where it is. */
async function movePoint(view: FrameView, column: number, line: number): Promise<void> {
  await view.page.locator(".map").focus();
  for (let keys = 0; keys < 1_000; keys++) {
    const at = await view.readout();
    const [dx, dy] = [column - (at.column as number), line - (at.line as number)];
    if (dx === 0 && dy === 0) return;
    const key = dx !== 0 ? (dx > 0 ? "ArrowRight" : "ArrowLeft") : dy > 0 ? "ArrowDown" : "ArrowUp";
    await view.page.keyboard.press(key);
  }
  throw new Error(`the point does not come to ${column}, ${line}`);
}

/** Holds back the lines of a frame. @returns what lets them come */
async function holdLines(page: Page, npy: RegExp): Promise<() => Promise<void>> {
  const held: Route[] = [];
  let isReleased = false;
  await page.route(npy, (route) => void (isReleased || isHead(route.request()) ? route.continue() : held.push(route)));
  return async () => {
    isReleased = true;
    for (const route of held) await route.continue();
    await page.unroute(npy);
  };
}

async function waitForLines(view: FrameView): Promise<void> {
  const { page } = view;
  const release = await holdLines(page, NPY);
  await page.reload();
  await view.untilPainted();
  await page.mouse.move(...(await view.screenPlace(LARGE, 1500, 400)));
  await page.waitForSelector('.readout [data-exact="false"]');
  await release();
  await view.untilExact();
}

async function readBeside(t: Test, view: FrameView, small: TakenFrame, large: TakenFrame): Promise<void> {
  const { page } = view;
  const release = await holdLines(page, new RegExp(`${large.frameId}/file\\.npy$`));
  await view.open(small.frameId, `view=side&with=${large.frameId}`);
  await page.locator("canvas[data-painted]").nth(1).waitFor();
  const box = (await page.locator(".map").first().boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  await page.mouse.move(box.x + box.width / 2 + 20, box.y + box.height / 2 + 10);
  await page.waitForSelector('[data-value="z there"] [data-exact="false"]');
  await release();
  await page.waitForSelector('[data-value="z there"] [data-exact="true"]');
  const { x, y, z, "z there": there, Δz: difference } = await view.readout();
  const expected = surface(
    Math.round(((x as number) + 10) / LARGE.xPitchMm),
    Math.round(((y as number) - 5) / LARGE.yPitchMm),
  );
  near(t, there, expected, "z there");
  near(t, difference, expected - (z as number), "Δz");
}

async function missLines({ page }: FrameView, { frameId }: TakenFrame): Promise<void> {
  await page.route(NPY, (route) => (isHead(route.request()) ? route.continue() : route.abort()));
  await page.goto(`/console/frames/${frameId}?at=1500,400,100`);
  await page.getByText("The service does not answer. The map shows the overview.").waitFor();
  await page.unroute(NPY);
}

async function readLarge(t: Test, view: FrameView): Promise<void> {
  await view.untilPainted();
  // Not what a new browser does when it starts, and not what other tests do at the same time.
  const paintedMs = Math.min(await view.reloadMs(), await view.reloadMs(), await view.reloadMs());
  t.comment(`${LARGE.width} x ${LARGE.lines} points: painted after ${Math.round(paintedMs)} ms`);
  t.ok(paintedMs < sized(10_000, 1_000), `within ${sized(10_000, 1_000)} ms`);
  await zoomTo(view, LARGE, 1500, 400);
  await view.untilExact();
  for (const [column, line] of [
    [1500, 400],
    [1501, 400],
    [1490, 409],
  ] as const) {
    await movePoint(view, column, line);
    const { x, y, z, column: c, line: l } = await view.readout();
    t.same([c, l], [column, line]);
    const expected = [-10 + column * LARGE.xPitchMm, 5 + line * LARGE.yPitchMm, surface(column, line)] as const;
    for (const [at, value] of [x, y, z].entries()) near(t, value, expected[at] as number, "xyz"[at] as string);
  }
}

async function readSmall(t: Test, view: FrameView, { frameId }: TakenFrame): Promise<void> {
  const { page } = view;
  await view.open(frameId);
  await view.untilPainted();
  for (const [column, line] of [
    [20, 10],
    [160, 150],
    [299, 199],
  ] as const) {
    await page.mouse.move(...(await view.screenPlace(SMALL, column, line)));
    await page.waitForSelector(`[data-value=column] dd:text-is("${column}")`);
    const { x, y, z, line: l } = await view.readout();
    t.equal(l, line);
    near(t, x as number, -10 + column * 0.05, "x");
    near(t, y as number, 5 + line * 0.1, "y");
    near(t, z as number, withOutliers(column, line), "z");
  }
  await page.getByText("in", { exact: true }).click();
  await page.mouse.move(...(await view.screenPlace(SMALL, 299, 199)));
  await page.waitForSelector('[data-value=column] dd:text-is("299")');
  t.match(await text(page, '[data-value="y"] dd'), / in$/);
  t.ok(Math.abs(((await view.readout()).z as number) - withOutliers(299, 199) / 25.4) <= 0.00006, "in inches");
  await page.getByText("mm", { exact: true }).first().click();
  await page.mouse.move(...(await view.screenPlace(SMALL, 110, 60)));
  await page.waitForSelector('[data-value="z"] >> text=no measurement');
  t.equal(await isGreyAt(page, ...(await view.screenPlace(SMALL, 110, 60))), true, "and it is grey on the map");
  t.equal(await isGreyAt(page, ...(await view.screenPlace(SMALL, 20, 10))), false);
}

async function setRange(t: Test, view: FrameView, { frameId }: TakenFrame): Promise<void> {
  const { page } = view;
  await view.open(frameId);
  await view.untilPainted();
  const place = await view.screenPlace(SMALL, 20, 10);
  await page.getByLabel("To", { exact: true }).fill("6");
  await page.getByLabel("To", { exact: true }).press("Enter");
  await page.getByLabel("From", { exact: true }).fill("5");
  await page.getByLabel("From", { exact: true }).press("Enter");
  await page.waitForURL(/range=5(,|%2C)6/);
  t.same(await colourAt(page, ...place), [68, 1, 84], "all of the surface lies below");
  await page.getByLabel("From", { exact: true }).fill("6.5");
  await page.getByLabel("From", { exact: true }).press("Enter");
  await page.getByText("From must be below To").waitFor();
  t.equal(view.address().get("range"), "5,6", "the range stays");
  await page.getByRole("button", { name: "all", exact: true }).click();
  await page.waitForURL(/range=0(,|%2C)25/);
  t.equal(await page.getByText("From must be below To").count(), 0);
  await page.getByRole("button", { name: "1–99 %" }).click();
  await page.waitForURL((url) => !url.search.includes("range="));
}

async function dragAndPinch(t: Test, view: FrameView, { frameId }: TakenFrame): Promise<void> {
  const { page } = view;
  await view.open(frameId);
  await view.untilPainted();
  const [x, y] = await view.screenPlace(SMALL, 150, 100);
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 60, y + 40, { steps: 3 });
  await page.mouse.up();
  await page.waitForURL(/at=/);
  await page.waitForSelector('[data-value=column] dd:text-is("150")');
  t.equal((await view.readout()).line, 100, "what was under the pointer still is");
  const before = Number(view.address().get("at")?.split(",")[2]);
  const cdp = await page.context().newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", apart: number) =>
    cdp.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: type === "touchEnd" ? [] : [-1, 1].map((side, id) => ({ x: x + side * apart, y, id })),
    });
  await touch("touchStart", 40);
  for (const apart of [50, 60, 70, 80]) await touch("touchMove", apart);
  await touch("touchEnd", 0);
  await page.waitForURL((url) => Number(url.searchParams.get("at")?.split(",")[2]) > 1.8 * before);
  await cdp.detach();
}

async function goToDefects(t: Test, view: FrameView, { frameId }: TakenFrame): Promise<void> {
  const { page } = view;
  await view.open(frameId);
  await view.untilPainted();
  const defect = page.getByRole("button", { name: /dent/ });
  t.match(await defect.textContent(), "<b>of</b>", "HTML in a name is text");
  const overlay = ".map canvas + canvas";
  const edge = await view.screenPlace(SMALL, 40, 29.5);
  t.ok(Math.min(...(await colourAt(page, ...edge, overlay))) > 150, "the upper edge of its box is drawn in white");
  const [x, y] = await view.screenPlace(SMALL, 70, 30);
  t.ok(Math.min(...(await colourAt(page, x + 2, y, overlay))) > 150, "so is the one of its box in space");
  t.same(await colourAt(page, ...(await view.screenPlace(SMALL, 60, 40)), overlay), [0, 0, 0], "and nothing beside it");
  await page.getByText("1 more has no place in this frame.").waitFor();
  await defect.click();
  await page.waitForURL(/at=/);
  const [u, v] = (view.address().get("at") ?? "").split(",").map(Number);
  t.same([Math.round(u as number), Math.round(v as number)], [60, 40], "the middle of both");
  await page.getByRole("button", { name: /scratch/ }).click();
  await page.waitForURL(({ search }) => search.includes("defect=2") && !search.includes("at="));
  await defect.click();
  await page.waitForURL(/at=/);
  await page.getByRole("button", { name: "Show all" }).click();
  await page.waitForURL((url) => !url.search.includes("at="));
  await page.mouse.click(...(await view.screenPlace(SMALL, 200, 150)));
  await page.waitForURL((url) => !url.search.includes("defect="));
  await page.mouse.click(...(await view.screenPlace(SMALL, 40, 40)));
  await page.waitForURL(/at=.*defect=0|defect=0.*at=/);
}

async function useKeys(t: Test, view: FrameView, { frameId }: TakenFrame): Promise<void> {
  const { page } = view;
  await view.open(frameId);
  await view.untilPainted();
  await page.locator(".map").focus();
  for (const key of ["ArrowRight", "ArrowDown", "c", "Alt+ArrowRight", "C"]) await page.keyboard.press(key);
  await page.waitForURL(/cut=/);
  const [c0, l0, c1, l1] = (view.address().get("cut") ?? "").split(",").map(Number) as [number, number, number, number];
  t.same([c1 > c0, l1 === l0], [true, true]);
  await page.keyboard.press("+");
  await page.waitForURL(/at=/);
  await page.keyboard.press("0");
  await page.waitForURL((url) => !url.search.includes("at="));
}
