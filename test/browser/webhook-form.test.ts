import type { Page } from "playwright-core";
import t from "tap";
import { verifyWebhook } from "../../core/webhook/verify-webhook.js";
import { inBrowser, openPage, startBrowser } from "../helpers/browser/console-browser.js";
import { ConsoleCell } from "../helpers/browser/console-cell.js";
import { ServiceProcess } from "../helpers/process/service-process.js";
import { type ReceivedRequest, startReceiver } from "../helpers/webhooks/receiver.js";

/** What a person sees in the form, by the label of each field. */
const FIELDS = {
  Name: "MES",
  Address: "http://127.0.0.1:9/mes",
  "Timeout in seconds": "7.5",
  "Pause between attempts in seconds": "2.5",
  Retries: "5",
};
const SETTINGS = [
  ...["name", "url", "subscribed_events", "enabled", "on_failure_mode", "has_secret"],
  ...["delivery_timeout_seconds", "retry_backoff_seconds", "max_retries"],
];
const BOXES = {
  ProgramStarted: true,
  ProgramCompleted: false,
  ProgramFailed: true,
  ProgramCancelled: false,
  Enabled: false,
  "Note failures in the run's event log": true,
};

t.test("webhook form: the service has what was entered, and the form shows it again", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const service = await ServiceProcess.startFor(t);
  const cell = await ConsoleCell.start(service);
  t.teardown(() => cell.close());
  const { page, faults } = await openPage(browser, `http://127.0.0.1:${service.port}/console/webhooks`);

  await page.getByRole("button", { name: "New webhook" }).click();
  t.equal(await page.getByLabel("Remove the secret").count(), 0, "a new one has no secret to remove");
  await fillIn(page, FIELDS, BOXES);
  await page.getByLabel("Secret").fill("a secret");
  await page.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/\/webhooks\/[^/]+$/);
  const path = `/webhooks/${page.url().split("/").at(-1)}`;
  const made = {
    ...{ name: "MES", url: "http://127.0.0.1:9/mes", subscribed_events: ["ProgramStarted", "ProgramFailed"] },
    ...{ enabled: false, on_failure_mode: "WARN", has_secret: true },
    ...{ delivery_timeout_seconds: 7.5, retry_backoff_seconds: 2.5, max_retries: 5 },
  };
  t.same(await settingsAt(cell, path), made);
  await page.locator(".tag", { hasText: "disabled" }).waitFor();

  await page.getByRole("button", { name: "Edit" }).click();
  t.same(await shown(page), [FIELDS, { ...BOXES, "Remove the secret": false }], "as it was made");
  await page.getByLabel("Name").fill("Nobody");
  await page.getByLabel("Enabled").check();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".webhook-form").waitFor({ state: "detached" });
  t.same(await settingsAt(cell, path), made, "Cancel changes nothing");

  await page.getByRole("button", { name: "Edit" }).click();
  t.same(await shown(page), [FIELDS, { ...BOXES, "Remove the secret": false }], "what was cancelled is forgotten");
  await save(page);
  t.same(await settingsAt(cell, path), made, "an empty secret stays as it is");

  const fields = { ...FIELDS, Name: "SCADA", "Timeout in seconds": "1", Retries: "0" };
  fields["Pause between attempts in seconds"] = "0";
  const boxes = {
    ...{ ProgramStarted: false, ProgramCompleted: true, ProgramFailed: false, ProgramCancelled: true },
    ...{ Enabled: true, "Note failures in the run's event log": false },
  };
  await page.getByRole("button", { name: "Edit" }).click();
  await fillIn(page, fields, { ...boxes, "Remove the secret": true });
  await save(page);
  t.same(await settingsAt(cell, path), {
    ...{ name: "SCADA", url: "http://127.0.0.1:9/mes", subscribed_events: ["ProgramCompleted", "ProgramCancelled"] },
    ...{ enabled: true, on_failure_mode: "IGNORE", has_secret: false },
    ...{ delivery_timeout_seconds: 1, retry_backoff_seconds: 0, max_retries: 0 },
  });
  await page.getByRole("heading", { name: "SCADA" }).waitFor();
  t.equal(await page.locator(".tag", { hasText: "disabled" }).count(), 0);
  await page.getByRole("button", { name: "Edit" }).click();
  t.same(await shown(page), [fields, boxes], "as it was changed; there is no secret to remove");
  t.same(faults, []);
  await page.context().close();
});

