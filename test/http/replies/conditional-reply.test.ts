import { setImmediate as eventLoopTurn } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import t from "tap";
import { accepts } from "../../../http/replies/accepted-coding.js";
import { parseRange } from "../../../http/replies/byte-range.js";
import { downloadReply, jsonBytesReply, jsonReply, storedValidators } from "../../../http/replies/reply.js";
import { CrossOrigin } from "../../../http/requests/cross-origin.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { resetConnection } from "../../helpers/http/reset-connection.js";

const SIZE = 1_000_000;
const BYTES = Buffer.from(Uint8Array.from({ length: SIZE }, (_, at) => (at * 31 + (at >> 8) * 7) & 0xff));
const MODIFIED = "Sat, 31 Jan 2026 12:00:00 GMT";
const VALIDATORS = storedValidators(0xabcdef, SIZE, (Date.parse(MODIFIED) + 400) * 1000);
const ETAG = '"00abcdef-f4240"';

function fileHandlers() {
  const seen = { opened: 0, released: 0 };
  const file = (bytes: Uint8Array) => {
    seen.opened++;
    const body = {
      totalBytes: bytes.byteLength,
      read: async (position: number, lengthBytes: number) => bytes.subarray(position, position + lengthBytes),
      release: () => {
        seen.released++;
      },
    };
    return downloadReply(body, "application/octet-stream", "a.bin", VALIDATORS);
  };
  return { seen, handlers: { "/file": () => file(BYTES), "/empty": () => file(new Uint8Array(0)) } };
}

