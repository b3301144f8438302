import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import t, { type Test } from "tap";
import { IN_3D, inBrowser, openPage, startBrowser, untilTrue } from "../../helpers/browser/console-browser.js";
import { FrameCell, madeCapture, type TakenFrame } from "../../helpers/browser/frame-cell.js";
import { FrameView } from "../../helpers/browser/frame-view.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";

const SIZE = { width: 120, lines: 80, hasLuminance: false };
const UNKNOWN = "01900000-0000-7000-8000-00000000dead";

/** These pages are about refused answers: those of this frame, and no others. */
function refused(frameId: string, answer: string, paths: string): RegExp {
  return new RegExp(`^Failed to load resource: .*${answer}.* \\(/sensor/frames/${frameId}${paths}\\)$`);
}
const HEIGHTS = "/(?:file|overview)\\.npy";

/** The file that holds the captures of a run, with bytes in its middle turned over. */
function damageCapture(dataDirectory: string, runId: string): void {
  const folder = join(dataDirectory, "captures");
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.includes(runId));
  for (const name of names) {
    const path = join(folder, name);
    const bytes = readFileSync(path);
    // In each 32nd of the file: pictures stand in it in the order in which they were made.
    const step = Math.ceil(bytes.length / 32);
    for (let at = step - 1; at < bytes.length; at += step) bytes[at] = (bytes[at] as number) ^ 0xff;
    writeFileSync(path, bytes);
  }
  if (names.length === 0) throw new Error(`no capture file of ${runId}`);
}

t.test("a frame that cannot be shown says why", inBrowser, async (t) => {
  const { service: first, cell } = await FrameCell.startFor(t);
  const wave = madeCapture(SIZE, (column, line) => Math.sin(column / 9) + line / 50);
  const damaged = await cell.take("SN-DAMAGED", wave);
  const empty = await cell.take(
    "SN-EMPTY",
    madeCapture(SIZE, () => Number.NaN),
  );
  const unfinished = await cell.breakOff(wave);
  const browser = await startBrowser(t, IN_3D);
  await followRun(t, browser, first, cell).finally(() => cell.close());
  /** @param expected what the browser's log may tell */
  const shown = async (
    service: ServiceProcess,
    frameId: string,
    expected: RegExp[],
    query = "",
    link?: string,
  ): Promise<string> => {
    const url = `http://127.0.0.1:${service.port}/console/frames/${frameId}${query}`;
    const page = await openPage(t, browser, url, {}, expected);
    const text = await new FrameView(page).alert();
    if (link !== undefined) await page.locator(`main a[href="${link}"]`).waitFor();
    await page.context().close();
    return text;
  };

  const unknown = [refused(UNKNOWN, "404", `(?:${HEIGHTS})?`)];
  t.match(await shown(first, UNKNOWN, unknown, "", "runs"), "There is no frame with this id.");
  const unmade = [refused(unfinished, "404", HEIGHTS)];
  t.match(
    await shown(first, unfinished, unmade),
    "This frame has no heights: it was not finished, or it could not be made.",
  );
  t.match(await shown(first, empty.frameId, []), "No point of this frame was measured");
  t.match(await shown(first, empty.frameId, [], "?view=cloud"), /cloud .*has no points|could not be made/);
  await withoutLuminance(t, browser, first, damaged.frameId);
  await withoutHeights(t, browser, first, empty);
  await previewShape(t, browser, first, damaged.runId);
  await manyPreviews(t, browser, first, damaged);
  await compareInVain(t, browser, first, damaged, empty);
  await followScheme(t, browser, first, damaged.frameId);
  await first.end();

  damageCapture(first.dataDirectory, damaged.runId);
  const second = await ServiceProcess.startFor(t, { dataDirectory: first.dataDirectory });
  const broken = [refused(damaged.frameId, "(?:500|ERR_)", HEIGHTS)];
  t.match(await shown(second, damaged.frameId, broken), /damaged/);
  const beside = `?view=difference&with=${damaged.frameId}`;
  t.match(await shown(second, empty.frameId, broken, beside), /^The other frame cannot be shown\. .*data are damaged/);
  await damagedPreview(t, browser, second, damaged);
  await second.end();

  const retention = ["serve", "--retain-bytes", "1"];
  const third = await ServiceProcess.startFor(t, { dataDirectory: first.dataDirectory, args: retention });
  await untilRemoved(third, empty.runId);
  const removed = [refused(empty.frameId, "404", HEIGHTS)];
  const removal = await shown(third, empty.frameId, removed, "", `runs/${empty.runId}`);
  t.match(removal, "Retention removed this capture at ");
});

