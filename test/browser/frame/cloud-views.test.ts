import t, { type Test } from "tap";
import { IN_3D, inBrowser, openPage, startBrowser } from "../../helpers/browser/console-browser.js";
import { FrameCell, madeCapture, SMALL, withOutliers } from "../../helpers/browser/frame-cell.js";
import { cameraAfter, FrameView, isLit, pixelsPerMm, screenColours, share } from "../../helpers/browser/frame-view.js";
import { readPly } from "../../helpers/captures/ply-reader.js";

type Vertices = readonly number[][];

/** The middle of the frame, in mm. */
const MIDDLE = [-10 + 149.5 * SMALL.xPitchMm, 5 + 99.5 * SMALL.yPitchMm] as const;
/** Two columns, in few pixels: without a graphics card the processor draws each of them. */
const VIEWPORT = { width: 1_130, height: 600 };
/** The colour of points that the filter removed, and of those that it kept. */
const REMOVED = [255, 96, 64];
const KEPT = [112, 124, 134];

t.test("the views and colours of the cloud", inBrowser, async (t) => {
  const { service, cell } = await FrameCell.startFor(t);
  const { frameId } = await cell.take("SN-1", madeCapture(SMALL, withOutliers));
  const browser = await startBrowser(t, IN_3D);
  const url = `http://127.0.0.1:${service.port}/console/frames/${frameId}`;
  const page = await openPage(t, browser, url, { viewport: VIEWPORT });
  const view = new FrameView(page);
  const verticesOf = async (format: string): Promise<Vertices> =>
    readPly(await cell.bytes(`/sensor/frames/${frameId}/file.${format}`)).vertices;
  const [filtered, raw] = [await verticesOf("ply"), await verticesOf("raw.ply")];

  await t.test("buttons and keys show the cloud whole, from the front and from the side", (t) =>
    lookFromSides(t, view, frameId, filtered),
  );
  await t.test("arrow keys turn the cloud, with Shift they move it", (t) => moveCloud(t, view, frameId, filtered));
  await t.test("what the filter removed has a colour of its own", (t) => showRemoved(t, view, frameId, filtered, raw));
});

async function openCloud(view: FrameView, frameId: string, query: string): Promise<void> {
  await view.open(frameId, `view=cloud&${query}`);
  await view.page.waitForSelector(".cloud[data-points]");
  await view.untilDrawn();
  await view.page.locator(".cloud").focus();
}

async function lookFromSides(t: Test, view: FrameView, frameId: string, vertices: Vertices): Promise<void> {
  const { page } = view;
  await openCloud(view, frameId, "size=3");
  const press = (key: string) => cameraAfter(view, () => page.locator(".cloud").press(key));
  const click = (name: string) => cameraAfter(view, () => page.getByRole("button", { name, exact: true }).click());
  const opened = await strips(view);
  t.ok(share(opened.across, isLit) > 0.2 && share(opened.edges, isLit) === 0, "the page opens with all of the cloud");
  const { height } = await view.box();
  // One mm in the middle of the cloud.
  const scale = pixelsPerMm(vertices, height, 1.031, 1);
  let wholeMm = Number.NaN;
  for (const [name, show, direction] of [
    ["button Whole", () => click("Whole"), undefined],
    ["button Front", () => click("Front"), [0, -1, 0]],
    ["key 3", () => press("3"), [1, 0, 0]],
    ["key 2", () => press("2"), [0, -1, 0]],
    ["button Whole", () => click("Whole"), undefined],
  ] as const) {
    for (const key of ["+", "Shift+ArrowLeft", "ArrowDown"]) await press(key);
    const camera = await show();
    // The address can change before the picture does.
    await view.untilDrawn();
    const distanceMm = Math.hypot(...camera.slice(0, 3));
    wholeMm = Number.isNaN(wholeMm) ? distanceMm : wholeMm;
    t.ok(Math.abs(distanceMm / wholeMm - 1) < 0.001, `${name}: from as far away as all is seen`);
    t.same(camera.slice(3), [0, 0, 0], `${name}: at the middle`);
    if (direction === undefined) {
      t.same(await strips(view), opened, `${name}: as the page opens`);
    } else {
      const off = direction.map((part, axis) => Math.abs(part - (camera[axis] as number) / distanceMm));
      t.ok(Math.max(...off) < 0.001, `${name}: ${camera}`);
      const [low, high] = [await sideOf(view, scale, -1), await sideOf(view, scale, 1)];
      // From the front the step goes up to the right. From the side the upper half stands before the lower one.
      const expected = name === "key 3" ? ["both", "both"] : ["lower", "upper"];
      t.same([low, high], expected, `${name}: heights at the left and at the right`);
    }
  }
}

/** The colours of a line across the middle of the cloud's view, and of the lines at its edges. */
async function strips(view: FrameView): Promise<{ across: number[][]; edges: number[][] }> {
  const { x, y, width, height } = await view.box();
  const [left, top] = [Math.ceil(x) + 2, Math.ceil(y) + 2];
  const lying = { x: left, width: Math.floor(width) - 6, height: 2 };
  const standing = { y: top, width: 2, height: Math.floor(height) - 6 };
  const across = await screenColours(view.page, { ...lying, y: Math.round(y + height / 2) });
  const edges: number[][] = [];
  for (const clip of [
    { ...lying, y: top },
    { ...lying, y: top + standing.height },
    { ...standing, x: left },
    { ...standing, x: left + lying.width },
  ]) {
    edges.push(...(await screenColours(view.page, clip)));
  }
  return { across, edges };
}