const request = (path: string, headers: string[] = [], method = "GET") =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`;

t.test("which bytes a Range asks for", async (t) => {
  const cases: [header: string | undefined, total: number, range: ReturnType<typeof parseRange>][] = [
    [undefined, 10, undefined],
    ["bytes=0-0", 10, { first: 0, last: 0 }],
    ["bytes=2-5", 10, { first: 2, last: 5 }],
    ["Bytes= 2-5 ", 10, { first: 2, last: 5 }],
    ["bytes=9-", 10, { first: 9, last: 9 }],
    ["bytes=0-999", 10, { first: 0, last: 9 }],
    ["bytes=-3", 10, { first: 7, last: 9 }],
    ["bytes=-30", 10, { first: 0, last: 9 }],
    ["bytes=10-", 10, "unsatisfiable"],
    ["bytes=10-11", 10, "unsatisfiable"],
    ["bytes=-0", 10, "unsatisfiable"],
    ["bytes=0-", 0, "unsatisfiable"],
    ["bytes=-0", 0, "unsatisfiable"],
    ["bytes=-1", 0, undefined],
    ["bytes=-500", 0, undefined],
    ["bytes=5-2", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["bytes=-", 10, undefined],
    ["bytes=a-b", 10, undefined],
    ["bytes=1 - 2", 10, undefined],
    ["bytes=0x1-2", 10, undefined],
    ["lines=0-1", 10, undefined],
    ["bytes=0-99999999999999999999", 10, { first: 0, last: 9 }],
    ["bytes=3-9223372036854775807", 10, { first: 3, last: 9 }],
    [`bytes=3-${"9".repeat(400)}`, 10, { first: 3, last: 9 }],
    ["bytes=0000000000000000000003-0000000000000000000004", 10, { first: 3, last: 4 }],
    ["bytes=9223372036854775807-", 10, "unsatisfiable"],
    ["bytes=9223372036854775807-9223372036854775807", 10, "unsatisfiable"],
    [`bytes=${"9".repeat(400)}-`, 10, "unsatisfiable"],
    ["bytes=9007199254740993-9007199254740992", 10, undefined],
    ["bytes=-9223372036854775807", 10, { first: 0, last: 9 }],
    [`bytes=-${"9".repeat(400)}`, 10, { first: 0, last: 9 }],
    ["bytes=-0000000000000000000000", 10, "unsatisfiable"],
  ];
  for (const [header, total, range] of cases) t.same(parseRange(header, total), range, `${header} of ${total}`);
});

t.test("who takes gzip", async (t) => {
  for (const yes of ["gzip", "deflate, gzip;q=0.5, br", "GZIP", "x-gzip", "br,gzip ; q=1.0"])
    t.ok(accepts(yes, "gzip"), yes);
  for (const no of [undefined, "", "br", "gzip;q=0", "gzip;q=0.000", "agzip", "gzippy", "*"])
    t.notOk(accepts(no, "gzip"), String(no));
});

onEveryFront(t, "a download whole, in part, by HEAD and under conditions", async (t, serve) => {
  const { seen, handlers } = fileHandlers();
  const { port } = await serve(t, handlers);
  const get = async (headers: string[], method = "GET", path = "/file") => {
    const response = await rawRequest(port, request(path, headers, method), method);
    if (response === undefined) throw new Error(`no answer to ${method} ${headers}`);
    return response;
  };
  const whole = await get([]);
  t.equal(whole.status, 200);
  t.ok(whole.body.equals(BYTES));
  const kept = { etag: ETAG, "last-modified": MODIFIED, "accept-ranges": "bytes" };
  t.match(whole.headers, {
    ...kept,
    "content-length": String(SIZE),
    "content-disposition": 'attachment; filename="a.bin"',
  });

  const part = await get(["Range: bytes=10-299999"]);
  t.equal(part.status, 206);
  t.match(part.headers, { ...kept, "content-range": `bytes 10-299999/${SIZE}` });
  t.ok(part.body.equals(BYTES.subarray(10, 300_000)));
  const outside = await get(["Range: bytes=1000000-"]);
  t.equal(outside.status, 416);
  t.equal(outside.headers["content-range"], `bytes */${SIZE}`);
  t.match(outside.json(), { code: "range_not_satisfiable", params: { field: "range", value: "bytes=1000000-" } });
  const end = await get(["Range: bytes=-500"], "GET", "/empty");
  t.match({ status: end.status, headers: end.headers }, { status: 200, headers: { "content-length": "0" } });
  t.equal(end.headers["content-range"], undefined, "the end of nothing is all of it");

  for (const method of ["GET", "HEAD"]) {
    const same = await get(['If-None-Match: "a"', `If-None-Match: ${ETAG}`], method);
    t.equal(same.status, 304, method);
    t.match(same.headers, { etag: ETAG, "last-modified": MODIFIED });
    t.equal(same.headers["content-type"], undefined);
    t.equal(same.body.length, 0);
  }
  const head = await get(["Range: bytes=0-1"], "HEAD");
  t.equal(head.status, 200, "a range counts for GET only");
  t.match(head.headers, { ...kept, "content-length": String(SIZE) });
  await until(() => seen.released === seen.opened);
});

onEveryFront(t, "after a 304 and a 204 the connection goes on, with nothing between", async (t, serve) => {
  const { port } = await serve(t, fileHandlers().handlers);
  const connection = await RawConnection.openFor(t, port);
  connection.send(request("/file", [`If-None-Match: ${ETAG}`]));
  t.equal((await connection.response())?.status, 304);
  connection.send(request("/file", [], "OPTIONS"));
  const options = await connection.response();
  t.equal(options?.status, 204);
  t.equal(options?.headers.allow, "GET, HEAD, OPTIONS");
  connection.send(request("/file", ["Range: bytes=0-3"]));
  t.ok((await connection.response())?.body.equals(BYTES.subarray(0, 4)));
});

onEveryFront(t, "a client that resets in the middle of a download leaks nothing", async (t, serve) => {
  const { seen, handlers } = fileHandlers();
  const { port } = await serve(t, handlers);
  for (let count = 0; count < 30; count++) {
    const connection = await RawConnection.open(port);
    connection.send(request("/file", count % 2 === 0 ? [] : ["Range: bytes=100-"]));
    for (let turns = count % 7; turns > 0; turns--) await eventLoopTurn();
    resetConnection(connection.socket);
  }
  // The last ones may still be on their way in.
  const last = await rawRequest(port, request("/file", ["Range: bytes=0-0"]));
  t.equal(last?.status, 206);
  await until(() => seen.released === seen.opened);
  t.ok(seen.opened > 1, `${seen.opened} were opened, and let go`);
});

onEveryFront(t, "JSON has a tag, answers 304 to it, and comes compressed to who takes that", async (t, serve) => {
  let text = "x".repeat(10_000);
  const kept = jsonBytesReply(Buffer.from(JSON.stringify({ text: "y".repeat(10_000) })), true);
  const { port } = await serve(t, {
    "/large": () => jsonReply({ text }),
    "/kept": () => kept,
    "/small": () => jsonReply({ a: 1 }),
    "/later": async () => jsonReply({ text }),
    "/down": () => jsonReply({ text }, 503),
  });
  const get = async (path: string, headers: string[] = [], method = "GET") => {
    const response = await rawRequest(port, request(path, headers, method), method);
    if (response === undefined) throw new Error(`no answer to ${method} ${path}`);
    return response;
  };
  for (const path of ["/large", "/kept", "/later", "/kept"]) {
    const plain = await get(path);
    const etag = plain.headers.etag as string;
    t.match(etag, /^W\/"[A-Za-z0-9_-]{16}"$/);
    t.equal(plain.headers["content-encoding"], undefined);
    t.equal(plain.headers.vary, "Accept-Encoding");
    const gzipped = await get(path, ["Accept-Encoding: gzip, br"]);
    t.equal(gzipped.headers["content-encoding"], "gzip", path);
    t.match(gzipped.headers, { etag, vary: "Accept-Encoding", "content-type": "application/json" });
    t.ok(gzipped.body.length < 200);
    t.ok(gunzipSync(gzipped.body).equals(plain.body));
    const head = await get(path, ["Accept-Encoding: gzip"], "HEAD");
    t.equal(head.headers["content-length"], String(gzipped.body.length));
    const same = await get(path, [`If-None-Match: ${etag}`, "Accept-Encoding: gzip"]);
    t.equal(same.status, 304, path);
    t.match(same.headers, { etag, vary: "Accept-Encoding" });
  }
  const before = (await get("/large")).headers.etag;
  text = "z";
  const after = await get("/large", [`If-None-Match: ${before}`]);
  t.equal(after.status, 200, "another content, another tag");
  t.not(after.headers.etag, before);
  const small = await get("/small", ["Accept-Encoding: gzip"]);
  t.equal(small.headers["content-encoding"], undefined, "not worth it");
  t.equal((await get("/down")).headers.etag, undefined, "an error has no tag");
});

onEveryFront(t, "pages of allowed origins may read, and ask before they write; others may not", async (t, serve) => {
  const origin = "Origin: https://dashboard.factory";
  const handlers = { "/a": () => jsonReply(1), "POST /a": () => jsonReply(2) };
  const some = await serve(t, handlers, { crossOrigin: new CrossOrigin(["https://dashboard.factory"]) });
  const none = await serve(t, handlers);
  const any = await serve(t, handlers, { crossOrigin: new CrossOrigin(["*"]) });
  const headersOf = async (port: number, headers: string[], method = "GET", path = "/a") =>
    (await rawRequest(port, request(path, headers, method), method))?.headers ?? {};
  t.match(await headersOf(some.port, [origin]), {
    "access-control-allow-origin": "https://dashboard.factory",
    "access-control-expose-headers": /X-Trace-ID/,
    vary: "Origin",
  });
  t.equal(
    (await headersOf(some.port, [origin], "GET", "/nowhere"))["access-control-allow-origin"],
    "https://dashboard.factory",
  );
  const other = await headersOf(some.port, ["Origin: https://elsewhere"]);
  t.equal(other["access-control-allow-origin"], undefined);
  t.equal(other.vary, "Origin");
  t.equal((await headersOf(none.port, [origin]))["access-control-allow-origin"], undefined);
  t.equal((await headersOf(any.port, [origin]))["access-control-allow-origin"], "*");
  const preflight = await headersOf(some.port, [origin, "Access-Control-Request-Method: POST"], "OPTIONS");
  t.match(preflight, {
    "access-control-allow-origin": "https://dashboard.factory",
    "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
    "access-control-allow-headers": /Authorization/,
    "access-control-max-age": "600",
  });
  const refused = await headersOf(some.port, ["Origin: https://x", "Access-Control-Request-Method: POST"], "OPTIONS");
  t.equal(refused["access-control-allow-methods"], undefined);
});

onEveryFront(t, "a page of another origin may write only where --cors-origin names it", async (t, serve) => {
  const seen: string[] = [];
  const handlers = Object.fromEntries(
    ["GET /a", "POST /a", "PATCH /a", "DELETE /a"].map((name) => [
      name,
      () => {
        seen.push(name);
        return jsonReply(1);
      },
    ]),
  );
  const some = await serve(t, handlers, { crossOrigin: new CrossOrigin(["https://dashboard.factory"]) });
  const none = await serve(t, handlers, { baseUrl: "https://mes.example:8443/cell" });
  const any = await serve(t, handlers, { crossOrigin: new CrossOrigin(["*"]) });
  const status = async (port: number, method: string, headers: string[]) => {
    const response = await rawRequest(port, request("/a", [...headers, "Content-Length: 0"], method), method);
    if (response?.status === 403) t.match(response.json(), { code: "forbidden", params: { field: "origin" } });
    return response?.status;
  };
  const own: string[][] = [
    ...[[], ["Origin: http://x"], ["Origin: https://x"], ["Sec-Fetch-Site: same-origin"], ["Sec-Fetch-Site: none"]],
    // Behind a proxy that names another Host: the browser's word counts.
    ["Origin: https://front.example", "Sec-Fetch-Site: same-origin"],
  ];
  const foreign: string[][] = [
    ...[["Origin: https://evil.example"], ["Origin: null"], ["Origin: http://x:81"], ["Origin: http://x.evil.example"]],
    ...[["Sec-Fetch-Site: cross-site"], ["Sec-Fetch-Site: same-site"], ["Origin: "], ["Origin: https://evil@x"]],
    ["Origin: http://x", "Sec-Fetch-Site: cross-site"],
    ["Origin: http://x", "Origin: https://evil.example"],
  ];
  for (const method of ["POST", "PATCH", "DELETE"]) {
    for (const headers of own) t.equal(await status(none.port, method, headers), 200, `${method} ${headers}`);
    for (const headers of foreign) {
      seen.length = 0;
      for (const { port } of [none, some]) t.equal(await status(port, method, headers), 403, `${method} ${headers}`);
      t.same(seen, [], "no handler ran");
    }
    const dashboard = ["Origin: https://dashboard.factory", "Sec-Fetch-Site: cross-site"];
    t.equal(await status(some.port, method, dashboard), 200, "one that may");
    t.equal(await status(none.port, method, dashboard), 403);
    t.equal(await status(any.port, method, dashboard), 200);
    t.equal(await status(none.port, method, ["Origin: https://mes.example:8443"]), 200, "that of --base-url");
    t.equal(await status(none.port, method, ["Origin: https://mes.example"]), 403);
  }
  for (const headers of foreign) t.equal(await status(none.port, "GET", headers), 200, "reads are a matter of CORS");
});