/** The page is opened while the run goes on. */
async function followRun(t: Test, browser: Browser, service: ServiceProcess, cell: FrameCell): Promise<void> {
  const flat = madeCapture(SIZE, () => 1);
  const { runId, frameId } = await cell.begin("SN-OPEN", flat);
  const url = `http://127.0.0.1:${service.port}/console/frames/${frameId}?view=difference`;
  const page = await openPage(t, browser, url);
  await page.getByText("The run has no defect that lies in this frame.").waitFor();
  await page.getByRole("heading", { name: "Frame of step 1" }).waitFor();
  await cell.say("step.finish", { run_id: runId, index: 1, status: "completed", result: { frame_id: frameId } });
  await page.getByRole("heading", { name: "Scan face" }).waitFor();
  const defect = { type: "dent", region_2d: { file: `frame-${frameId}.png`, bbox: [10, 10, 20, 20] } };
  await cell.say("defect.add", { run_id: runId, defect });
  await page.getByRole("button", { name: "dent" }).waitFor();
  await cell.take("SN-LATER", flat);
  await page.locator("option", { hasText: "SN-LATER" }).waitFor({ state: "attached" });
  await cell.say("run.finish", { id: runId });
  await page.context().close();
}

async function untilRemoved(service: ServiceProcess, runId: string): Promise<void> {
  await until("a file is removed", async () => {
    const response = await fetch(`http://127.0.0.1:${service.port}/runs/${runId}/files`);
    const files = (await response.json()) as { deleted_at: string | null }[];
    return files.some(({ deleted_at: at }) => at !== null);
  });
}

async function withoutHeights(
  t: Test,
  browser: Browser,
  service: ServiceProcess,
  { frameId, runId }: TakenFrame,
): Promise<void> {
  const base = `http://127.0.0.1:${service.port}/console`;
  const page = await openPage(t, browser, `${base}/frames/${frameId}?cut=10,10,50,50`);
  await page.getByText("No point on this line was measured.").waitFor();
  await page.goto(`${base}/runs/${runId}`);
  await page.getByText("Nothing was measured").waitFor();
  await page.context().close();
}

async function damagedPreview(
  t: Test,
  browser: Browser,
  service: ServiceProcess,
  { runId, frameId }: TakenFrame,
): Promise<void> {
  const url = `http://127.0.0.1:${service.port}`;
  for (const path of ["/", `/console/runs/${runId}`]) {
    const page = await openPage(t, browser, url + path, {}, [refused(frameId, "500", "/preview\\.png")]);
    await page.locator("li a .preview", { hasText: "Damaged: no picture" }).waitFor();
    await page.context().close();
  }
}

/** In mm it is 6 wide and 8 high, in points 120 and 80. */
async function previewShape(t: Test, browser: Browser, service: ServiceProcess, runId: string): Promise<void> {
  const page = await openPage(t, browser, `http://127.0.0.1:${service.port}/console/runs/${runId}`);
  const picture = page.locator(".preview img");
  await picture.waitFor();
  await untilTrue(page, "document.querySelector('.preview img').naturalWidth > 0");
  const { width = 0, height = 0 } = (await picture.boundingBox()) ?? {};
  t.ok(Math.abs(width / height - 0.75) < 0.02, `${width} x ${height}`);
  const { width: fieldWidth = 0, height: fieldHeight = 0 } = (await page.locator(".preview").boundingBox()) ?? {};
  t.ok(width <= fieldWidth && Math.abs(height - fieldHeight) < 1, "it fills its field");
  await page.context().close();
}

/** More pictures than are kept: each that is shown can be drawn again, and what is not shown takes no memory. */
async function manyPreviews(
  t: Test,
  browser: Browser,
  service: ServiceProcess,
  { runId, frameId }: TakenFrame,
): Promise<void> {
  const base = `http://127.0.0.1:${service.port}`;
  const page = await openPage(t, browser, `${base}/console/runs`, {}, [/ERR_FILE_NOT_FOUND/]);
  const run = (await (await fetch(`${base}/runs/${runId}`)).json()) as { results: object; files: object[] };
  const png = Buffer.from(await (await fetch(`${base}/sensor/frames/${frameId}/preview.png`)).arrayBuffer());
  const ids = Array.from({ length: 210 }, (_, at) => `made-${at}`);
  const files = ids.map((id) => ({ ...run.files[0], name: `frame-${id}.png`, frame_id: id }));
  const json = { ...run, files, results: { ...run.results, frame_ids: ids } };
  await page.route(new RegExp(`/runs/${runId}$`), (route) =>
    route.request().resourceType() === "document" ? route.continue() : route.fulfill({ json }),
  );
  await page.route(/preview\.png$/, (route) => route.fulfill({ body: png, contentType: "image/png" }));
  await page.setViewportSize({ width: 1280, height: 24_000 });
  await page.goto(`/console/runs/${runId}`);
  await page.locator(".frame-list li").nth(209).waitFor();
  await page.evaluate("document.querySelector('.frame-list').style.maxHeight = 'none'");
  const pictures = "[...document.querySelectorAll('.preview img')]";
  await untilTrue(page, `${pictures}.filter((image) => image.complete && image.naturalWidth > 0).length === 210`);
  const url = await page.evaluate<string>(`${pictures}[0].src`);
  const isThere = () =>
    page.evaluate<boolean>(`new Promise((resolve) => {
      const image = new Image();
      image.onload = () => resolve(true);
      image.onerror = () => resolve(false);
      image.src = ${JSON.stringify(url)};
    })`);
  t.equal(await isThere(), true);
  await page.getByRole("link", { name: "System" }).click();
  await page.getByText("dispatcher").first().waitFor();
  // The browser lets go of it a little later than it is told to.
  await until("the browser lets go of it", async () => !(await isThere()));
  await page.context().close();
}

