import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { inBrowser, type OpenPage } from "../../helpers/browser/console-browser.js";
import { type ConsoleCell, startConsole } from "../../helpers/browser/console-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

t.test("resends on the page of a webhook", inBrowser, async (t) => {
  const { cell, open } = await startConsole(t, [/a status of (404|409|422) .*resend/]);
  t.test("what failed is sent again", (t) => sendAgain(t, cell, open));
  t.test("a resend that runs is seen again, and cancelled", (t) => seeRunning(t, cell, open));
});

async function sendAgain(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  let status = 503;
  const receiver = await receiverFor(t, (_, response) => response.writeHead(status).end());
  const { id } = await cell.post<{ id: string }>("/webhooks", {
    ...{ name: "MES", url: receiver.url, subscribed_events: ["ProgramFailed"] },
  });
  await cell.post(`/webhooks/${id}/test`, {});
  status = 204;
  const url = `/console/webhooks/${id}`;
  const page = await open(t, url);
  await page.getByText("0 delivered, 1 failed").waitFor();
  await page.getByText("the receiver answered 503").first().waitFor();
  const lastSuccess = page.locator(".fact-list div", { hasText: "Last success" });
  t.equal(await lastSuccess.locator("time").count(), 0, "there was none");
  await resend(page, "the last day");
  await page.getByText("Resend done: 1 of 1 attempted, 1 delivered, 0 failed.").waitFor();
  t.equal(receiver.requests.length, 2);
  await page.getByText("1 delivered, 0 failed", { exact: true }).waitFor();
  await lastSuccess.locator("time").waitFor();
  await resend(page);
  await page.getByText(/at least one delivery matches/).waitFor();
}

async function seeRunning(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const receiver = await receiverFor(t, (_, response) => response.writeHead(503).end());
  const target = { name: "MES", url: receiver.url, subscribed_events: ["ProgramFailed"] };
  const path = `/webhooks/${(await cell.post<{ id: string }>("/webhooks", target)).id}`;
  // At one in a second, the resend outlasts the test.
  for (let test = 0; test < 100; test++) await cell.post(`${path}/test`, {});
  const url = `/console${path}`;
  const page = await open(t, url);
  await page.getByRole("button", { name: "Resend", exact: true }).waitFor();
  // By another client: this page does not know of it.
  const slow = { since: new Date(Date.now() - 3_600_000).toISOString(), per_second: 1 };
  const { resend_id: id } = await cell.post<{ resend_id: string }>(`${path}/resend`, slow);
  const underWay = page.getByText(/^Resend under way: [0-9]+ of 100 attempted/);
  await resend(page);
  await page.getByText(`Resend ${id} of this webhook is running.`).waitFor();
  await underWay.waitFor();
  t.equal(new URL(page.url()).searchParams.get("resend"), id);

  await page.reload();
  await underWay.waitFor();
  t.ok(await page.getByRole("button", { name: "Resend", exact: true }).isDisabled());
  await page.getByRole("button", { name: "Cancel the resend" }).click();
  await page.getByText(/^Resend cancelled: [0-9]+ of 100 attempted/).waitFor();
  t.equal((await cell.get<{ state: string }>(`${path}/resends/${id}`)).state, "cancelled");
  t.equal(await page.getByRole("button", { name: "Cancel the resend" }).count(), 0);

  await page.goto(`${url}?resend=${id.slice(0, -1)}${id.endsWith("0") ? 1 : 0}`);
  await page.locator("p.fault", { hasText: /resend/i }).waitFor();
  t.ok(await page.getByRole("button", { name: "Resend", exact: true }).isEnabled(), "one that there is not");
}

/** Asks for what failed. */
async function resend(page: Page, span = "the last hour"): Promise<void> {
  await page.getByRole("button", { name: "Resend", exact: true }).click();
  await page.getByLabel("Span").selectOption(span);
  await page.getByRole("button", { name: "Send them" }).click();
}
