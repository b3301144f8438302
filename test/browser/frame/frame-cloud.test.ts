import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import {
  axeFindings,
  IN_3D,
  inBrowser,
  openPage,
  overflowPx,
  startBrowser,
  untilTrue,
} from "../../helpers/browser/console-browser.js";
import { bump, FrameCell, madeCapture, SMALL, surface, withOutliers } from "../../helpers/browser/frame-cell.js";
import {
  cameraAfter,
  colourAt,
  FrameView,
  isLit,
  near,
  numberIn,
  pixelsPerMm,
  screenColours,
  share,
  text,
} from "../../helpers/browser/frame-view.js";
import { readPly } from "../../helpers/captures/ply-reader.js";

const HOSTILE = `<img src=x onerror="window.attacked=1">\u2066\u202eevil`;
const LONG = "x".repeat(10_000);

t.test("the cloud of a frame, and two frames together", inBrowser, async (t) => {
  const { service, cell } = await FrameCell.startFor(t);
  const small = await cell.take("SN-1", madeCapture(SMALL, withOutliers), (frameId) => [
    {
      ...{ type: HOSTILE, description: LONG, region_2d: { file: `frame-${frameId}.png`, bbox: [30, 30, 50, 50] } },
      // Turned by 30 degrees about z.
      region_3d: {
        ...{ file: `frame-${frameId}.ply`, location: [-8.025, 8.95, 0.031], extents: [1, 2, 0.5] },
        orientation: [0, 0, Math.sin(Math.PI / 12), Math.cos(Math.PI / 12)],
      },
    },
    { type: "flat", region_2d: { file: `frame-${frameId}.png`, bbox: [200, 20, 220, 40] } },
  ]);
  const again = await cell.take("SN-1", madeCapture(SMALL, bump));
  const other = await cell.take("SN-2", madeCapture({ ...SMALL, width: 310, hasLuminance: false }, surface));
  const browser = await startBrowser(t, IN_3D);
  const url = `http://127.0.0.1:${service.port}/console/frames/${small.frameId}`;
  const page = await openPage(t, browser, url, {}, [/ERR_FAILED.*cloud-scene/]);
  const view = new FrameView(page);

  await t.test("two points of the cloud are as far apart as their coordinates", (t) =>
    pickPoints(t, view, cell, small.frameId),
  );

  const raw = await cell.bytes(`/sensor/frames/${small.frameId}/file.raw.ply`);
  await t.test("the cloud is turned, coloured and drawn as the controls say", (t) =>
    useControls(t, view, small.frameId, readPly(raw).vertices.length),
  );

  await t.test("the screen shows the points", (t) => lookAtPoints(t, view, small.frameId));

  await t.test("two frames side by side, and their difference", (t) =>
    compare(t, view, small.frameId, again.frameId, other.frameId),
  );

  await t.test("on a narrow screen all of the cloud is in view", (t) => fitNarrow(t, view, small.frameId));

  await t.test("it is usable without a mouse and on a narrow screen", async (t) => {
    const both = ["side", "difference"].map((name) => `view=${name}&with=${again.frameId}`);
    for (const query of ["cut=20,20,200,100", "view=luminance", "view=cloud", ...both]) {
      await view.open(small.frameId, query);
      await page.waitForSelector(query.includes("cloud") ? ".cloud[data-points]" : "canvas[data-painted]");
      await page.emulateMedia({ colorScheme: "dark" });
      t.same(await axeFindings(page, ["color-contrast"]), [], `${query}, dark`);
      await page.emulateMedia({ colorScheme: "light" });
      t.same(await axeFindings(page), [], `${query}, light`);
      t.equal(await page.locator(".defects bdi", { hasText: HOSTILE }).count(), 1, "what a producer writes is text");
      t.ok((await text(page, ".defects")).length < 1_000, "and is cut where nobody would read on");
      t.match(await text(page, ".defects b bdi"), /\u2066.*\u2069$/, "what it leaves open ends with it");
      for (const width of [320, 768, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        t.ok((await overflowPx(page)) <= 0, `${query}: ${width} pixels wide`);
      }
    }
  });
  t.equal(await page.evaluate("window.attacked"), undefined);
});

async function optionLike(page: Page, start: string): Promise<string | undefined> {
  await page.locator("option", { hasText: start }).first().waitFor({ state: "attached" });
  return (await page.locator("option").allTextContents()).find((name) => name.trim().startsWith(start));
}

/** A click on a defect moved the view there, and another click in the list does so again. @param place in the scene */
async function goTwice(t: Test, view: FrameView, place: readonly [x: number, y: number]): Promise<void> {
  const press = (key: string) => cameraAfter(view, () => view.page.locator(".cloud").press(key));
  const isThere = async (): Promise<boolean> => {
    const [, , , x = 0, y = 0] = await press("ArrowLeft");
    return Math.hypot(x - place[0], y - place[1]) < 0.3;
  };
  t.ok(await isThere());
  await press("1");
  t.notOk(await isThere(), "the view from above shows all");
  await view.page.locator(".defects button").first().click();
  await view.page.getByRole("button", { name: "all", exact: true }).click();
  await view.page.waitForURL(/range=/);
  t.ok(await isThere(), "other colours leave the camera where it is");
}

/** A link to a defect opens the cloud there. @param place in the scene */
async function openAtDefect(
  t: Test,
  view: FrameView,
  frameId: string,
  place: readonly [number, number],
): Promise<void> {
  await view.open(frameId, "view=cloud&defect=0");
  await view.page.waitForURL(/camera=/);
  const [, , , x = 0, y = 0] = view.address().get("camera")?.split(",").map(Number) ?? [];
  t.ok(Math.hypot(x - place[0], y - place[1]) < 0.3, `looks at ${x}, ${y}; the defect is at ${place}`);
}

/** The first picked point is behind the camera: the second one keeps its own name. */
async function nameInView(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await page.addInitScript(`window.written = new Set();
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
      window.written.add(text);
      return fillText.call(this, text, ...at);
    };`);
  await view.open(frameId, "view=cloud&picks=100,40000&camera=0,3,2,0,-5,0");
  await untilTrue(page, "window.written.has('P2')");
  t.equal(await page.evaluate("window.written.has('P1')"), false);
}

/** More runs exist than are listed, and the compared one is not listed. Then that frame alone, without luminance. */
async function beyondTheList(view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  const runs = /\/runs\?limit=100$/;
  await page.route(runs, (route) => route.fulfill({ json: { runs: [], total: 150, limit: 100, offset: 0 } }));
  await page.reload();
  await page.getByText("The newest 100 runs are listed.").waitFor();
  await page.locator("option:checked", { hasText: "SN-2, inspection 1" }).waitFor({ state: "attached" });
  await page.unroute(runs);
  await view.open(frameId, "view=cloud&colour=luminance");
  await page.getByText("This frame has no luminance.").waitFor();
}

async function useControls(t: Test, view: FrameView, frameId: string, rawPoints: number): Promise<void> {
  const { page } = view;
  // The service does not answer when the page asks for the code that draws in 3D.
  await page.route(/cloud-scene/, (route) => route.abort());
  await view.open(frameId, "view=cloud");
  const message = page.getByText("the service does not answer");
  await message.waitFor();
  await page.unroute(/cloud-scene/);
  await message.waitFor({ state: "detached" });
  await page.locator(".cloud-choices select").first().selectOption("raw");
  await page.waitForSelector(`.cloud[data-points="${rawPoints}"]`);
  await page.getByLabel("Coloured by").selectOption("luminance");
  await page.getByLabel("Point size").fill("5");
  await page.getByLabel("Height is drawn").fill("10");
  await page.waitForURL(/points=raw&colour=luminance&size=5&stretch=10/);
  const press = (name: string) => cameraAfter(view, () => page.getByRole("button", { name, exact: true }).click());
  const [sideX = 0, sideY = 0] = await press("Side");
  t.ok(Math.abs(sideX) > 10 * Math.abs(sideY), "it stands beside the cloud");
  const [x = 0, y = 0, z = 0] = await press("Top");
  t.ok(z > 10 * Math.hypot(x, y), "it stands above");
  // The buttons are further down: the page has scrolled to them.
  const box = await view.box();
  const middle = [box.x + box.width / 2, box.y + box.height / 2] as const;
  await page.mouse.click(...middle);
  await page.waitForURL(/picks=\d+(&|$)/);
  const turned = await cameraAfter(view, async () => {
    await page.mouse.move(...middle);
    await page.mouse.down();
    await page.mouse.move(middle[0] + 60, middle[1] - 80, { steps: 4 });
    await page.mouse.up();
  });
  t.ok(Math.hypot(turned[0] as number, turned[1] as number) > Math.abs(z) / 10, "a drag turns it");
  t.match(view.address().get("picks"), /^\d+$/, "and picks nothing");
}

async function fitNarrow(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await page.setViewportSize({ width: 390, height: 844 });
  await view.open(frameId, "view=cloud");
  await page.waitForSelector(".cloud[data-points]");
  await page.locator(".cloud").focus();
  const distanceAfter = async (key: string): Promise<number> => {
    const before = view.address().get("camera");
    await page.keyboard.press(key);
    await page.waitForURL((url) => url.searchParams.get("camera") !== before);
    return Math.hypot(...(view.address().get("camera") as string).split(",").slice(0, 3).map(Number));
  };
  // "+" goes one step nearer. "0" shows all again, from the distance at which the page opened.
  const opened = (await distanceAfter("+")) * 1.25;
  t.ok(Math.abs(opened / (await distanceAfter("0")) - 1) < 0.001);
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function pickPoints(t: Test, view: FrameView, cell: FrameCell, frameId: string): Promise<void> {
  const { page } = view;
  const filtered = readPly(await cell.bytes(`/sensor/frames/${frameId}/file.ply`)).vertices;
  const raw = readPly(await cell.bytes(`/sensor/frames/${frameId}/file.raw.ply`)).vertices;
  await view.open(frameId, "view=cloud&picks=100,40000&stretch=7");
  await page.waitForSelector("[data-pick='1']");
  const picked = [filtered[100], filtered[40_000]] as [number[], number[]];
  for (const [at, vertex] of picked.entries()) {
    const shown = (await page.locator(`[data-pick='${at}'] td`).allTextContents()).map(numberIn);
    for (const axis of [0, 1, 2]) near(t, shown[axis] as number, vertex[axis] as number, `P${at + 1} ${"xyz"[axis]}`);
  }
  const [a, b] = picked;
  const distance = Math.hypot(...[0, 1, 2].map((axis) => (b[axis] as number) - (a[axis] as number)));
  near(t, numberIn(await text(page, ".distance output")), distance, "distance, however z is drawn");
  const widthOf = async (selector: string) => (await page.locator(selector).boundingBox())?.width ?? Number.NaN;
  t.ok((await widthOf(".picked")) < (await widthOf(".panel:has(.picked)")), "the table stays in its panel");

  await page.waitForSelector(`.cloud[data-points="${filtered.length}"]`);
  await page.locator(".cloud").focus();
  // From above, the middle of the view is the middle of the cloud.
  await page.keyboard.press("1");
  for (const held of ["ctrlKey", "altKey"]) {
    const press = `new KeyboardEvent("keydown", { key: "p", ${held}: true, bubbles: true, cancelable: true })`;
    const isLeftToBrowser = await page.evaluate(`document.querySelector(".cloud").dispatchEvent(${press})`);
    t.equal(isLeftToBrowser, true, `P with ${held} is the browser's`);
    await view.untilDrawn();
    t.equal(await page.locator("[data-pick]").count(), 2, "and picks no third point, which would be alone");
  }
  await page.keyboard.press("P");
  await page.waitForURL(/picks=\d+(&|$)/);
  const [x, y] = filtered[Number(view.address().get("picks"))] as [number, number];
  const middle = [-10 + 149.5 * SMALL.xPitchMm, 5 + 99.5 * SMALL.yPitchMm] as const;
  t.ok(Math.abs(x - middle[0]) < 0.3 && Math.abs(y - middle[1]) < 0.3, `picked ${x}, ${y}; the middle is ${middle}`);
  await pickBeside(t, view, filtered);

  // The number of the defect stands 22 pixels above the middle of its box.
  const box = (await page.locator(".cloud").boundingBox()) as { x: number; y: number; width: number; height: number };
  const scale = pixelsPerMm(filtered, box.height, 0.031, 7);
  const defect = [-10 + 39.5 * SMALL.xPitchMm, 5 + 39.5 * SMALL.yPitchMm] as const;
  const offset = [(defect[0] - middle[0]) * scale, (defect[1] - middle[1]) * scale] as const;
  // The middle of an upper edge: 1 mm along the box's own y, and 0.25 mm up.
  const edge = [defect[0] - Math.sin(Math.PI / 6), defect[1] + Math.cos(Math.PI / 6)] as const;
  // And the middle of the upper left edge of the defect without a place in space, whose box covers its pixels.
  const flatEdge = [-10 + 199.5 * SMALL.xPitchMm, 5 + 29.5 * SMALL.yPitchMm] as const;
  for (const [[edgeX, edgeY], zMm] of [
    [edge, 0.281],
    [flatEdge, 2.062],
  ] as const) {
    const edgeScale = pixelsPerMm(filtered, box.height, zMm, 7);
    const overlayX = box.x + box.width / 2 + (edgeX - middle[0]) * edgeScale;
    const overlayY = box.y + box.height / 2 + (edgeY - middle[1]) * edgeScale;
    const colour = await colourAt(page, overlayX, overlayY, ".map canvas + canvas");
    t.ok(Math.min(...colour) > 150, `its box is drawn in white over the points: ${colour}`);
  }
  await page.mouse.click(box.x + box.width / 2 + offset[0], box.y + box.height / 2 + offset[1] - 22);
  await page.waitForURL(/defect=0/);
  const place = [defect[0] - middle[0], middle[1] - defect[1]] as const;
  await goTwice(t, view, place);
  await openAtDefect(t, view, frameId, place);

  await page.getByLabel("Coloured by").selectOption("removed");
  await page.getByText(/The filter removed/).waitFor();
  const count = numberIn((await text(page, ".note:has-text('The filter removed')")).replaceAll(",", ""));
  t.equal(count, raw.length - filtered.length);
  t.ok(count >= 20, "the flying points are among them");
  await nameInView(t, view, frameId);
}

/** One point is picked already, in the middle of the view. A second one is picked beside it, without the mouse. */
async function pickBeside(t: Test, view: FrameView, vertices: readonly number[][]): Promise<void> {
  const { page } = view;
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("p");
  await page.waitForURL(/picks=\d+(,|%2C)\d+/);
  const picks = view.address().get("picks")?.split(",").map(Number) ?? [];
  const [from, to] = picks.map((place) => vertices[place]) as [number[], number[]];
  const [x, y, z] = [0, 1, 2].map((axis) => (to[axis] as number) - (from[axis] as number)) as [number, number, number];
  const { height = 0 } = (await page.locator(".cloud").boundingBox()) ?? {};
  // 80 pixels, at the middle of all heights.
  const expected = 80 / pixelsPerMm(vertices, height, 1.031, 7);
  t.ok(Math.abs(x - expected) < 0.3 && Math.abs(y) < 0.3, `${x}, ${y} beside it; the key moves by ${expected} mm`);
  near(t, numberIn(await text(page, ".distance output")), Math.hypot(x, y, z), "distance");
  await cameraAfter(view, () => page.keyboard.press("1"));
}

/** From above, the left half is lower than the right one by 2 mm. */
async function lookAtPoints(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await view.open(frameId, "view=cloud&size=1");
  await page.waitForSelector(".cloud[data-points]");
  await cameraAfter(view, () => page.getByRole("button", { name: "Top", exact: true }).click());
  /** The colours at the left or at the right of the middle. The page scrolls to what is filled in. */
  const colours = async (side: "left" | "right"): Promise<number[][]> => {
    await view.untilDrawn();
    const { x, y, width, height } = await view.box();
    const [column, line] = [Math.round(x + width / 2), Math.round(y + height / 2)];
    return screenColours(page, { x: column + (side === "left" ? -60 : 20), y: line - 20, width: 40, height: 40 });
  };
  const small = share(await colours("left"), isLit);
  await page.getByLabel("Point size").fill("5");
  await page.waitForURL(/size=5/);
  const large = share(await colours("left"), isLit);
  t.ok(
    small > 0.1 && small < 0.9 && large > 0.99,
    `of the pixels ${small} show points of 1 px, ${large} those of 5 px`,
  );
  const isBlue = ([red = 0, , blue = 0]: readonly number[]) => blue > red + 10;
  const isYellow = ([red = 0, , blue = 0]: readonly number[]) => red > blue + 100;
  t.ok(share(await colours("left"), isBlue) > 0.99, "low points are blue");
  t.ok(share(await colours("right"), isYellow) > 0.99, "high ones yellow");
  await page.getByLabel("Coloured by").selectOption("luminance");
  await page.waitForURL(/colour=luminance/);
  const isGrey = (colour: readonly number[]) => Math.max(...colour) - Math.min(...colour) < 3;
  t.ok(share(await colours("right"), isGrey) > 0.99, "with luminance they are grey");
}

async function compare(t: Test, view: FrameView, small: string, again: string, other: string): Promise<void> {
  const { page } = view;
  await view.open(small, "view=difference");
  const choice = page.getByLabel("Another run of the program");
  await choice.selectOption({ label: (await optionLike(page, "SN-1, inspection 2")) as string });
  await page.waitForURL(new RegExp(`with=${again}`));
  await view.untilPainted();
  for (const [column, line, expected] of [
    [40, 40, 0.25],
    [200, 20, 0],
  ] as const) {
    await page.mouse.move(...(await view.screenPlace(SMALL, column, line)));
    await page.waitForSelector(`[data-value=column] dd:text-is("${column}")`);
    near(t, (await view.readout()).Δz as number, expected, "difference");
  }
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.locator("canvas[data-painted]").nth(1).waitFor();
  await choice.selectOption({ label: (await optionLike(page, "SN-2, inspection 1")) as string });
  await page.waitForURL(new RegExp(`with=${other}`));
  await page.getByRole("button", { name: "Difference" }).click();
  await page.getByText("this frame has 300 points a line, the other 310.").first().waitFor();
  await page.getByText("Heights of that run minus those of this one.").waitFor();
  await beyondTheList(view, other);
}