/** Where points are seen, to the left (-1) or to the right (1): above the middle of the view, below it, or both. */
async function sideOf(view: FrameView, scale: number, side: -1 | 1): Promise<string> {
  const { x, y, width, height } = await view.box();
  const [middleX, middleY] = [x + width / 2, y + height / 2];
  // The surface is 1 mm above or below the middle: it is seen edge on.
  const isThere = async (upwards: -1 | 1): Promise<boolean> => {
    const centre = [middleX + side * 2 * scale, middleY - upwards * 1.05 * scale] as const;
    const clip = { x: centre[0] - 10, y: centre[1] - 0.2 * scale, width: 20, height: 0.4 * scale };
    return share(await screenColours(view.page, clip), isLit) > 0.2;
  };
  const [upper, lower] = [await isThere(1), await isThere(-1)];
  return upper && lower ? "both" : upper ? "upper" : lower ? "lower" : "nothing";
}

async function moveCloud(t: Test, view: FrameView, frameId: string, vertices: Vertices): Promise<void> {
  const { page } = view;
  await openCloud(view, frameId, "size=3");
  const press = (key: string) => cameraAfter(view, () => page.locator(".cloud").press(key));
  const { height } = await view.box();
  const movedMm = 80 / pixelsPerMm(vertices, height, 1.031, 1);
  for (const [key, right, up] of [
    ["ArrowLeft", -1, 0],
    ["ArrowRight", 1, 0],
    ["ArrowUp", 0, 1],
    ["ArrowDown", 0, -1],
  ] as const) {
    await press("1");
    const [, , , x = 0, y = 0] = await press(`Shift+${key}`);
    const off = Math.hypot(x - right * movedMm, y - up * movedMm);
    t.ok(off < 0.01, `Shift+${key} moves the view to ${x}, ${y}: by ${movedMm} mm`);
    const before = view.address().get("picks");
    await page.keyboard.press("p");
    await page.waitForURL((url) => url.searchParams.get("picks") !== before);
    const picked = vertices[Number(view.address().get("picks")?.split(",").at(-1))] as number[];
    // Lines count downwards on the screen.
    const expected = [MIDDLE[0] + right * movedMm, MIDDLE[1] - up * movedMm];
    const offPick = expected.map((value, axis) => Math.abs(value - (picked[axis] as number)));
    t.ok(Math.max(...offPick) < 0.3, `then ${picked} is in the middle, expected ${expected}`);
  }
  // By 7.5 degrees: to the right, and up.
  const turned = Math.sin(Math.PI / 24);
  for (const [key, axis, sign] of [
    ["ArrowRight", 0, 1],
    ["ArrowLeft", 0, -1],
    ["ArrowUp", 2, 1],
    ["ArrowDown", 2, -1],
  ] as const) {
    await press("2");
    const camera = await press(key);
    const part = (camera[axis] as number) / Math.hypot(...camera.slice(0, 3));
    t.ok(Math.abs(part - sign * turned) < 0.001, `${key} turns the camera to ${camera}`);
    t.same(camera.slice(3), [0, 0, 0], `${key}: it looks at the same place`);
  }
}

async function showRemoved(
  t: Test,
  view: FrameView,
  frameId: string,
  filtered: Vertices,
  raw: Vertices,
): Promise<void> {
  const { page } = view;
  await openCloud(view, frameId, "points=raw&size=5");
  await cameraAfter(view, () => page.locator(".cloud").press("1"));
  const box = await view.box();
  const clip = {
    x: Math.ceil(box.x),
    y: Math.ceil(box.y),
    width: Math.floor(box.width),
    height: Math.floor(box.height),
  };
  const isLike = (wanted: readonly number[]) => (colour: readonly number[] | undefined) =>
    wanted.every((value, at) => Math.abs(value - (colour?.[at] ?? Number.NaN)) <= 2);
  const counted = async () => {
    await view.untilDrawn();
    const colours = await screenColours(page, clip);
    return { colours, removed: colours.filter(isLike(REMOVED)).length, kept: colours.filter(isLike(KEPT)).length };
  };
  const byHeight = await counted();
  t.same([byHeight.removed, byHeight.kept], [0, 0], "coloured by height, no point has these colours");

  await page.getByLabel("Coloured by").selectOption("removed");
  await page.getByText(/The filter removed/).waitFor();
  const { colours, removed, kept } = await counted();
  const scale = pixelsPerMm(raw, box.height, 25, 1);
  const flying = raw.filter(([, , z = 0]) => z > 20);
  t.equal(flying.length, 30, "the frame was made with them");
  const uncoloured = flying.filter(([x = 0, y = 0]) => {
    const column = Math.floor(box.x + box.width / 2 + (x - MIDDLE[0]) * scale - clip.x);
    const line = Math.floor(box.y + box.height / 2 + (y - MIDDLE[1]) * scale - clip.y);
    return !isLike(REMOVED)(colours[line * clip.width + column]);
  });
  t.same(uncoloured, [], "the flying points have the colour");
  // A point has 5 x 5 pixels.
  t.ok(removed <= 25 * (raw.length - filtered.length), `${removed} pixels: no other points have it`);
  t.ok(kept > 30 * removed, `${kept} pixels show points that were kept`);

  await page.getByLabel("Coloured by").selectOption("height");
  await page.getByText(/^[\d,]+ points$/).waitFor();
  t.equal((await counted()).removed, 0, "by height again, they lose it");
}
