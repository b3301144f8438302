import { setTimeout } from "node:timers/promises";
import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { axeFindings, inBrowser, openPage, overflowPx, startBrowser } from "../helpers/browser/console-browser.js";
import { NatsServer, noNatsServer } from "../helpers/plant/nats-server.js";
import { get, getJson, startCell, startHub, untilCaughtUp } from "../helpers/plant/plant-processes.js";
import type { ServiceProcess } from "../helpers/process/service-process.js";
import { until } from "../helpers/until.js";

/** Requests for captures. */
const CAPTURES = /\/files\/|\/sensor\/frames\/[^/]*\/[^/]+\.(npy|png)/;

interface Runs {
  total: number;
  runs: { id: string; cell: string; program_id: string }[];
}

t.test("the console of a hub", { ...inBrowser, skip: inBrowser.skip || noNatsServer }, async (t) => {
  const server = await NatsServer.startWithLog(t);
  const hub = await startHub(t, server);
  const [cell] = await Promise.all([
    startCell(t, server, { cell: "line1-cell1", runs: 4, seed: 1 }),
    startCell(t, server, { cell: "line2-cell2", runs: 3, seed: 2 }),
  ]);
  await untilCaughtUp(t, hub, 7);
  const browser = await startBrowser(t);
  const page = await openPage(t, browser, `http://127.0.0.1:${hub.port}/console/runs`, {}, [/404/]);
  await chooseCells(t, page);
  await findCell(t, hub, page);
  await seeWebhook(cell, hub, page);
});

async function chooseCells(t: Test, page: Page): Promise<void> {
  const untilCount = (text: string) =>
    page.locator(".card-head .count", { hasText: new RegExp(`^${text}$`) }).waitFor();
  await untilCount("7");
  await page.getByRole("columnheader", { name: "Cell", exact: true }).waitFor();
  t.equal(await page.locator(".runs-table").getByText("line2-cell2").count(), 3);
  await page.locator("select[name=cell]").selectOption("line2-cell2");
  await untilCount("3");
  t.equal(new URL(page.url()).searchParams.get("cell"), "line2-cell2");
  t.same(await axeFindings(page), []);
  await page.setViewportSize({ width: 320, height: 800 });
  t.equal(await overflowPx(page), 0);
  await page.setViewportSize({ width: 1280, height: 900 });

  await page.goto("/console/programs");
  await page.getByRole("columnheader", { name: "Cells" }).waitFor();
  const untilRuns = async (count: number): Promise<void> => {
    let found = -1;
    for (let looks = 0; found !== count && looks < 1_200; looks++) {
      const links = await page.locator("tbody td.number a").allTextContents();
      found = links.reduce((sum, text) => sum + Number(text), 0);
      if (found !== count) await setTimeout(50);
    }
    t.equal(found, count);
  };
  await untilRuns(7);
  await page.locator("select[name=cell]").selectOption("line1-cell1");
  await page.locator('tbody a[href*="cell=line1-cell1"]').first().waitFor();
  // The runs of this cell.
  await untilRuns(4);
  t.same(await axeFindings(page), []);
  await page.goto("/console/programs?cell=unknown");
  await page.getByText("No program of this cell.").waitFor();
}

/** The captures are at the cell: the page says so, and leads there. */
async function findCell(t: Test, hub: ServiceProcess, page: Page): Promise<void> {
  const { runs } = await getJson<Runs>(hub, "/runs?limit=100");
  const details = await Promise.all(
    runs.map(({ id }) => getJson<{ id: string; results: { frame_ids: string[] } }>(hub, `/runs/${id}`)),
  );
  const run = details.find(({ results }) => results.frame_ids.length > 0);
  const cell = runs.find(({ id }) => id === run?.id)?.cell as string;
  const [frameId] = run?.results.frame_ids ?? [];
  const link = page.getByRole("link", { name: `This page at the cell ${cell}` });
  for (const publicUrl of [null, "javascript:alert(1)", "http://cell.example:8000/"]) {
    const hasLink = publicUrl?.startsWith("http") ?? false;
    const json = {
      code: "not_shipped",
      message: `the plant does not have these bytes: ask the cell ${cell}`,
      params: { cell, public_url: publicUrl },
      retryable: true,
    };
    await page.route(CAPTURES, (route) => route.fulfill({ status: 404, json }));
    await page.goto(`/console/runs/${run?.id}`);
    await page.locator(".run-head").getByRole("link", { name: cell, exact: true }).waitFor();
    await page.getByText("Only at the cell").first().waitFor();
    await page.locator(".files-table button.quiet").first().click();
    const said = page.locator(".files-table [role=alert]");
    await said.getByText("the plant does not have these bytes").waitFor();
    t.equal(await said.getByRole("link").count(), hasLink ? 1 : 0);
    if (hasLink) {
      t.equal(await link.first().getAttribute("href"), `http://cell.example:8000/console/runs/${run?.id}`);
      t.same(await axeFindings(page), []);
    }
    await page.goto(`/console/frames/${frameId}`);
    await page.locator("main [role=alert]").getByText("the plant does not have these bytes").waitFor();
    if (hasLink) t.equal(await link.getAttribute("href"), `http://cell.example:8000/console/frames/${frameId}`);
    await page.unroute(CAPTURES);
  }
}

/** Its key is at the cell. */
async function seeWebhook(cell: ServiceProcess, hub: ServiceProcess, page: Page): Promise<void> {
  const webhook = {
    name: "signed",
    url: "http://127.0.0.1:9/",
    signing: "ed25519",
    subscribed_events: ["ProgramFailed"],
  };
  const made = await fetch(`http://127.0.0.1:${cell.port}/webhooks`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(webhook),
  });
  const { id } = (await made.json()) as { id: string };
  await until("the webhook at the hub", async () => (await get(hub, `/webhooks/${id}`)).status === 200);
  await page.goto(`/console/webhooks/${id}`);
  await page.getByText("Its cell line1-cell1 gives the public key.").waitFor();
  await page.getByText("with Ed25519").waitFor();
}
