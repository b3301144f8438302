import type { Page } from "playwright-core";
import type { Test } from "tap";

/** A length on the page as a number: it has a true minus sign, and a unit. NaN if there is none. */
export function numberIn(text: string): number {
  const match = /-?\d[\d.]*/.exec(text.replaceAll("\u2212", "-").replaceAll("\u2009", ""));
  return match === null ? Number.NaN : Number(match[0]);
}

/** What the page of a frame shows. */
export class FrameView {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  /** Goes to the address of a frame, without loading the page anew if it is there. */
  async open(frameId: string, query = ""): Promise<void> {
    await this.page.goto(`/console/frames/${frameId}${query === "" ? "" : `?${query}`}`);
  }

  async untilPainted(): Promise<void> {
    await this.page.waitForSelector("canvas[data-painted]");
  }

  /** Loads the page anew. @returns how long it took until the map was on the screen */
  async reloadMs(): Promise<number> {
    await this.page.reload();
    await this.untilPainted();
    return this.page.evaluate<number>('performance.getEntriesByName("frame-painted")[0].startTime');
  }

  /** Where a point of the frame is on the screen when the map shows all of it. Fails like the page, if that is wrong. */
  async screenPlace(
    frame: { width: number; lines: number; xPitchMm: number; yPitchMm: number },
    column: number,
    line: number,
  ): Promise<[x: number, y: number]> {
    const box = await this.box();
    const margin = 12;
    const [widthMm, heightMm] = [frame.width * frame.xPitchMm, frame.lines * frame.yPitchMm];
    const [width, height] = [Math.floor(box.width), Math.floor(box.height)];
    const scale = Math.min((width - 2 * margin) / widthMm, (height - 2 * margin) / heightMm);
    const x = ((column + 0.5) * frame.xPitchMm - widthMm / 2) * scale + width / 2;
    const y = ((line + 0.5) * frame.yPitchMm - heightMm / 2) * scale + height / 2;
    return [box.x + x, box.y + y];
  }

  /** Where the map or the cloud is on the screen. */
  async box(): Promise<{ x: number; y: number; width: number; height: number }> {
    const box = await this.page.locator(".map").first().boundingBox();
    if (box === null) throw new Error("there is no map");
    return box;
  }

  /** Waits until the page has drawn what has changed: it draws at the screen's next refresh. */
  async untilDrawn(): Promise<void> {
    await this.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  }

  /** The values that are read out, by their names; without those that are not numbers. */
  async readout(): Promise<Record<string, number>> {
    const texts = await this.page.$$eval(
      ".readout [data-value]",
      (items: { getAttribute(name: string): string | null; textContent: string | null }[]) =>
        items.map((item) => [item.getAttribute("data-value") ?? "", item.textContent ?? ""] as const),
    );
    return Object.fromEntries(texts.map(([name, text]) => [name, numberIn(text.slice(name.length))]));
  }

  /** Waits until the point that is read out is of full resolution. */
  async untilExact(): Promise<void> {
    await this.page.waitForSelector('.readout [data-exact="true"]');
  }

  async alert(): Promise<string> {
    return (await this.page.locator("main [role=alert]").first().textContent()) ?? "";
  }

  address(): URLSearchParams {
    return new URL(this.page.url()).searchParams;
  }
}

/** Shown with three decimals at least. */
export function near(t: Pick<Test, "ok">, value: number | undefined, expected: number, what: string): void {
  t.ok(Math.abs((value ?? Number.NaN) - expected) <= 0.00051, `${what}: ${value}, expected ${expected}`);
}

export async function text(page: Page, selector: string): Promise<string> {
  return (await page.locator(selector).first().textContent()) ?? "";
}

/** Red, green and blue of the map there. */
export async function colourAt(page: Page, x: number, y: number, canvas = ".map canvas"): Promise<number[]> {
  return page.evaluate<number[]>(`(() => {
    const canvas = document.querySelector("${canvas}");
    const box = canvas.getBoundingClientRect();
    const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, box.left - ${x}, box.top - ${y});
    return [...context.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
  })()`);
}

/** Whether the map is grey there. */
export async function isGreyAt(page: Page, x: number, y: number): Promise<boolean> {
  const colour = await colourAt(page, x, y);
  return Math.max(...colour) - Math.min(...colour) < 20;
}

/** Red, green and blue of each pixel of a field of the screen, line by line. A 3D canvas cannot be read otherwise. */
export async function screenColours(
  page: Page,
  clip: { x: number; y: number; width: number; height: number },
): Promise<number[][]> {
  const png = (await page.screenshot({ clip })).toString("base64");
  // As text: the browser would send so many arrays one by one.
  const colours = await page.evaluate<string>(`(async () => {
    const bytes = Uint8Array.from(atob("${png}"), (one) => one.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    return JSON.stringify(Array.from({ length: data.length / 4 }, (_, at) => [...data.subarray(4 * at, 4 * at + 3)]));
  })()`);
  return JSON.parse(colours) as number[][];
}

/** Whether the cloud has a point there: its background is nearly black. */
export const isLit = ([red = 0, green = 0, blue = 0]: readonly number[]): boolean =>
  Math.hypot(red - 20, green - 24, blue - 27) > 5;

/** The share of the colours that are so. */
export const share = (colours: readonly number[][], isSo: (colour: readonly number[]) => boolean): number =>
  colours.filter(isSo).length / colours.length;

/** Position and target of the camera after `what` has moved it. */
export async function cameraAfter(view: FrameView, what: () => Promise<void>): Promise<number[]> {
  const before = view.address().get("camera");
  await what();
  await view.page.waitForURL((url) => ![null, before].includes(url.searchParams.get("camera")));
  return (view.address().get("camera") as string).split(",").map(Number);
}

/**
 * The scale from above at a height, with z drawn `stretch` times: 32 degrees show 0.85 of a ball around the points.
 */
export function pixelsPerMm(vertices: readonly number[][], heightPixels: number, zMm: number, stretch: number): number {
  const bounds = [0, 1, 2].map((axis) => {
    const values = vertices.map((vertex) => vertex[axis] as number);
    return [Math.min(...values), Math.max(...values)] as const;
  });
  const [x, y, z] = bounds.map(([least, most]) => most - least) as [number, number, number];
  const middle = (bounds[2] as readonly [number, number]).reduce((sum, value) => sum + value / 2, 0);
  const halfAngle = (16 * Math.PI) / 180;
  const distance = (0.85 * Math.hypot(x, y, stretch * z)) / 2 / Math.sin(halfAngle);
  return heightPixels / 2 / (Math.tan(halfAngle) * (distance - stretch * (zMm - middle)));
}
