import { readFileSync } from "node:fs";
import t, { type Test } from "tap";
import { inBrowser, openPage, startBrowser } from "../../helpers/browser/console-browser.js";
import { FrameCell, madeCapture, SMALL, withOutliers } from "../../helpers/browser/frame-cell.js";
import { colourAt, FrameView, near, numberIn, text } from "../../helpers/browser/frame-view.js";

type Ends = readonly [fromColumn: number, fromLine: number, toColumn: number, toLine: number];

t.test("the keys of the map, and its cut line", inBrowser, async (t) => {
  const { service, cell } = await FrameCell.startFor(t);
  const { frameId } = await cell.take("SN-1", madeCapture(SMALL, withOutliers));
  const browser = await startBrowser(t);
  const page = await openPage(t, browser, `http://127.0.0.1:${service.port}/console/frames/${frameId}`);
  const view = new FrameView(page);

  await t.test("arrow keys with Shift move the map", (t) => moveMap(t, view, frameId));
  await t.test("Escape cancels a cut line", (t) => cancelCut(t, view, frameId));
  await t.test("a line at another angle has another profile, until it is removed", (t) => turnCut(t, view, frameId));
});

async function moveMap(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  // At 40 pixels a mm, the 80 pixels of a key press are 40 columns or 20 lines.
  await view.open(frameId, "at=130.5,100.5,40");
  await view.untilPainted();
  const box = await view.box();
  const middle = [box.x + Math.floor(box.width) / 2, box.y + Math.floor(box.height) / 2] as const;
  await page.mouse.move(...middle);
  await page.waitForSelector('[data-value=column] dd:text-is("130")');
  await page.locator(".map").focus();
  let [column, line] = [130, 100];
  for (const [key, columns, lines] of [
    ["ArrowRight", 40, 0],
    ["ArrowDown", 0, 20],
    ["ArrowLeft", -40, 0],
    ["ArrowUp", 0, -20],
  ] as const) {
    const before = view.address().get("at");
    await page.keyboard.press(`Shift+${key}`);
    await page.waitForURL((url) => url.searchParams.get("at") !== before);
    const pointed = await view.readout();
    t.same([pointed.column, pointed.line], [column, line], `${key}: the point that is read out stays`);
    column += columns;
    line += lines;
    t.equal(view.address().get("at"), `${column + 0.5},${line + 0.5},40`, `${key}: the middle of the map`);
    // The pointer reads out what it is over when it moves.
    await page.mouse.move(middle[0] + 10, middle[1]);
    await page.mouse.move(...middle);
    await page.waitForSelector(`[data-value=column] dd:text-is("${column}")`);
    t.equal((await view.readout()).line, line);
    const [red = 0] = await colourAt(page, ...middle);
    t.equal(red > 150, column > 150, `${key}: the map is painted there: the step is yellow, all before it blue`);
  }
}

async function cancelCut(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  // The keys move the point that is in the middle, and not one under the pointer.
  await page.mouse.move(0, 0);
  // At 80 pixels a mm, an arrow key goes to the next point.
  await view.open(frameId, "at=150.5,100.5,80");
  await view.untilPainted();
  await page.locator(".map").focus();
  for (const key of ["ArrowRight", "c", "ArrowDown", "Escape", "Alt+ArrowRight", "c", "Alt+ArrowDown", "c"]) {
    await page.keyboard.press(key);
  }
  await page.waitForURL(/cut=/);
  t.equal(view.address().get("cut"), "161,101,161,111", "it begins where C was pressed after Escape");

  await page.getByRole("button", { name: "Cut line", pressed: false }).click();
  await page.getByRole("button", { name: "Cut line", pressed: true }).waitFor();
  await page.locator(".map").press("Escape");
  await page.getByRole("button", { name: "Cut line", pressed: false }).waitFor();
  const { x, y } = await view.box();
  const before = view.address().get("at");
  await page.mouse.move(x + 100, y + 100);
  await page.mouse.down();
  await page.mouse.move(x + 140, y + 130, { steps: 3 });
  await page.mouse.up();
  await page.waitForURL((url) => url.searchParams.get("at") !== before);
  t.equal(view.address().get("cut"), "161,101,161,111", "a drag moves the map again, and draws nothing");
}

async function turnCut(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await view.open(frameId);
  await view.untilPainted();
  // The last number is the step in mm from the beginning to the end.
  for (const [ends, stepMm] of [
    [[60, 30, 250, 30], 2],
    // This one crosses the hole.
    [[240, 60, 70, 60], -2],
    [[80, 180, 220, 30], 2],
  ] as const) {
    await drawLine(view, ends);
    const rows = await profileRows(view);
    checkRows(t, rows, ends);
    await measureAll(t, view, rows, stepMm);
    const [first, last] = [await plottedAt(view, 0.1), await plottedAt(view, 0.9)];
    t.equal(
      Math.sign(first - last),
      Math.sign(stepMm),
      `${ends}: the plot has ${first} and ${last} pixels from its top`,
    );
  }
  // The address has seven digits of the ends.
  const points = async () => (await profileRows(view)).map(({ column, line }) => [column, line]);
  const drawn = await points();
  await page.reload();
  await page.waitForSelector(".profile-plot canvas");
  t.same(await points(), drawn, "the address keeps the line");
  const plot = (await page.locator(".u-over").boundingBox()) as { x: number; y: number; width: number };
  await page.mouse.click(plot.x + 0.3 * plot.width, plot.y + 20);
  await page.waitForURL((url) => !url.search.includes("cursors=0"));
  const [clicked = 0] = view.address().get("cursors")?.split(",").map(Number) ?? [];
  t.ok(Math.abs(clicked / (drawn.length - 1) - 0.3) < 0.02, `a click in the plot moves cursor A to ${clicked}`);
  const atEnd = async () => colourAt(page, ...(await view.screenPlace(SMALL, 220, 30)), ".map canvas + canvas");
  t.same(await atEnd(), [90, 209, 255], "cursor B is at the end of the line on the map");
  await page.getByRole("button", { name: "Remove" }).click();
  await page.locator(".profile").waitFor({ state: "detached" });
  t.same([view.address().get("cut"), view.address().get("cursors")], [null, null]);
  await view.untilDrawn();
  t.same(await atEnd(), [0, 0, 0], "nothing is drawn there any more");
  await page.goBack();
  await page.locator(".profile-plot canvas").waitFor();
}

