import t from "tap";
import { jsonReply } from "../../../http/replies/reply.js";
import { BodiesBeingRead } from "../../../http/requests/bodies-being-read.js";
import { declaredBody } from "../../helpers/http/declared-body.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { RawConnection, type RawResponse, rawRequest } from "../../helpers/http/raw-http.js";

/** Together more than the 32 MiB of bodies that may be read at a time: the first must make room. */
const CLIENTS = 590;
const BODY_BYTES = 60_000;
const FIT = Math.floor((32 * 1024 * 1024) / BODY_BYTES);

const things = {
  "POST /things": { body: declaredBody({ type: "object" }), handle: () => jsonReply({ taken: true }, 201) },
};

function upload(sent: string): string {
  return `POST /things HTTP/1.1\r\nHost: cell\r\nContent-Type: application/json\r\nContent-Length: ${BODY_BYTES}\r\n\r\n${sent}`;
}

async function honestUpload(port: number): Promise<number | undefined> {
  return (await rawRequest(port, upload("{}".padEnd(BODY_BYTES))))?.status;
}

/** A client that announces a body and sends a part of it at most. */
async function stall(port: number, at: number): Promise<RawConnection> {
  const client = await RawConnection.open(port);
  client.send(upload("{".repeat(at % 7)));
  return client;
}

onEveryFront(t, "a body that stalls makes room for others; else it is told so at the deadline", async (t, serve) => {
  // Long enough to open all connections on a busy machine before the first body's deadline.
  const { port } = await serve(t, things, { deadlineMs: 4_000 });
  const clients = await Promise.all(Array.from({ length: CLIENTS }, (_, at) => stall(port, at)));
  t.teardown(async () => {
    for (const client of clients) client.close();
  });
  const answers: RawResponse[] = [];
  for (const client of clients) void client.response().then((answer) => answer !== undefined && answers.push(answer));
  t.equal(await honestUpload(port), 201, "beside as many as there is room for");
  await until(() => answers.length === CLIENTS);
  const isAtDeadline = (answer: RawResponse) => "deadline_ms" in (answer.json() as { params: object }).params;
  const [early, late] = [answers.filter((one) => !isAtDeadline(one)), answers.filter(isAtDeadline)];
  // Fewer have to go on a slow machine, where the first deadline comes while clients still connect.
  t.ok(early.length > 0 && early.length <= CLIENTS + 1 - FIT, "no more than had to go");
  t.match(early[0]?.json(), { code: "unavailable", retryable: true, params: { retry_after_seconds: 1 } });
  t.equal(early[0]?.headers["retry-after"], "1");
  t.match(late[0]?.json(), { code: "unavailable", params: { deadline_ms: 4_000 } });
  await Promise.all(clients.map(({ closed }) => closed));
  t.equal(await honestUpload(port), 201);
});

onEveryFront(t, "an upload is taken while others stall theirs, again and again", async (t, serve) => {
  const { port } = await serve(t, things);
  let isOver = false;
  let end = () => {};
  const over = new Promise<void>((resolve) => {
    end = resolve;
  });
  let stalled = 0;
  const hostile = Array.from({ length: CLIENTS }, async (_, at) => {
    while (!isOver) {
      const client = await stall(port, at);
      stalled++;
      // Until it is refused, it holds what it can.
      await Promise.race([client.closed, over]);
      client.close();
    }
  });
  await until(() => stalled >= CLIENTS);
  const statuses = new Set<number | undefined>();
  for (let nth = 0; nth < 30; nth++) statuses.add(await honestUpload(port));
  isOver = true;
  end();
  await Promise.all(hostile);
  t.same(statuses, new Set([201]));
  t.ok(stalled > CLIENTS, `${stalled} stalled`);
});

t.test("the oldest bodies make room, and no more than must; who has left takes none", async (t) => {
  const bodies = new BodiesBeingRead(100);
  const ousted: string[] = [];
  const enter = (name: string, lengthBytes: number) => bodies.enter(lengthBytes, () => ousted.push(name));
  const a = enter("a", 40);
  const b = enter("b", 40);
  enter("c", 20);
  t.same(ousted, []);
  bodies.leave(a);
  bodies.leave(a);
  enter("d", 40);
  t.same(ousted, [], "a has left");
  enter("e", 50);
  t.same(ousted, ["b", "c"]);
  t.ok(b.isOusted);
  t.notOk(a.isOusted);
  bodies.leave(b);
  enter("f", 10);
  t.same(ousted, ["b", "c"], "what had to go gives its room back once");
  enter("g", 1_000);
  t.same(ousted, ["b", "c", "d", "e", "f"], "one alone may be larger than all");
});