/** What the panel says when the other run, its frame, or the list cannot be read. */
async function compareInVain(
  t: Test,
  browser: Browser,
  service: ServiceProcess,
  here: TakenFrame,
  other: TakenFrame,
): Promise<void> {
  const url = `http://127.0.0.1:${service.port}/console/frames/${here.frameId}?view=difference`;
  const page = await openPage(t, browser, url, {}, [/ERR_FAILED/, /404/]);
  const panel = page.getByRole("region", { name: "Comparison" });
  const choice = page.getByLabel("Another run of the program");
  const name = panel.locator("option", { hasText: "SN-EMPTY" });
  await name.waitFor({ state: "attached" });
  const label = (await name.textContent()) ?? "";
  const run = new RegExp(`/runs/${other.runId}$`);
  const refusal = { code: "run_not_found", message: "no such run", params: {}, retryable: false };
  await page.route(run, (route) => route.abort());
  await choice.selectOption({ label });
  await panel.getByText("The service does not answer.").waitFor();
  await page.unroute(run);
  await page.route(run, (route) => route.fulfill({ status: 404, json: refusal }));
  await choice.selectOption("");
  await choice.selectOption({ label });
  await panel.getByText("There is no run with this id.").waitFor();
  await page.unroute(run);

  // Retention removes the other capture between the list and the choice.
  const absent = { code: "format_not_available", message: "no npy", params: {}, retryable: false };
  await page.route(new RegExp(`${other.frameId}${HEIGHTS}`), (route) => route.fulfill({ status: 404, json: absent }));
  await page.route(new RegExp(`/runs/${other.runId}/files$`), async (route) => {
    const files = (await (await route.fetch()).json()) as object[];
    await route.fulfill({ json: files.map((file) => ({ ...file, deleted_at: "2026-11-20T10:00:00Z" })) });
  });
  await choice.selectOption("");
  await choice.selectOption({ label });
  const removal = /^The other frame cannot be shown\. Retention removed this capture at/;
  await panel.getByText(removal).waitFor();
  await page.locator(".map").getByText(removal).waitFor();

  const list = /\/programs\/.*\/runs\?/;
  await page.route(list, (route) => route.abort());
  await page.goto(`/console/frames/${here.frameId}?view=side`);
  await panel.getByText("The service does not answer.").waitFor();
  await page.context().close();
}

/** The system turns to dark in the evening: what is drawn on a canvas follows. */
async function followScheme(t: Test, browser: Browser, service: ServiceProcess, frameId: string): Promise<void> {
  const url = `http://127.0.0.1:${service.port}/console/frames/${frameId}?cut=10,10,50,50`;
  const page = await openPage(t, browser, url);
  await page.waitForSelector(".profile-plot canvas");
  const drawn = (selector: string) => `(() => {
    const canvas = document.querySelector("${selector}");
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const [red, green, blue] = getComputedStyle(document.querySelector(".legend-bar")).color.match(/\\d+/g).map(Number);
    for (let at = 0; at < data.length; at += 4) {
      if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) return true;
    }
    return false;
  })()`;
  for (const colorScheme of ["light", "dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    // Bars and axes have the colour of soft ink.
    for (const selector of [".legend-bar", ".profile-plot canvas"]) await untilTrue(page, drawn(selector));
  }
  await page.context().close();
}

async function withoutLuminance(t: Test, browser: Browser, service: ServiceProcess, frameId: string): Promise<void> {
  const url = `http://127.0.0.1:${service.port}/console/frames/${frameId}?view=luminance`;
  const page = await openPage(t, browser, url);
  await page.getByText("This frame has no luminance.").waitFor();
  t.ok(await page.getByRole("button", { name: "Luminance" }).isDisabled());
  await page.context().close();
}
