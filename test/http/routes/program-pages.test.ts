import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { ThreadSlices } from "../../../http/documents/thread-slices.js";
import type { Reply } from "../../../http/replies/reply.js";
import type { HandlerRequest } from "../../../http/requests/route.js";
import { programRoutes } from "../../../http/routes/program-routes.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";

const CREATED_US = 1_780_000_000_000_000;
const PROGRAMS = 30;

/** A cell with programs of so many bytes, newest last; and how its list is asked for. */
function cellWith(programBytes: number) {
  const cell = new RecordedCell();
  const ids: string[] = [];
  for (let nth = 0; nth < PROGRAMS; nth++) {
    const id = generateUuidV7(CREATED_US / 1000 + nth, new Uint8Array(10), null);
    ids.unshift(id);
    const metadata = { text: "\u0001é".repeat(programBytes / 3) };
    cell.apply(CREATED_US + nth, {
      kind: "program_put",
      program: { id, name: `p${nth}`, robot_ids: nth % 2 === 0 ? ["r1"] : [], status: "active", steps: [], metadata },
    });
  }
  const [list] = programRoutes(cell.view, new ThreadSlices());
  const ask = (query: object, gone = new AbortController().signal, baseUrl = "http://cell") =>
    list!.handle({ query, baseUrl, gone: () => gone } as unknown as HandlerRequest) as Reply | Promise<Reply>;
  return { cell, ids, ask };
}

const bodyOf = ({ body }: Reply) => JSON.parse(Buffer.from(body as Uint8Array).toString());

t.test("a large list of programs is made once for all who ask meanwhile, and says what a small one says", async (t) => {
  const { cell, ids, ask } = cellWith(60_000);
  const asked = [ask({ limit: 1_000, offset: 0 }), ask({ limit: 1_000, offset: 0 })];
  const others = [
    ask({ limit: 1_000, offset: 1 }),
    ask({ robot_id: "r1", limit: 1_000, offset: 0 }),
    ask({ limit: 1_000, offset: 0 }, undefined, "http://other"),
  ];
  t.ok(
    [...asked, ...others].every((reply) => reply instanceof Promise),
    "not at once",
  );
  const [first, second, ...rest] = await Promise.all([...asked, ...others]);
  t.equal(first, second);
  t.equal(new Set(rest).size, 3);
  const page = bodyOf(first as Reply);
  t.same(
    page.programs.map(({ id }: { id: string }) => id),
    ids,
  );
  t.same([page.total, page.limit, page.offset], [PROGRAMS, 1_000, 0]);
  const [one] = bodyOf(await ask({ limit: 1, offset: 3 })).programs;
  t.same(page.programs[3], one);
  t.ok(one.metadata.text.startsWith("\u0001é"));
  t.equal(bodyOf(rest[1] as Reply).total, PROGRAMS / 2);
  t.equal(bodyOf(rest[2] as Reply).programs[0].links.self.href, `http://other/programs/${ids[0]}`);

  const before = ask({ limit: 1_000, offset: 0 });
  cell.apply(CREATED_US + 100, { kind: "program_deleted", id: ids[0] as string });
  t.equal(bodyOf(await before).total, PROGRAMS, "as it was asked for");
  t.equal(bodyOf(await ask({ limit: 1_000, offset: 0 })).total, PROGRAMS - 1);
});

t.test("other work has its turn while a list is made, and nothing is made for a client that is gone", async (t) => {
  const { ask } = cellWith(300_000);
  let turns = 0;
  let isMade = false;
  const count = (): void => {
    turns++;
    if (!isMade) setImmediate(count);
  };
  count();
  const gone = new AbortController();
  const [made, left] = [ask({ limit: 1_000, offset: 0 }), ask({ limit: 900, offset: 0 }, gone.signal)];
  gone.abort();
  await t.rejects(left as Promise<Reply>, /nobody waits/);
  await made;
  isMade = true;
  t.ok(turns > 5, `${turns} turns`);
});

t.test("small lists are answered at once", async (t) => {
  const { ask } = cellWith(300);
  t.notOk(ask({ limit: 1_000, offset: 0 }) instanceof Promise);
});
