import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { jsonReply } from "../../../http/replies/reply.js";
import { declaredBody } from "../../helpers/http/declared-body.js";
import { type DeclaredHandler, onEveryFront } from "../../helpers/http/handler-server.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";

const BODY = declaredBody({
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 10 },
    kinds: { type: "array", items: { enum: ["a", "b"] }, minItems: 1, uniqueItems: true },
    pause: { type: ["number", "null"], minimum: 0, maximum: 30 },
    secret: { type: ["string", "null"], maxLength: 5, writeOnly: true },
    free: { type: "object" },
  },
  required: ["name"],
  additionalProperties: false,
});

const echo: DeclaredHandler = { body: BODY, handle: (request) => jsonReply(request.body, 201) };

function post(body: string, headers = "Content-Type: application/json\r\n", method = "POST"): string {
  const length = Buffer.byteLength(body, "latin1");
  return `${method} /things HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: ${length}\r\n\r\n${body}`;
}

const HANDLERS = { "POST /things": echo, "PATCH /things": echo, "/ok": () => jsonReply("ok") };

onEveryFront(
  t,
  "a body comes as JSON to the handler, in one piece or byte by byte, and the connection goes on",
  async (t, serve) => {
    const { port } = await serve(t, HANDLERS);
    const value = { name: "é", kinds: ["a", "b"], pause: null, free: { x: [1, { y: null }] } };
    const text = Buffer.from(JSON.stringify(value)).toString("latin1");
    for (const type of [
      ...["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"'],
      ...["application/json;", "application/json; charset=utf8", "application/json ; version=1 ;; charset=utf-8; "],
      ...['application/json; note="a;charset=latin1\\"b"'],
    ]) {
      const answer = await rawRequest(port, post(text, `Content-Type: ${type}\r\n`));
      t.equal(answer?.status, 201, type);
      t.same(answer?.json(), value);
    }
    const connection = await RawConnection.openFor(t, port);
    connection.socket.setNoDelay(true);
    for (const byte of post(text, undefined, "PATCH")) {
      connection.send(byte);
      await eventLoopTurn();
    }
    t.same((await connection.response())?.json(), value);
    connection.send(post(text));
    t.same((await connection.response())?.json(), value, "on the same connection");
  },
);

onEveryFront(
  t,
  "fields that do not fit are named, each with what came and what is allowed; a secret is not shown",
  async (t, serve) => {
    const { port } = await serve(t, HANDLERS);
    const ask = async (body: unknown) => {
      const answer = await rawRequest(port, post(JSON.stringify(body)));
      t.equal(answer?.status, 422, JSON.stringify(body).slice(0, 100));
      const envelope = answer?.json() ?? {};
      const { code, message, params } = envelope as { code: string; message: string; params: object };
      t.equal(code, "invalid_parameter");
      t.ok(message.length < 8000);
      return params;
    };
    t.same(await ask({}), { field: "name", in: "body", value: null, allowed: "present" });
    t.same(await ask([]), { field: "", in: "body", value: null, allowed: "of type object" });
    // What stands where it does not belong may be a secret.
    t.match(await ask([{ secret: "hunter2" }]), { field: "", value: null });
    t.match(await ask("hunter2"), { field: "", value: null });
    t.match(await ask({ name: { secret: "hunter2" } }), { field: "name", value: "an object" });
    t.match(await ask({ name: "n", kinds: "http://u:hunter2@h/" }), { field: "kinds", value: "http://…@h/" });
    t.same(await ask({ name: "n", pause: 31 }), { field: "pause", in: "body", value: 31, allowed: "<= 30" });
    t.same(await ask({ name: "n", pause: "1" }), {
      field: "pause",
      in: "body",
      value: "1",
      allowed: "of type number or null",
    });
    t.match(await ask({ name: "n", kinds: ["a", "c"] }), { field: "kinds/1", value: "c", allowed: "one of a, b" });
    t.match(await ask({ name: "n", kinds: [] }), { field: "kinds", value: "a list", allowed: "at least 1 item" });
    t.match(await ask({ name: "n", kinds: ["a", "a"] }), { field: "kinds", allowed: /duplicate items/ });
    t.match(await ask({ name: "x".repeat(11) }), { field: "name", allowed: "at most 10 characters" });
    t.match(await ask({ name: "n", "a/b": 1 }), {
      field: "a~1b",
      value: null,
      allowed: "absent: the fields are name, kinds, pause, secret, free",
    });
    t.match(await ask({ name: "n", secret: "hunter2" }), { field: "secret", value: null });
    t.match(await ask({ name: "n", secret: 12345 }), { field: "secret", value: null });
    const both = await ask({ name: 1, pause: -1 });
    t.match(both, {
      field: "name",
      faults: listOf({ field: "name", value: 1 }, { field: "pause", value: -1, allowed: ">= 0" }),
    });
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`field_${n}`, n]));
    t.equal(((await ask(many)) as { faults: unknown[] }).faults.length, 20, "a bounded list of them");
  },
);

