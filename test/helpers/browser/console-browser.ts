import { existsSync } from "node:fs";
import axe from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Test } from "tap";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const CHROMIUM = process.env.TEST_CHROMIUM ?? PLACES.find((path) => existsSync(path));

/** Options of a test that needs a browser: it says that it skips where there is none. */
export const inBrowser = {
  skip: CHROMIUM === undefined ? "no Chromium: `apt-get install chromium`, or set TEST_CHROMIUM" : false,
  timeout: 240_000,
};

/** Draws in 3D on the processor: a machine that tests need not have a graphics card. */
export const IN_3D = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"];

/** How long the page may take for what it is expected to do. A page that does it later is wrong, not slow. */
const WAIT_MS = 60_000;

/** The page of what is at `path`, such as `/console/runs`. The test's end closes it. */
export type OpenPage = (t: Test, path: string, options?: BrowserContextOptions) => Promise<Page>;

/** One browser for a file of tests. @param more arguments of Chromium, such as `IN_3D` */
export async function startBrowser(t: Test, more: readonly string[] = []): Promise<Browser> {
  // Chromium's sandbox needs rights that a container, and root, do not have.
  const args = ["--no-sandbox", ...more];
  const browser = await chromium.launch({ executablePath: CHROMIUM as string, args });
  t.teardown(() => browser.close());
  return browser;
}

/**
 * Opens a page in a session of its own until the test ends. The test fails if there were errors in the browser's log, exceptions, or requests
 * to elsewhere. `page.goto` takes paths of the same origin, too.
 * @param expected errors in the browser's log that belong to the test
 */
export async function openPage(
  t: Test,
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  expected: readonly RegExp[] = [],
): Promise<Page> {
  const context = await browser.newContext({
    baseURL: url,
    viewport: { width: 1280, height: 900 },
    acceptDownloads: true,
    ...options,
  });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const faults: string[] = [];
  t.teardown(async () => {
    await context.close();
    if (faults.length === 0) return;
    // An error here would leave out what else ends with the test: then its service runs on.
    console.error(`${url}: ${faults.join("\n")}`);
    process.exitCode = 1;
  });
  const { host } = new URL(url);
  page.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    const text = `${message.text()} (${new URL(message.location().url || url).pathname})`;
    if (!expected.some((pattern) => pattern.test(text))) faults.push(text);
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (target.protocol !== "blob:" && target.host !== host) faults.push(`a request to ${target.href}`);
  });
  await page.goto(url);
  return page;
}

/**
 * Opens another page, and waits until it has read each of these twice: when it opens, and when it hears the first mark. After that, only
 * a change makes it read again. The mark is held back until the first read is over.
 */
export async function openSettled(page: Page, path: string, ...read: readonly RegExp[]): Promise<void> {
  const areRead = (times: number) =>
    read.map((one) => {
      let answers = 0;
      return page.waitForResponse((response) => one.test(response.url()) && ++answers === times);
    });
  const once = Promise.all(areRead(1));
  const twice = Promise.all(areRead(2));
  const changes = /\/runs\/changes\?/;
  await page.route(changes, (route) => once.then(() => route.continue()));
  await page.goto(path);
  await twice;
  await page.unroute(changes);
}

export const isLive = (page: Page): Promise<void> => page.locator(".live").getByText("Live", { exact: true }).waitFor();

export async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));`);
}

/** What axe-core finds on the page, each with the element. @param rules default: all */
export async function axeFindings(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Not by a <script>, which the policy of the page would refuse; and once, since the browser takes half a second to read it.
  if (await page.evaluate<boolean>("!('axe' in window)")) await page.evaluate(axe.source);
  const options = { resultTypes: ["violations"], ...(rules !== undefined && { runOnly: rules }) };
  return page.evaluate<string[]>(
    `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
       violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + ": " + target.join(" ") + " " + failureSummary)))`,
  );
}

/** Resolves when a JavaScript expression is true in the page. The page's policy forbids the eval that `page.waitForFunction` needs. */
export async function untilTrue(page: Page, expression: string): Promise<void> {
  const look = `new Promise((resolve) => {
    const look = () => (${expression}) ? resolve() : setTimeout(look, 20);
    look();
  })`;
  const tooLong = AbortSignal.timeout(WAIT_MS);
  await Promise.race([
    page.evaluate(look),
    new Promise((_, reject) => {
      tooLong.addEventListener("abort", () => reject(new Error(`not true within ${WAIT_MS} ms: ${expression}`)));
    }),
  ]);
}

/** By how many pixels the page stays wider than the window. A plot follows the window's size a little later. */
export async function overflowPx(page: Page): Promise<number> {
  const overflow = "document.documentElement.scrollWidth - innerWidth";
  await untilTrue(page, `${overflow} <= 0`).catch(() => {});
  return page.evaluate<number>(overflow);
}