async function drawLine(view: FrameView, [fromColumn, fromLine, toColumn, toLine]: Ends): Promise<void> {
  const { page } = view;
  await page.getByRole("button", { name: "Cut line" }).click();
  await page.mouse.move(...(await view.screenPlace(SMALL, fromColumn, fromLine)));
  await page.mouse.down();
  await page.mouse.move(...(await view.screenPlace(SMALL, toColumn, toLine)), { steps: 4 });
  await page.mouse.up();
  // The profile of the line before stays until the new one is read. Each has another number of samples.
  const points = Math.ceil(Math.hypot(toColumn - fromColumn, toLine - fromLine));
  const lasts = [-1, 0, 1, 2].map((more) => `.cursor-b input[max="${points + more}"]`);
  await page.waitForSelector(lasts.join(", "));
}

interface Row {
  distanceMm: number;
  xMm: number;
  yMm: number;
  /** NaN: no measurement. */
  zMm: number;
  column: number;
  line: number;
}

async function profileRows({ page }: FrameView): Promise<Row[]> {
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save CSV" }).click();
  const lines = readFileSync(await (await saving).path(), "utf8")
    .trim()
    .split("\n")
    .slice(1);
  return lines.map((row) => {
    const values = row.split(",").map((value) => (value === "" ? Number.NaN : Number(value)));
    const [distanceMm, xMm, yMm, zMm, column, line] = values as [number, number, number, number, number, number];
    return { distanceMm, xMm, yMm, zMm, column, line };
  });
}

/** Each sample lies on the line, and has the height of the frame there. A pixel of the screen is up to a point wide. */
function checkRows(t: Test, rows: readonly Row[], ends: Ends): void {
  const [fromColumn, fromLine, toColumn, toLine] = ends;
  const lengthMm = Math.hypot((toColumn - fromColumn) * SMALL.xPitchMm, (toLine - fromLine) * SMALL.yPitchMm);
  const wrong = rows.filter(({ distanceMm, zMm, column, line }, at) => {
    const part = at / (rows.length - 1);
    const expected = withOutliers(column, line);
    const isHeight = Number.isNaN(expected) ? Number.isNaN(zMm) : Math.abs(zMm - expected) < 1e-6;
    const offColumns = Math.abs(column - fromColumn - part * (toColumn - fromColumn));
    const offLines = Math.abs(line - fromLine - part * (toLine - fromLine));
    return !isHeight || offColumns > 1.5 || offLines > 1.5 || Math.abs(distanceMm - part * lengthMm) > 0.15;
  });
  t.same(wrong, [], `the profile from ${ends}`);
  t.equal(
    rows.some(({ zMm }) => Number.isNaN(zMm)),
    fromLine === 60,
    "only one line crosses the hole",
  );
}

/** With the cursors at both ends, the panel measures from the first sample to the last one. */
async function measureAll(t: Test, view: FrameView, rows: readonly Row[], stepMm: number): Promise<void> {
  const { page } = view;
  await page.getByRole("slider", { name: /Cursor A/ }).press("Home");
  await page.getByRole("slider", { name: /Cursor B/ }).press("End");
  await page.waitForURL((url) => url.searchParams.get("cursors") === `0,${rows.length - 1}`);
  const [first, last] = [rows[0], rows.at(-1)] as [Row, Row];
  for (const [name, { xMm, yMm, zMm }] of [
    ["a", first],
    ["b", last],
  ] as const) {
    const shown = (await text(page, `.cursor-${name} b`)).split(/ [yz] /).map(numberIn);
    for (const [at, value] of [xMm, yMm, zMm].entries()) near(t, shown[at], value, `cursor ${name}, ${"xyz"[at]}`);
  }
  const apartMm = Math.hypot(last.xMm - first.xMm, last.yMm - first.yMm);
  const measuredMm = last.zMm - first.zMm;
  t.ok(Math.abs(measuredMm - stepMm) < 0.1, `a step of ${measuredMm} mm`);
  near(t, numberIn(await text(page, '[data-value="distance"]')), apartMm, "distance");
  near(t, numberIn(await text(page, '[data-value="step"]')), measuredMm, "step");
  const angle = numberIn(await text(page, '.measured dt:text-is("Angle") + dd'));
  const expected = (Math.atan2(measuredMm, apartMm) * 180) / Math.PI;
  t.ok(Math.abs(angle - expected) < 0.0051, `angle ${angle}, expected ${expected}`);
}

/** Where the plot has its curve, at this part of its width. @returns pixels from the top of the page */
async function plottedAt({ page }: FrameView, part: number): Promise<number> {
  const plot = await page.locator(".u-over").boundingBox();
  if (plot === null) throw new Error("there is no plot");
  await page.mouse.move(plot.x + part * plot.width, plot.y + plot.height / 2);
  const mark = await page.locator(".u-cursor-pt").boundingBox();
  if (mark === null) throw new Error("the plot marks no point");
  return mark.y + mark.height / 2;
}
