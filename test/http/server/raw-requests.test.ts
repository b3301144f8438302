import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t, { type Test } from "tap";
import { jsonReply } from "../../../http/replies/reply.js";
import { declaredBody } from "../../helpers/http/declared-body.js";
import { onEveryFront } from "../../helpers/http/handler-server.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { columnOf, type Outcome, RAW_CASES, type RawCase } from "../../helpers/http/raw-request-table.js";
import { resetConnection } from "../../helpers/http/reset-connection.js";

const THING = declaredBody({
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
  additionalProperties: false,
});

/** Plays a case that should have this outcome. @returns the outcome it had */
async function play(t: Test, { chunks }: RawCase, expected: Outcome, port: number): Promise<Outcome> {
  const connection = await RawConnection.open(port);
  connection.socket.setNoDelay(true);
  try {
    for (const chunk of chunks) {
      if (chunk === "end") connection.socket.end();
      else if (chunk === "reset") resetConnection(connection.socket);
      else connection.send(chunk);
      await eventLoopTurn();
    }
    const seen: string[] = [];
    let method = chunks[0]?.startsWith("HEAD") ? "HEAD" : "GET";
    const end = expected.split(" ").at(-1) as string;
    for (let count = expected.split(" ").length - 1; count > 0; count--) {
      const response = await connection.response(method);
      if (response === undefined) return [...seen, "closed too early"].join(" ");
      const { status, headers } = response;
      // What the library refuses itself has no trace id, and no envelope.
      const isOurs = status >= 400 && headers["x-trace-id"] !== undefined && method !== "HEAD";
      if (isOurs) t.match(response.json(), { code: String, message: String, trace_id: headers["x-trace-id"] });
      seen.push(String(status));
      method = "GET";
    }
    if (end === "open") connection.send("GET /probe HTTP/1.1\r\nHost: x\r\n\r\n");
    const last = await connection.response();
    if (last === undefined) return [...seen, end === "open" ? "closed" : end].join(" ");
    return [...seen, last.status === 200 && last.json() === "probe" ? "open" : last.status].join(" ");
  } finally {
    connection.close();
  }
}

onEveryFront(t, `${RAW_CASES.length} requests as no client library sends them`, async (t, serve, front, here) => {
  let smuggled = 0;
  const { port, lines } = await serve(t, {
    "/a": () => jsonReply(1),
    "/probe": () => jsonReply("probe"),
    "/until-gone": async (request) => {
      while (!request.gone().aborted) await eventLoopTurn();
      return jsonReply(1);
    },
    "POST /act": () => jsonReply(1),
    "DELETE /act": () => jsonReply(1),
    "POST /things": { body: THING, handle: (request) => jsonReply(request.body, 201) },
    "/smuggled": () => {
      smuggled++;
      return jsonReply(2);
    },
  });
  // Side by side: a silent case takes as long as the front's time limit for idle connections.
  await Promise.all(
    RAW_CASES.map(async (one) => {
      const { outcome } = one;
      const expected = typeof outcome === "string" ? outcome : outcome[columnOf(here)];
      t.equal(await play(t, one, expected, port), expected, one.name);
    }),
  );
  // uWebSockets.js takes an empty header name for the end of the head, and shows nobody the Content-Length behind it.
  t.equal(smuggled, front === "uws" ? 1 : 0, "no request ran out of another one, but where http/README.md says so");
  t.same(lines, [], "no failure of the service");
  t.equal((await rawRequest(port, "GET /probe HTTP/1.1\r\nHost: x\r\n\r\n"))?.status, 200, "it lives");
});