t.test("webhook form: what somebody else changed meanwhile stays", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const service = await ServiceProcess.startFor(t);
  const cell = await ConsoleCell.start(service);
  t.teardown(() => cell.close());
  const target = { name: "MES", url: "http://127.0.0.1:9/", subscribed_events: ["ProgramFailed", "ProgramStarted"] };
  const path = `/webhooks/${(await cell.post<{ id: string }>("/webhooks", target)).id}`;
  const { page, faults } = await openPage(browser, `http://127.0.0.1:${service.port}/console${path}`);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Retries").fill("7");
  await cell.patch(path, { url: "http://127.0.0.1:9/new", enabled: false, subscribed_events: ["ProgramCancelled"] });
  await save(page);
  const settings = await settingsAt(cell, path);
  t.match(settings, { name: "MES", url: "http://127.0.0.1:9/new", enabled: false, max_retries: 7 });
  t.same(settings.subscribed_events, ["ProgramCancelled"]);
  t.same(faults, []);
  await page.context().close();
});

t.test("webhook form: the secret is stored as it was typed", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const service = await ServiceProcess.startFor(t);
  const secret = " a secret ";
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const { page, faults } = await openPage(browser, `http://127.0.0.1:${service.port}/console/webhooks`);
  await page.getByRole("button", { name: "New webhook" }).click();
  await fillIn(page, { Name: "MES", Address: receiver.url, Secret: secret }, {});
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByText("The receiver took the test event: it answered 204.").waitFor();
  const { headers, body } = receiver.requests[0] as ReceivedRequest;
  verifyWebhook({ secret, headers, body });
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("New secret").fill("another");
  await save(page);
  await page.getByText(/^with two secrets until /).waitFor();
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await receiver.received(2);
  const both = receiver.requests[1] as ReceivedRequest;
  for (const one of [secret, "another"]) verifyWebhook({ secret: one, headers: both.headers, body: both.body });
  t.same(faults, []);
  await page.context().close();
});

type Fields = Readonly<Record<string, string>>;
type Boxes = Readonly<Record<string, boolean>>;

async function fillIn(page: Page, fields: Fields, boxes: Boxes): Promise<void> {
  for (const [label, text] of Object.entries(fields)) await page.getByLabel(label).fill(text);
  for (const [label, isOn] of Object.entries(boxes)) await page.getByLabel(label).setChecked(isOn);
}

/** Saves the form, and waits until the page has closed it. */
async function save(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".webhook-form").waitFor({ state: "detached" });
}

/** The fields of the form with what is in them, and its boxes. The secret is left out: it is never shown. */
async function shown(page: Page): Promise<[Fields, Boxes]> {
  const inputs = await page
    .locator(".webhook-form input:not([type=password])")
    .evaluateAll((all: { type: string; value: string; checked: boolean; labels: { textContent: string }[] }[]) =>
      all.map(({ type, value, checked, labels }) => ({ type, value, checked, label: labels[0]?.textContent ?? "" })),
    );
  const isBox = ({ type }: { type: string }) => type === "checkbox";
  return [
    Object.fromEntries(inputs.filter((one) => !isBox(one)).map(({ label, value }) => [label, value])),
    Object.fromEntries(inputs.filter(isBox).map(({ label, checked }) => [label, checked])),
  ];
}

/** What the service says of the webhook, without its id and times. */
async function settingsAt(cell: ConsoleCell, path: string): Promise<Record<string, unknown>> {
  const webhook = await cell.get<Record<string, unknown>>(path);
  return Object.fromEntries(SETTINGS.map((name) => [name, webhook[name]]));
}

t.test("webhook page: what failed is sent again", inBrowser, async (t) => {
  const browser = await startBrowser(t);
  const service = await ServiceProcess.startFor(t);
  const cell = await ConsoleCell.start(service);
  t.teardown(() => cell.close());
  let status = 503;
  const receiver = await startReceiver((_, response) => response.writeHead(status).end());
  t.teardown(() => receiver.close());
  const { id } = await cell.post<{ id: string }>("/webhooks", {
    ...{ name: "MES", url: receiver.url, subscribed_events: ["ProgramFailed"] },
  });
  await cell.post(`/webhooks/${id}/test`, {});
  status = 204;
  const url = `http://127.0.0.1:${service.port}/console/webhooks/${id}`;
  const { page, faults } = await openPage(browser, url, {}, [/a status of 422 .*resend/]);
  await page.getByText("0 delivered, 1 failed").waitFor();
  await page.getByText("the receiver answered 503").first().waitFor();
  await page.getByRole("button", { name: "Resend", exact: true }).click();
  await page.getByLabel("Span").selectOption("the last day");
  await page.getByRole("button", { name: "Send them" }).click();
  await page.getByText("Resend done: 1 of 1 attempted, 1 delivered, 0 failed.").waitFor();
  t.equal(receiver.requests.length, 2);
  await page.getByRole("button", { name: "Resend", exact: true }).click();
  await page.getByRole("button", { name: "Send them" }).click();
  await page.getByText(/at least one delivery matches/).waitFor();
  t.same(faults, []);
  await page.context().close();
});
