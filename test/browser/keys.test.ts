import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { axeFindings, inBrowser, openPage, startBrowser } from "../helpers/browser/console-browser.js";
import { ConsoleCell, check, PROGRAM } from "../helpers/browser/console-cell.js";
import { runCommand, ServiceProcess } from "../helpers/process/service-process.js";
import { temporaryDirectory } from "../helpers/recorder/recorder-harness.js";
import { until } from "../helpers/until.js";

async function makeKey(file: string, scope: string): Promise<string> {
  const { stdout, stderr } = await runCommand(["keys", "add", "--scope", scope, "--file", file]);
  const key = /isk_\S+/.exec(stdout)?.[0];
  if (key === undefined) throw new Error(`keys add: ${stdout} ${stderr}`);
  return key;
}

t.test("where keys are needed the page asks for one, keeps it in the tab, and forgets it", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const file = join(temporaryDirectory(t), "keys.json");
  const key = await makeKey(file, "read");
  const service = await ServiceProcess.startFor(t, { args: ["serve", "--api-keys", file] });
  const cell = await ConsoleCell.start(t, service);
  const runId = await cell.play({ withCaptures: true, end: "none", checks: [check("depth", "passed", 10)] });
  await cell.say("run.finish", { id: runId });
  const url = `http://127.0.0.1:${service.port}/console/webhooks`;
  const page = await openPage(t, browser, url, {}, [/\b40[134]\b/]);
  const urls: string[] = [];
  page.on("request", (request) => urls.push(request.url()));

  await page.getByRole("heading", { name: "API key" }).waitFor();
  t.equal(await page.getByText("Connection lost").count(), 0, "the page waits for the key");
  t.same(await axeFindings(page), []);
  for (const [wrong, words] of [
    [`${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}`, "does not know this key"],
    ["schlüssel", "not a key"],
  ] as const) {
    await page.getByLabel("Key", { exact: true }).fill(wrong);
    await page.getByRole("button", { name: "Unlock" }).click();
    await page.getByText(words).waitFor();
  }
  await page.getByLabel("Key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "Unlock" }).click();
  await page.locator(".live").getByText("Live", { exact: true }).waitFor();
  await page.getByText("Nobody is told of events.").waitFor();
  await page.reload();
  await page.getByText("Nobody is told of events.").waitFor();

  await readRun(t, page, `http://127.0.0.1:${service.port}/runs/${runId}`, key);
  await saveExport(t, page, `http://127.0.0.1:${service.port}/`, key);
  await page.goto(url);

  await page.getByRole("button", { name: "New webhook" }).click();
  await page.getByLabel("Name").fill("MES");
  await page.getByLabel("Address").fill("http://127.0.0.1:9/");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("This API key may only read.").waitFor();
  t.equal(await page.getByRole("button", { name: "Create" }).isDisabled(), true);

  const other = await page.context().newPage();
  await other.goto(url);
  await other.getByRole("heading", { name: "API key" }).waitFor();
  await other.close();

  await page.getByRole("button", { name: "Lock" }).click();
  await page.getByRole("heading", { name: "API key" }).waitFor();
  t.equal(await page.getByText("New webhook").count(), 0, "nothing that was read stays");
  await page.reload();
  await page.getByRole("heading", { name: "API key" }).waitFor();
  t.equal(await page.evaluate<number>("sessionStorage.length + localStorage.length"), 0);
  t.same(
    urls.filter((one) => one.includes("isk_")),
    [],
    "no key in a URL",
  );
});

/** What a page reads by other ways than the answers it lists: pictures, a plot, a file to save, parts of a frame. */
async function readRun(t: Test, page: Page, runUrl: string, key: string): Promise<void> {
  await page.getByRole("link", { name: "Now", exact: true }).click();
  await page.locator(".preview img").waitFor();
  await page.locator(".tile a").click();
  await page.locator(".plot canvas").waitFor();
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "cl_sweep.csv" }).click();
  const answer = await fetch(`${runUrl}/steps/2/cl_sweep.csv`, { headers: { Authorization: `Bearer ${key}` } });
  t.equal(readFileSync(await (await saving).path(), "utf8"), await answer.text());
  await page.locator(".files-table td a").first().click();
  await page.waitForSelector("canvas[data-painted]");
}

/** An export may have gigabytes, so it goes straight into a file. The page's own file system stands for the viewer's disk. */
async function saveExport(t: Test, page: Page, url: string, key: string): Promise<void> {
  const path = `programs/${PROGRAM}/checks.ndjson`;
  const expected = await (await fetch(`${url}${path}`, { headers: { Authorization: `Bearer ${key}` } })).text();
  t.match(expected, /"name":"depth"/);
  await page.goto(`${url}console/programs/${PROGRAM}`);
  const file = (name: string) =>
    `navigator.storage.getDirectory().then((folder) => folder.getFileHandle(${name}, { create: true }))`;
  await page.evaluate(`window.showSaveFilePicker = ({ suggestedName }) => ${file("suggestedName")}`);
  await page.getByRole("button", { name: "NDJSON" }).click();
  const saved = `${file('"checks.ndjson"')}.then((one) => one.getFile()).then((one) => one.text())`;
  await until("the saved file", async () => (await page.evaluate<string>(saved)) !== "");
  t.equal(await page.evaluate<string>(saved), expected);
  await page.getByRole("button", { name: "NDJSON" }).waitFor();

  await page.evaluate(`window.showSaveFilePicker = async () => { throw new DOMException("", "AbortError"); }`);
  await page.getByRole("button", { name: "CSV" }).click();
  await page.getByRole("button", { name: "CSV" }).waitFor();
  t.equal(await page.getByRole("alert").count(), 0, "no file is wanted");
}
