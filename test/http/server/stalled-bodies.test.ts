import t, { type Test } from "tap";
import { jsonReply } from "../../../http/replies/reply.js";
import { declaredBody } from "../../helpers/http/declared-body.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";

/** Together more than the 32 MiB of bodies that may be read at a time: the last are refused. */
const CLIENTS = 590;
const BODY_BYTES = 60_000;

const things = {
  "POST /things": { body: declaredBody({ type: "object" }), handle: () => jsonReply({ taken: true }, 201) },
};

function upload(sent: string): string {
  return `POST /things HTTP/1.1\r\nHost: cell\r\nContent-Type: application/json\r\nContent-Length: ${BODY_BYTES}\r\n\r\n${sent}`;
}

async function honestUpload(port: number): Promise<number | undefined> {
  return (await rawRequest(port, upload("{}".padEnd(BODY_BYTES))))?.status;
}

/** Clients that announce a body and send a part of it at most, with the status that each of them gets. */
async function stall(t: Test, port: number): Promise<{ clients: RawConnection[]; answers: (number | undefined)[] }> {
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => RawConnection.open(port)));
  t.teardown(async () => {
    for (const client of clients) client.close();
  });
  const answers: (number | undefined)[] = [];
  for (const [at, client] of clients.entries()) {
    client.send(upload("{".repeat(at % 7)));
    void client.response().then((answer) => answers.push(answer?.status));
  }
  return { clients, answers };
}

onEveryFront(t, "a body that stalls gives its room back at the deadline", async (t, serve) => {
  // Long enough to open all connections on a busy machine before the first body's deadline.
  const { port } = await serve(t, things, { deadlineMs: 4_000 });
  const { clients, answers } = await stall(t, port);
  t.equal(await honestUpload(port), 503, "the room is taken");
  await until(() => answers.length === CLIENTS);
  t.same(new Set(answers), new Set([503]), "each was told");
  t.equal(await honestUpload(port), 201, "there is room again, while the clients are still there");
  await Promise.all(clients.map(({ closed }) => closed));
  t.equal(await honestUpload(port), 201);
});

onEveryFront(t, "a body whose client leaves gives its room back at once", async (t, serve) => {
  const { port } = await serve(t, things);
  const { clients } = await stall(t, port);
  t.equal(await honestUpload(port), 503, "the room is taken");
  for (const client of clients) client.close();
  let status: number | undefined;
  while (status !== 201) status = await honestUpload(port);
  t.equal(status, 201);
});
