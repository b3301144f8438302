import t, { type Test } from "tap";
import type { Capture } from "../../../workers/demo-cell/steps/capture.js";
import { IN_3D, inBrowser, openPage, startBrowser } from "../../helpers/browser/console-browser.js";
import { FrameCell, madeCapture, SMALL, surface } from "../../helpers/browser/frame-cell.js";
import { cameraAfter, FrameView, isLit, pixelsPerMm, screenColours, share } from "../../helpers/browser/frame-view.js";
import { readPly } from "../../helpers/captures/ply-reader.js";
import { until } from "../../helpers/until.js";

/** All of the surface is above it, so it is yellow, as the chosen mark is. */
const YELLOW = "range=-2,-1";
const BOXES = [
  [30, 30, 50, 50],
  [200, 20, 220, 40],
  [60, 100, 80, 120],
  [200, 100, 240, 120],
  [60, 160, 90, 190],
];

t.test("what is beside and over the picture of a frame", inBrowser, async (t) => {
  const { service, cell } = await FrameCell.startFor(t);
  const { frameId } = await cell.take("SN-1", madeCapture(SMALL, surface), (id) =>
    BOXES.map((bbox, at) => ({
      ...{ type: `dent ${at + 1}`, severity: "minor", confidence: 0.9 },
      description: "dent of 0.25 mm by the feeder, across the upper edge of the face",
      region_2d: { file: `frame-${id}.png`, bbox },
    })),
  );
  const inFloats = await cell.take("SN-2", floatCapture());
  const browser = await startBrowser(t, IN_3D);
  const page = await openPage(t, browser, `http://127.0.0.1:${service.port}/console/frames/${frameId}`);
  const view = new FrameView(page);

  await t.test("the legend says which colour is which height", (t) => readLegend(t, view, frameId));
  await t.test("with Alt, a key means something only where the help says so", (t) => pressWithAlt(t, view, frameId));
  await t.test("a link with a place that no map can show is a map all the same", async () => {
    await view.open(frameId, "at=150,100,1e110");
    await view.untilPainted();
  });
  await t.test("all of five defects are in sight, in 3D before the settings", (t) => listDefects(t, view, frameId));
  await t.test("a defect that is gone to in 3D is in sight on the map", (t) => goFromCloud(t, view, frameId));
  await t.test("the chosen defect is seen where the surface has its colour", async (t) => {
    const { vertices } = readPly(await cell.bytes(`/sensor/frames/${frameId}/file.ply`));
    await seeChosen(t, view, frameId, vertices);
  });
  await t.test("the cloud is drawn again when the graphics come back", (t) => loseGraphics(t, view, frameId));
  await t.test("the page says what the run found, and in what the heights are stored", async () => {
    await view.open(frameId);
    await page.locator(".frame-head").getByText("Passed").waitFor();
    await page.locator(".facts").getByText("u16, 0.001 mm a step").waitFor();
    await view.open(inFloats.frameId);
    await page.locator(".facts").getByText("f32, mm", { exact: true }).waitFor();
  });
});

/** The same surface, in millimetres as 32-bit floats. */
function floatCapture(): Capture {
  const capture = madeCapture({ ...SMALL, hasLuminance: false }, surface);
  const heights = Float32Array.from({ length: SMALL.width * SMALL.lines }, (_, at) =>
    surface(at % SMALL.width, Math.floor(at / SMALL.width)),
  );
  const height = { dtype: "f32", scale_mm: 1, offset_mm: 0, invalid: [] } as const;
  return { ...capture, planes: { height: { ...height, invalid: [] } }, height: new Uint8Array(heights.buffer) };
}

