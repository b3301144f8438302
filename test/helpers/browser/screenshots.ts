/** `npm run screenshots`: a picture of each page of the console, of a demo cell that has shown all its scenes. */
import { copyFileSync, mkdirSync, statSync } from "node:fs";
import { chromium, type Page, type Request } from "playwright-core";
import { SCENES } from "../../../workers/demo-cell/scenes.js";
import { QUICK_CELL } from "../process/demo-results.js";
import { ServiceProcess } from "../process/service-process.js";
import { CHROMIUM, IN_3D } from "./console-browser.js";

const FOLDER = "dist/screenshots";
/** Beside the console's README: README.md shows them. */
const KEPT = ["now", "frame"];
const KEPT_FOLDER = "http/console";
const KEPT_LIMIT_BYTES = 200_000;
/** A page that has asked for nothing so long has all its pictures. */
const QUIET_MS = 300;

const SIZE = { width: 1280, height: 800 };
/** Measured heights hardly compress, and the pictures in README.md should load fast. */
const KEPT_SIZE = { width: 1200, height: 700 };

interface Listed {
  runs: { id: string; program_id: string; program_name: string; serial_number: string; revision: number }[];
}

if (CHROMIUM === undefined) throw new Error("no Chromium: `apt-get install chromium`, or set TEST_CHROMIUM");
const service = await ServiceProcess.start({ args: ["demo", "--seed", "7"], environment: QUICK_CELL });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", ...IN_3D] });
try {
  await service.untilStdout(new RegExp(`^run +${SCENES.length} `, "m"));
  const base = `http://127.0.0.1:${service.port}`;
  const get = async <Shape>(path: string) => (await (await fetch(base + path)).json()) as Shape;
  const { runs } = await get<Listed>("/runs?limit=100");
  const shown = await withDefects(runs, get);
  const webhooks = await get<{ id: string }[]>("/webhooks");
  const again = runs.find(({ revision }) => revision > 1);
  const pages: Record<string, string> = {
    now: "/",
    runs: "/console/runs",
    "side-by-side": `/console/runs?serial_number=${again?.serial_number}`,
    run: `/console/runs/${shown.id}`,
    frame: `/console/frames/${shown.frameId}`,
    programs: "/console/programs",
    program: `/console/programs/${shown.programId}`,
    webhooks: "/console/webhooks",
    webhook: `/console/webhooks/${webhooks.at(-1)?.id}`,
    system: "/console/system",
  };
  mkdirSync(FOLDER, { recursive: true });
  const context = await browser.newContext({
    viewport: SIZE,
    locale: "en-GB",
    timezoneId: "UTC",
  });
  const page = await context.newPage();
  const untilQuiet = quietOf(page);
  for (const [name, path] of Object.entries(pages)) {
    await page.setViewportSize(KEPT.includes(name) ? KEPT_SIZE : SIZE);
    await page.goto(base + path);
    await untilQuiet();
    // Between two parts the cell rests for a moment.
    if (name === "now") await page.locator(".now-active").waitFor();
    await page.screenshot({ path: `${FOLDER}/${name}.png` });
  }
  for (const name of KEPT) {
    const { size } = statSync(`${FOLDER}/${name}.png`);
    if (size > KEPT_LIMIT_BYTES) throw new Error(`${name}.png has ${size} bytes, and may have ${KEPT_LIMIT_BYTES}`);
    copyFileSync(`${FOLDER}/${name}.png`, `${KEPT_FOLDER}/${name}.png`);
  }
  console.log(`${Object.keys(pages).length} pictures in ${FOLDER}, ${KEPT.join(" and ")} in ${KEPT_FOLDER}`);
} finally {
  await browser.close();
  await service.dispose();
}

/** Waits until the page has no request under way but the stream of changes, and has made none for `QUIET_MS`. */
function quietOf(page: Page): () => Promise<void> {
  const underWay = new Set<Request>();
  let lastMs = 0;
  const ended = (request: Request): void => {
    if (underWay.delete(request)) lastMs = performance.now();
  };
  page.on("request", (request) => {
    if (!request.url().includes("/runs/changes")) underWay.add(request);
  });
  page.on("requestfinished", ended);
  page.on("requestfailed", ended);
  return async () => {
    lastMs = performance.now();
    while (underWay.size > 0 || performance.now() - lastMs < QUIET_MS) await page.waitForTimeout(100);
  };
}

/** The run of a housing cover with the most defects on its frame. */
async function withDefects(runs: Listed["runs"], get: <Shape>(path: string) => Promise<Shape>) {
  const found: { id: string; programId: string; frameId: string; placed: number }[] = [];
  for (const { id, program_id: programId, program_name: name } of runs) {
    if (!name.startsWith("Housing")) continue;
    const { defects } = await get<{ defects: { region_3d?: object | null }[] }>(`/runs/${id}/defects`);
    const { results } = await get<{ results: { frame_ids: string[] } }>(`/runs/${id}`);
    const [frameId] = results.frame_ids;
    const placed = defects.filter(({ region_3d: region }) => region).length;
    if (frameId !== undefined) found.push({ id, programId, frameId, placed });
  }
  const [best] = found.sort((a, b) => b.placed - a.placed);
  if (best === undefined) throw new Error("no run has a frame");
  return best;
}
