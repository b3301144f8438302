import type { Page } from "playwright-core";
import t, { type Test } from "tap";
import { verifyWebhook } from "../../../core/webhook/verify-webhook.js";
import { axeFindings, inBrowser, type OpenPage } from "../../helpers/browser/console-browser.js";
import { type ConsoleCell, startConsole } from "../../helpers/browser/console-cell.js";
import { type ReceivedRequest, type Receiver, receiverFor } from "../../helpers/webhooks/receiver.js";

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

t.test("the form of a webhook", inBrowser, async (t) => {
  const { cell, open } = await startConsole(t, [/a status of 422/]);
  t.test("the service has what was entered, and the form shows it again", (t) => keepEntered(t, cell, open));
  t.test("what somebody else changed meanwhile stays", (t) => keepOthers(t, cell, open));
  t.test("the secret is stored as it was typed", (t) => keepSecret(t, open));
  t.test("headers are added, kept and replaced", (t) => changeHeaders(t, cell, open));
  t.test("Ed25519 needs no secret, and its public key is there to copy", (t) => chooseSigning(t, cell, open));
});

async function keepEntered(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const page = await open(t, "/console/webhooks");

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
}

async function keepOthers(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const target = { name: "MES", url: "http://127.0.0.1:9/", subscribed_events: ["ProgramFailed", "ProgramStarted"] };
  const path = `/webhooks/${(await cell.post<{ id: string }>("/webhooks", target)).id}`;
  const page = await open(t, `/console${path}`);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Retries").fill("7");
  await cell.patch(path, { url: "http://127.0.0.1:9/new", enabled: false, subscribed_events: ["ProgramCancelled"] });
  await save(page);
  const settings = await settingsAt(cell, path);
  t.match(settings, { name: "MES", url: "http://127.0.0.1:9/new", enabled: false, max_retries: 7 });
  t.same(settings.subscribed_events, ["ProgramCancelled"]);
}

async function keepSecret(t: Test, open: OpenPage): Promise<void> {
  const secret = " a secret ";
  const receiver = await receiverFor(t);
  const page = await open(t, "/console/webhooks");
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
}

async function changeHeaders(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const receiver = await receiverFor(t);
  const page = await open(t, "/console/webhooks");
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const namesAt = async (path: string) => (await cell.get<{ header_names: string[] }>(path)).header_names;

  await button("New webhook").click();
  await fillIn(page, { Name: "MES", Address: receiver.url }, {});
  t.equal(await page.getByLabel("Replace").count(), 0, "a new one has none to replace");
  await button("Add a header").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.type("Host~/");
  await page.keyboard.press("Tab");
  await page.keyboard.type("a key");
  await button("Create").click();
  await page.getByText("Must be absent: it is no name of a header").waitFor();
  t.equal(await page.getByLabel("Header 1", { exact: true }).getAttribute("aria-invalid"), "true");
  t.equal(await page.getByLabel("Value 1").getAttribute("type"), "password");
  t.same(await axeFindings(page), []);
  await page.getByLabel("Header 1", { exact: true }).fill("X-Api-Key");
  t.equal(await page.getByText("Must be absent").count(), 0, "the fault was that of the other name");
  await button("Add a header").click();
  await fillRow(page, 2, "X-Site", "north");
  await button("Add a header").click();
  await page.getByLabel("Header 3", { exact: true }).fill("X-Other");
  await button("Remove header 3").click();
  t.equal(await page.getByLabel("Header 3", { exact: true }).count(), 0);
  t.equal(await page.locator(":focus").textContent(), "Add a header");
  await button("Add a header").click();
  await button("Create").click();
  await page.waitForURL(/\/webhooks\/[^/]+$/);
  const path = `/webhooks/${page.url().split("/").at(-1)}`;
  t.same(await namesAt(path), ["X-Api-Key", "X-Site"], "an empty row is none");
  t.equal(await fact(page, "Headers"), "X-Api-Key, X-Site");
  t.same(await tested(page, receiver), { key: "a key", site: "north" });

  await button("Edit").click();
  await page.getByText("Their values cannot be read.").waitFor();
  t.equal(await button("Add a header").count(), 0);
  await page.getByLabel("Retries").fill("7");
  await save(page);
  t.same(await tested(page, receiver), { key: "a key", site: "north" }, "they stay as they are");

  await button("Edit").click();
  await page.getByLabel("Replace them all").check();
  for (const number of [1, 2]) {
    await button("Add a header").click();
    await fillRow(page, number, "X-Api-Key", "another");
  }
  await button("Save").click();
  await page.getByText("Must be given once.").first().waitFor();
  await button("Remove header 2").click();
  await save(page);
  t.same(await tested(page, receiver), { key: "another", site: undefined }, "all of them are replaced");

  await button("Edit").click();
  await page.getByLabel("Replace them all").check();
  await save(page);
  t.same(await namesAt(path), [], "by none");
}

