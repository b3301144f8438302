import { EventEmitter, once } from "node:events";
import type { Locator } from "playwright-core";
import t, { type Test } from "tap";
import { axeFindings, inBrowser, type OpenPage, overflowPx } from "../helpers/browser/console-browser.js";
import { type ConsoleCell, check, PROGRAM, PROGRAM_NAME, startConsole } from "../helpers/browser/console-cell.js";
import { receiverFor } from "../helpers/webhooks/receiver.js";

/** Of runs as of deliveries. */
const A_PAGE = 50;
/** Three pages, the last of them not full. */
const RUNS = 2 * A_PAGE + 7;

t.test("lists that are longer than a page", inBrowser, async (t) => {
  const receiver = await receiverFor(t);
  const { cell, open } = await startConsole(t);
  const { id: webhook } = await cell.post<{ id: string }>("/webhooks", {
    ...{ name: "MES", url: `${receiver.url}/mes`, subscribed_events: ["ProgramCancelled"] },
  });
  const runIds: string[] = [];
  for (let n = 0; n < RUNS; n++) runIds.unshift(await cell.play({ serialNumber: `SN-${n}`, end: "cancel" }));
  await receiver.received(RUNS);

  t.test("runs: newest, newer, older, oldest", (t) => turnRuns(t, cell, open, runIds[0] as string));
  t.test("deliveries: newest, older", (t) => turnDeliveries(t, cell, open, webhook, runIds));
  t.test("programs: newest, older, oldest", (t) => turnPrograms(t, cell, open));
  t.test("runs of a program that is not among the newest 1,000", (t) => findProgram(t, cell, open));
  t.test("checks of a program: those that fail first, and those of a name", (t) => findChecks(t, cell, open));
});

async function turnRuns(t: Test, cell: ConsoleCell, open: OpenPage, newest: string): Promise<void> {
  const page = await open(t, "/console/runs");
  const pager = page.getByRole("navigation", { name: "Pages of runs" });
  const rows = page.locator(".runs-table tbody .part a");
  const isAt = async (number: number, off: readonly string[]): Promise<void> => {
    const name = `page ${number}`;
    const path = `/runs?limit=${A_PAGE}&offset=${(number - 1) * A_PAGE}`;
    const { runs } = await cell.get<{ runs: { id: string }[] }>(path);
    const ids = runs.map(({ id }) => id);
    await linkTo(rows, ids.at(-1)).waitFor();
    t.same(await linkedIds(rows), ids, `${name}: its runs`);
    t.equal(new URL(page.url()).search, number === 1 ? "" : `?page=${number}`, `${name}: its address`);
    t.equal(await pager.getByRole("spinbutton").inputValue(), String(number), `${name}: its number`);
    t.same(await pager.locator("button:disabled").allTextContents(), off, `${name}: what it cannot do`);
  };
  const press = (name: string) => pager.getByRole("button", { name, exact: true }).click();
  const [atNewest, atOldest] = [
    ["Newest", "Newer"],
    ["Older", "Oldest"],
  ] as const;
  await isAt(1, atNewest);
  await press("Oldest");
  await isAt(3, atOldest);
  await press("Newer");
  await isAt(2, []);
  await press("Newer");
  await isAt(1, atNewest);
  await press("Older");
  await isAt(2, []);
  await press("Older");
  await isAt(3, atOldest);
  await press("Newest");
  await isAt(1, atNewest);

  await page.getByLabel("Serial number").fill(`SN-${RUNS - 1}`);
  await page.getByLabel("Serial number").press("Enter");
  await linkTo(rows, newest).waitFor();
  await rows.nth(1).waitFor({ state: "detached" });
  t.equal(await pager.count(), 0, "a single page has no buttons");
}

async function turnDeliveries(
  t: Test,
  cell: ConsoleCell,
  open: OpenPage,
  webhook: string,
  runIds: readonly string[],
): Promise<void> {
  const page = await open(t, `/console/webhooks/${webhook}`);
  const pager = page.getByRole("navigation", { name: "Pages of deliveries" });
  const rows = page.locator(".delivery-list .delivery-line a");
  const isAt = async (before: string | null, ids: readonly string[], off: readonly string[]): Promise<void> => {
    await linkTo(rows, ids.at(-1)).waitFor();
    t.same(await linkedIds(rows), ids, "its deliveries");
    t.equal(new URL(page.url()).searchParams.get("before"), before, "its address");
    t.same(await pager.locator("button:disabled").allTextContents(), off, "what it cannot do");
  };
  const press = (name: string) => pager.getByRole("button", { name, exact: true }).click();
  const all = await cell.get<{ program_run_id: string; created_at: string }[]>(
    `/webhooks/${webhook}/deliveries?limit=200`,
  );
  const ids = all.map(({ program_run_id: id }) => id);
  t.same(ids, runIds, "one for each run, newest first");
  const lastOf = (number: number): string => all[number * A_PAGE - 1]?.created_at as string;
  const first = ids.slice(0, A_PAGE);
  await isAt(null, first, ["Newest"]);
  await press("Older");
  await isAt(lastOf(1), ids.slice(A_PAGE, 2 * A_PAGE), []);
  await press("Older");
  await isAt(lastOf(2), ids.slice(2 * A_PAGE), ["Older"]);
  await press("Newest");
  await isAt(null, first, ["Newest"]);

  await page.getByLabel("Event").selectOption("ProgramFailed");
  await page.getByText("No delivery matches.").waitFor();
  t.equal(await pager.count(), 0, "a single page has no buttons");
}

