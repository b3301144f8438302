import t from "tap";
import { createServiceClient } from "../../../http/client/service-client.js";
import { ChangingCell, PROGRAMS } from "../../helpers/live/changing-cell.js";

t.test("the client's sync brings what changed, also while it reads, and gives a mark only at the end", async (t) => {
  const cell = new ChangingCell();
  const port = await cell.listenFor(t);
  let onPage = (): void => {};
  let isAway = false;
  /** Pages of two runs, so that a few runs make several. */
  const smallPages: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    if (isAway) throw new TypeError("away");
    const response = await fetch(new Request(request.url.replace(/limit=\d+/, "limit=2"), request));
    onPage();
    return response;
  };
  const client = createServiceClient({ baseUrl: `http://127.0.0.1:${port}`, fetch: smallPages });
  const copy = new Map<string, string>();
  const apply = (runs: readonly { id: string; status: string }[]): void => {
    for (const run of runs) copy.set(run.id, run.status);
  };
  const ids = Array.from({ length: 5 }, (_, at) => cell.create(PROGRAMS[at % 2], `SN-${at % 2}`));
  let pages = 0;
  onPage = () => {
    // The oldest is on the last page: it changes before that is read, and the newest after it was read.
    if (++pages === 1) for (const at of [0, 4]) cell.start(ids[at] as string);
  };
  const first = await client.sync({}, apply);
  t.equal(pages, 3);
  t.equal(copy.size, 5);
  t.equal(copy.get(ids[4] as string), "pending", "it changed behind the reader");
  onPage = () => {};
  const second = await client.sync({ since: first }, apply);
  t.same(Object.fromEntries(copy), Object.fromEntries(ids.map((id, at) => [id, at % 4 ? "pending" : "running"])));
  t.equal(await client.sync({ since: second }, () => t.fail("nothing changed")), second);

  const others: unknown[] = [];
  await client.sync({ filter: { serial_number: "SN-1" } }, (runs) =>
    others.push(...runs.map((run) => run.serial_number)),
  );
  t.same(others, ["SN-1", "SN-1"]);
  await t.rejects(client.sync({ since: "yesterday" }, apply), { name: "ServiceRequestError", status: 422 });
  const failing = client.sync({}, () => Promise.reject(new Error("no room")));
  await t.rejects(failing, { message: "no room" }, "what apply throws");
  isAway = true;
  await t.rejects(client.sync({ since: second }, apply), { message: "away" });
});