async function chooseSigning(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const page = await open(t, "/console/webhooks");
  const secret = page.getByLabel("Secret (empty: not signed)");
  const publicKey = page.getByLabel("Public key for the receiver");
  const signingAt = async (path: string) => {
    const { signing, has_secret } = await cell.get<{ signing: string; has_secret: boolean }>(path);
    return { signing, has_secret };
  };

  await page.getByRole("button", { name: "New webhook" }).click();
  await fillIn(page, { Name: "MES", Address: "http://127.0.0.1:9/" }, {});
  await secret.fill("a secret");
  t.equal(await publicKey.count(), 0);
  await page.getByLabel("Signature").selectOption({ label: "Ed25519" });
  await secret.waitFor({ state: "detached" });
  await publicKey.waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/\/webhooks\/[^/]+$/);
  const path = `/webhooks/${page.url().split("/").at(-1)}`;
  t.same(await signingAt(path), { signing: "ed25519", has_secret: false }, "what was typed before is not sent");
  t.equal(await fact(page, "Signed"), "with Ed25519");
  const key = await cell.get<{ public_key: string; public_key_pem: string }>("/webhooks/signing-key");
  t.equal(await publicKey.inputValue(), key.public_key);
  t.equal(await page.getByLabel("The same key as PEM").inputValue(), key.public_key_pem);
  await publicKey.focus();
  t.equal(await page.evaluate("getSelection().toString()"), key.public_key, "Ctrl+C copies it");
  t.same(await axeFindings(page), []);

  await page.getByRole("button", { name: "Edit" }).click();
  t.equal(await publicKey.count(), 1, "the page shows it, so the form does not");
  await page.getByLabel("Signature").selectOption({ label: "HMAC" });
  await secret.fill("a secret");
  await save(page);
  await publicKey.waitFor({ state: "detached" });
  t.same(await signingAt(path), { signing: "hmac", has_secret: true });

  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Signature").selectOption({ label: "Ed25519" });
  await page.getByLabel("New secret").waitFor();
  await save(page);
  // It goes on to sign for X-Service-Signature. The page reads the webhook again once the form is gone.
  await page.locator(".fact-list dd", { hasText: "with Ed25519 and with a secret" }).waitFor();
}

async function fillRow(page: Page, number: number, name: string, value: string): Promise<void> {
  await page.getByLabel(`Header ${number}`, { exact: true }).fill(name);
  await page.getByLabel(`Value ${number}`).fill(value);
}

/** What the receiver gets of two headers with a test event. */
async function tested(page: Page, receiver: Receiver) {
  await page.getByRole("button", { name: "Test", exact: true }).click();
  await page.getByText("The receiver took the test event: it answered 204.").waitFor();
  const { "x-api-key": key, "x-site": site } = (receiver.requests.at(-1) as ReceivedRequest).headers;
  return { key, site };
}

/** What the head of the page says of the webhook. */
async function fact(page: Page, word: string): Promise<string | null> {
  return page
    .locator(".fact-list div")
    .filter({ has: page.locator("dt", { hasText: new RegExp(`^${word}$`) }) })
    .locator("dd")
    .textContent();
}

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