/** A page reads the runs of its own programs only. */
async function turnPrograms(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  for (let n = 0; n < 2 * A_PAGE; n++) await cell.putProgram(`P${n}`);
  const page = await open(t, "/console/webhooks");
  const runsOf = new Set<string>();
  const shown = new Set<string>();
  const heard = new EventEmitter();
  page.on("request", (request) => {
    const [, id] = /programs\/(.*)\/runs/.exec(request.url()) ?? [];
    if (id !== undefined) runsOf.add(id);
    heard.emit("request");
  });
  await page.getByRole("link", { name: "Programs", exact: true }).click();
  const pager = page.getByRole("navigation", { name: "Pages of programs" });
  const links = page.locator("th.program a");
  for (const [at, off] of [["Newest", "Newer"], [], ["Older", "Oldest"]].entries()) {
    const { programs } = await cell.get<{ programs: { id: string }[] }>(
      `/programs?limit=${A_PAGE}&offset=${at * A_PAGE}`,
    );
    const ids = programs.map(({ id }) => id);
    await linkTo(links, ids.at(-1)).waitFor();
    t.same(await linkedIds(links), ids, `page ${at + 1}`);
    t.same(await pager.locator("button:disabled").allTextContents(), off);
    for (const id of ids) {
      shown.add(id);
      while (!runsOf.has(id)) await once(heard, "request");
    }
    t.same(
      [...runsOf].filter((id) => !shown.has(id)),
      [],
      "it reads the runs of programs that it shows, and no others",
    );
    if (at < 2) await pager.getByRole("button", { name: "Older", exact: true }).click();
  }
}

async function findProgram(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  await Promise.all(Array.from({ length: 1_000 }, (_, at) => cell.putProgram(`Newer ${at}`)));
  const page = await open(t, "/console/runs");
  const words = page.getByLabel("Find a program");
  const choice = page.locator("label", { hasText: /^Program/ }).locator("select");
  const offered = () => choice.locator("option").allTextContents();
  await words.waitFor();
  t.equal((await offered()).length, 1_001, "all, and the newest 1,000");
  t.notOk((await offered()).includes(PROGRAM_NAME), "it is too old for the list");
  for (const [typed, told, names] of [
    ["no such program", "No program matches", []],
    [PROGRAM, "1 program matches", [PROGRAM_NAME]],
    ["newer 99", "11 programs match", ["99", "990", "999"]],
    [PROGRAM_NAME.toUpperCase(), "1 program matches", [PROGRAM_NAME]],
  ] as const) {
    await words.fill(typed);
    await words.press("Enter");
    await page.locator("output", { hasText: told }).waitFor();
    const texts = (await offered()).join();
    t.same(
      names.filter((name) => !texts.includes(name)),
      [],
      typed,
    );
  }
  await choice.selectOption({ label: PROGRAM_NAME });
  await page.locator(".card-head .count", { hasText: new RegExp(`^${RUNS}$`) }).waitFor();
  t.equal(new URL(page.url()).searchParams.get("program_id"), PROGRAM);
  t.same(await axeFindings(page), []);
  await page.setViewportSize({ width: 320, height: 640 });
  t.equal(await overflowPx(page), 0);
  await page.reload();
  await choice.locator("option", { hasText: PROGRAM_NAME }).waitFor({ state: "attached" });
  t.equal(await choice.inputValue(), PROGRAM, "a link to its runs names it");
}

async function findChecks(t: Test, cell: ConsoleCell, open: OpenPage): Promise<void> {
  const programId = await cell.putProgram("Many checks");
  const checks = Array.from({ length: 130 }, (_, at) => check(`point ${at}`, "passed", 10));
  checks[129] = check("point 129", "failed", 11);
  await cell.play({ programId, checks });
  const page = await open(t, `/console/programs/${programId}`);
  const names = page.locator(".check-list tbody th");
  await names.getByText("point 128", { exact: true }).waitFor();
  const sorted = [
    "point 129",
    ...checks
      .slice(0, 129)
      .map(({ name }) => name)
      .sort(),
  ];
  t.same(await names.allTextContents(), sorted);
  await page.getByLabel("Find checks by name").fill("POINT 12");
  await names.getByText("point 1", { exact: true }).waitFor({ state: "detached" });
  t.equal(await names.count(), 11);
}

/** The link among these that leads to a run. */
function linkTo(links: Locator, runId: string | undefined): Locator {
  return links.and(links.page().locator(`[href$="${runId}"]`));
}

/** The runs that links lead to. */
async function linkedIds(links: Locator): Promise<(string | undefined)[]> {
  const hrefs = await links.evaluateAll((all: { href: string }[]) => all.map(({ href }) => href));
  return hrefs.map((href) => href.split("/").at(-1));
}