onEveryFront(
  t,
  "what is not JSON, not said to be JSON, or cannot be kept is refused, and the connection goes on",
  async (t, serve) => {
    const { port } = await serve(t, HANDLERS);
    const deep = `{"name":"n","free":{"x":${"[".repeat(40)}${"]".repeat(40)}}}`;
    const json = "Content-Type: application/json\r\n";
    const cases: [name: string, text: string, status: number, code: string][] = [
      ["broken", post('{"name":"secret'), 422, "malformed_json"],
      ["empty", post(""), 422, "malformed_json"],
      ["not UTF-8", post('{"name":"\xff"}'), 422, "malformed_json"],
      ["65,000 open brackets", post("[".repeat(65_000)), 422, "malformed_json"],
      ["half a surrogate pair", post('{"name":"\\ud800"}'), 422, "invalid_parameter"],
      ["__proto__", post('{"name":"n","free":{"__proto__":1}}'), 422, "invalid_parameter"],
      ["too deep", post(deep), 422, "invalid_parameter"],
      ["a number over all", post('{"name":"n","pause":1e999}'), 422, "invalid_parameter"],
      ["no type", post("{}", ""), 415, "unsupported_media_type"],
      ["a form", post("a=b", "Content-Type: application/x-www-form-urlencoded\r\n"), 415, "unsupported_media_type"],
      ...[
        "; charset=latin1",
        "; v=1; Charset=latin1",
        " charset=utf-8",
        "; charset",
        '; a="b',
        "x",
        "+xml",
        "; a=b c=d",
      ].map(
        (rest) =>
          [rest, post("{}", `Content-Type: application/json${rest}\r\n`), 415, "unsupported_media_type"] as [
            ...[string, string, number, string],
          ],
      ),
      ["two types", post("{}", json + json), 415, "unsupported_media_type"],
      ["gzip", post("{}", `${json}Content-Encoding: gzip\r\n`), 415, "unsupported_media_type"],
    ];
    for (const [name, text, status, code] of cases) {
      const connection = await RawConnection.open(port);
      connection.send(text);
      const answer = await connection.response();
      t.equal(answer?.status, status, name);
      t.match(answer?.json(), { code }, name);
      t.notMatch(answer?.body.toString(), /secret/);
      connection.send("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n");
      t.equal((await connection.response())?.json(), "ok", `${name}: the connection goes on`);
      connection.close();
    }
  },
);

onEveryFront(
  t,
  "a body over the limit is refused before it comes, one without length too; nothing after it is read",
  async (t, serve) => {
    const { port } = await serve(t, HANDLERS);
    const cases: [name: string, text: string, status: number, code: string][] = [
      [
        "too large",
        `POST /things HTTP/1.1\r\nHost: x\r\nContent-Length: ${LIMITS.httpBodyBytes + 1}\r\n\r\n`,
        413,
        "payload_too_large",
      ],
      ["POST without length", "POST /things HTTP/1.1\r\nHost: x\r\n\r\n", 411, "length_required"],
      ["PATCH without length", "PATCH /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n", 411, "length_required"],
      ["chunked", "POST /things HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411, "length_required"],
    ];
    for (const [name, text, status, code] of cases) {
      const connection = await RawConnection.open(port);
      connection.send(text);
      const answer = await connection.response();
      t.equal(answer?.status, status, name);
      t.match(answer?.json(), { code }, name);
      t.equal(answer?.headers.connection, "close", name);
      await connection.closed;
      connection.close();
    }
    const largest = `{"name":"n"${" ".repeat(LIMITS.httpBodyBytes - 12)}}`;
    t.equal(largest.length, LIMITS.httpBodyBytes);
    t.equal((await rawRequest(port, post(largest)))?.status, 201);
  },
);

onEveryFront(
  t,
  "a client that goes in the middle of its body harms nobody; one that stalls meets the deadline",
  async (t, serve) => {
    const { port, lines } = await serve(t, HANDLERS, { deadlineMs: 50 });
    const gone = await RawConnection.open(port);
    gone.send("POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    await eventLoopTurn();
    gone.close();
    const stalled = await RawConnection.open(port);
    stalled.send("POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    const answer = await stalled.response();
    t.equal(answer?.status, 503);
    t.match(answer?.json(), { code: "unavailable", params: { deadline_ms: 50 } });
    await stalled.closed;
    stalled.close();
    t.same(lines, [], "no failure of the service");
  },
);