async function readLegend(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await view.open(frameId, "range=-1,1.5");
  // They come later, and stand above it.
  await page.locator(".defects li").first().waitFor();
  const bar = page.getByRole("img", { name: "Colours from \u22121.000 to 1.500 mm, with a histogram" });
  const { x, y, width, height } = (await bar.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  const ticks = page.locator(".legend-ticks span");
  t.same(await ticks.allTextContents(), ["\u22121", "0", "1"]);
  for (const [at, part] of [0, 0.4, 0.8].entries()) {
    const tick = (await ticks.nth(at).boundingBox()) ?? { x: 0, width: 0 };
    const off = tick.x + tick.width / 2 - (x + part * width);
    t.ok(Math.abs(off) < 1, `tick ${at} is ${off} pixels beside its place on the bar`);
  }
  // The colours of viridis at these parts of it.
  for (const [part, ...expected] of [
    [0, 68, 1, 84],
    [0.4, 42, 120, 142],
    [0.8, 122, 209, 81],
  ] as const) {
    const clip = { x: Math.ceil(x + part * width), y: Math.floor(y + height) - 4, width: 1, height: 1 };
    const [colour = []] = await screenColours(page, clip);
    const off = Math.hypot(...expected.map((value, at) => value - (colour[at] ?? Number.NaN)));
    t.ok(off < 6, `the bar has the colour ${colour} there, viridis ${expected}`);
  }
}

/** What means nothing to the page is left to the browser: Alt and the left arrow go back. */
async function pressWithAlt(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  for (const [query, keys] of [
    ["view=height", ["+", "-", "0", "c", "Escape"]],
    ["view=cloud", ["ArrowLeft", "ArrowUp", "+", "-", "0", "1", "p"]],
  ] as const) {
    await view.open(frameId, query);
    await page.waitForSelector(query === "view=cloud" ? ".cloud[data-points]" : "canvas[data-painted]");
    const isLeft = (key: string, altKey: boolean) =>
      page.evaluate<boolean>(`document.querySelector(".map").dispatchEvent(
        new KeyboardEvent("keydown", { key: "${key}", altKey: ${altKey}, bubbles: true, cancelable: true }))`);
    for (const key of keys) {
      t.equal(await isLeft(key, true), true, `${query}: Alt and ${key}`);
      t.equal(await isLeft(key, false), false, `${query}: ${key}`);
    }
  }
}

async function listDefects(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await page.setViewportSize({ width: 1280, height: 800 });
  for (const name of ["height", "cloud"]) {
    await view.open(frameId, `view=${name}`);
    await page
      .locator(".defects li")
      .nth(BOXES.length - 1)
      .waitFor();
    const hidden = await page.$eval(".defects", (list) => list.scrollHeight - list.clientHeight);
    t.ok(hidden <= 0, `${name}: ${hidden} pixels of the list are not in sight`);
  }
  t.equal(await page.locator(".frame-side > *").first().getAttribute("aria-label"), "Defects");
  await page.getByLabel("Height is drawn").fill("2");
  // The browser scrolls a little later, and not at all while the page is shorter than the window.
  const isScrolled = async () => (await page.evaluate<number>("scrollY")) > 0;
  await until("the page scrolls", isScrolled, async () => {
    await page.mouse.wheel(0, 2_000);
    await view.untilDrawn();
  });
  const { y, height } = await view.box();
  t.ok(y >= 0 && y + height <= 800, `the cloud stays in sight while settings are changed: from ${y} to ${y + height}`);
  await page.evaluate("scrollTo(0, 0)");
  const last = (await page.locator(".defects li").last().boundingBox()) ?? { y: Number.NaN, height: 0 };
  t.ok(last.y + last.height <= 800, "nobody needs to scroll away from the cloud");
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function goFromCloud(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await view.open(frameId);
  await view.untilPainted();
  await page.getByRole("button", { name: "3D" }).click();
  await page.waitForSelector(".cloud[data-points]");
  await page.getByRole("button", { name: /dent 1/ }).click();
  await page.waitForURL(/defect=0/);
  await page.getByRole("button", { name: "Height", exact: true }).click();
  await view.untilPainted();
  const [u = 0, v = 0, zoom = 0] = view.address().get("at")?.split(",").map(Number) ?? [];
  // With twice its size around it, the defect is 100 points of 0.1 mm high.
  const { height } = await view.box();
  t.same([u, v], [40, 40]);
  t.ok(Math.abs(zoom / (height / 10) - 1) < 0.2, `${zoom} pixels a mm in a map ${height} pixels high`);
}

const isDark = (colour: readonly number[]): boolean => Math.max(...colour) < 100;

async function seeChosen(t: Test, view: FrameView, frameId: string, vertices: readonly number[][]): Promise<void> {
  const { page } = view;
  /** How many pixels are dark on a line from there to the right. */
  const darkFrom = async (x: number, y: number, width: number): Promise<number> => {
    const colours = await screenColours(page, { x: Math.round(x), y: Math.round(y), width, height: 1 });
    return colours.filter(isDark).length;
  };
  // A column has 2 pixels, a line 4.
  await view.open(frameId, `${YELLOW}&defect=0&at=40,40,40`);
  await view.untilPainted();
  await page.locator(".defects [aria-pressed=true]").waitFor();
  await view.untilDrawn();
  const map = await view.box();
  const left = map.x + Math.floor(map.width) / 2 - 20;
  const middle = map.y + Math.floor(map.height) / 2;
  const edge = await darkFrom(left - 10, middle, 20);
  t.ok(edge >= 4, `the edge of its box on the map has ${edge} dark pixels`);
  const label = await darkFrom(left - 8, middle - 40 - 9, 8);
  t.ok(label >= 1, `the edge of its number has ${label} dark pixels`);

  await view.open(frameId, `view=cloud&size=5&${YELLOW}&defect=0`);
  await page.waitForURL(/camera=/);
  await cameraAfter(view, () => page.locator(".cloud").press("1"));
  await view.untilDrawn();
  const cloud = await view.box();
  const scale = pixelsPerMm(vertices, cloud.height, 0.031, 1);
  const [columns, lines] = [30 - 0.5 - (SMALL.width - 1) / 2, 39.5 - (SMALL.lines - 1) / 2];
  const x = cloud.x + cloud.width / 2 + columns * SMALL.xPitchMm * scale;
  const y = cloud.y + cloud.height / 2 + lines * SMALL.yPitchMm * scale;
  const inCloud = await darkFrom(x - 10, y, 20);
  t.ok(inCloud >= 4, `the edge of its box in the cloud has ${inCloud} dark pixels`);
}

async function loseGraphics(t: Test, view: FrameView, frameId: string): Promise<void> {
  const { page } = view;
  await view.open(frameId, "view=cloud&size=5");
  await page.waitForSelector(".cloud[data-points]");
  await cameraAfter(view, () => page.locator(".cloud").press("1"));
  const { x, y, width, height } = await view.box();
  const clip = { x: Math.round(x + width / 2) - 20, y: Math.round(y + height / 2) - 20, width: 40, height: 40 };
  const shown = async () => share(await screenColours(page, clip), isLit);
  await view.untilDrawn();
  t.ok((await shown()) > 0.9);
  // The extension is kept, because nobody else gets it while the context is lost.
  await page.evaluate(`new Promise((done) => {
    const canvas = document.querySelector(".cloud canvas");
    window.graphics = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
    canvas.addEventListener("webglcontextlost", done, { once: true });
    window.graphics.loseContext();
  })`);
  await page.evaluate(`new Promise((done) => {
    document.querySelector(".cloud canvas").addEventListener("webglcontextrestored", done, { once: true });
    window.graphics.restoreContext();
  })`);
  await view.untilDrawn();
  t.ok((await shown()) > 0.9, "without a move of the camera");
}
