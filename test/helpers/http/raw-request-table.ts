/**
 * What must come back: statuses in order, then what becomes of the connection. `open`: it goes on; `closed`: at once; `silent`: the front
 * neither answers nor closes, until its time limit for idle connections does.
 */
export type Outcome = string;

export interface RawCase {
  name: string;
  /** Written one after the other, each in a packet of its own; "end" half-closes, "reset" resets. */
  chunks: readonly string[];
  /** `200 200 open`, `400 closed`, `closed`. Three where the fronts differ, by column. */
  outcome: Outcome | readonly [uws2023: Outcome, uws: Outcome, node: Outcome];
}

/** Where the outcome of a front stands: the build of uWebSockets.js of 2023, later ones, node:http. */
export function columnOf({ front, uwsVersion = "" }: { front: string; uwsVersion?: string }): 0 | 1 | 2 {
  if (front === "node") return 2;
  return uwsVersion.startsWith("20.30.") ? 0 : 1;
}

const END = "end";
const H = "Host: cell\r\n";
const JSON_TYPE = "Content-Type: application/json\r\n";
/** A request that must never run out of another one. */
const SMUGGLED = `GET /smuggled HTTP/1.1\r\n${H}\r\n`;
const get = (headers = "", path = "/a") => `GET ${path} HTTP/1.1\r\n${H}${headers}\r\n`;
const post = (body: string, headers = JSON_TYPE, length: string | number = body.length) =>
  `POST /things HTTP/1.1\r\n${H}${headers}Content-Length: ${length}\r\n\r\n${body}`;
const BODY = '{"name":"n"}';

const one = (name: string, text: string, outcome: RawCase["outcome"]): RawCase => ({ name, chunks: [text], outcome });
const many = (name: string, chunks: readonly string[], outcome: RawCase["outcome"]): RawCase => ({
  name,
  chunks,
  outcome,
});

/** Requests as no client library sends them, for every front. */
export const RAW_CASES: readonly RawCase[] = [
  // Sound ones.
  one("plain", get(), "200 open"),
  one("HEAD", `HEAD /a HTTP/1.1\r\n${H}\r\n`, "200 open"),
  one("OPTIONS", `OPTIONS /a HTTP/1.1\r\n${H}\r\n`, "204 open"),
  one("connection close", get("Connection: close\r\n"), "200 closed"),
  one("unknown path", get("", "/nowhere"), "404 open"),
  one("unknown method of the grammar", `PUT /a HTTP/1.1\r\n${H}Content-Length: 0\r\n\r\n`, "405 open"),
  one("a body where none is due", `${get("Content-Length: 5\r\n")}hello`, "200 open"),
  one("a POST without body where none is due", `POST /act HTTP/1.1\r\n${H}\r\n`, "200 open"),
  one("a DELETE without body", `DELETE /act HTTP/1.1\r\n${H}\r\n`, "200 open"),
  one("a body", post(BODY), "201 open"),
  many("a body after its head", [post("", JSON_TYPE, BODY.length), BODY], "201 open"),
  many("a body byte by byte", [post("", JSON_TYPE, BODY.length), ...BODY], "201 open"),
  many("a head byte by byte", [...get()], "200 open"),
  many("a head cut within its line end", [get().slice(0, -1), "\n"], "200 open"),
  one("Expect: 100-continue", post(BODY, `${JSON_TYPE}Expect: 100-continue\r\n`), "100 201 open"),
  one("an expectation nobody knows", get("Expect: tea\r\n"), "200 open"),
  one("an upgrade nobody offers", get("Connection: Upgrade\r\nUpgrade: websocket\r\n"), "200 open"),
  one("a preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ["silent", "505 closed", "400 closed"]),
  // Pipelines.
  one("three in a row", get() + get() + get(), "200 200 200 open"),
  one("a skipped body, then another", `${get("Content-Length: 5\r\n")}hello${get()}`, "200 200 open"),
  one("a body, then another request", post(BODY) + get(), "201 200 open"),
  one("a request within a body", post(SMUGGLED), "422 open"),
  one("a request within a skipped body", get(`Content-Length: ${SMUGGLED.length}\r\n`) + SMUGGLED, "200 open"),
  one("a request within a refused type", post(SMUGGLED, "Content-Type: text/plain\r\n"), "415 open"),
  one("the last one by its own word, then another", get("Connection: close\r\n") + SMUGGLED, [
    "closed",
    "closed",
    "200 closed",
  ]),
  one("the last one among other options, then another", get("Connection: TE , Close\r\nTE: trailers\r\n") + SMUGGLED, [
    "closed",
    "closed",
    "200 closed",
  ]),
  one("the last one by a POST, then another", post(BODY, `${JSON_TYPE}Connection: close\r\n`) + SMUGGLED, "closed"),
  one("the last one by a HEAD", `HEAD /a HTTP/1.1\r\n${H}Connection: close\r\n\r\n`, "200 closed"),
  one("what the client has already, then another", get("If-None-Match: *\r\n") + get(), [
    "closed",
    "closed",
    "304 200 open",
  ]),
  one("OPTIONS and GET", `OPTIONS /a HTTP/1.1\r\n${H}\r\n${get()}`, ["closed", "closed", "204 200 open"]),
  one("OPTIONS of all", `OPTIONS * HTTP/1.1\r\n${H}\r\n`, ["silent", "505 closed", "204 open"]),
  one("HEAD and GET", `HEAD /a HTTP/1.1\r\n${H}\r\n${get()}`, ["closed", "closed", "200 200 open"]),
  // Transfer-Encoding.
  one("chunked", `${get("Transfer-Encoding: chunked\r\n")}0\r\n\r\n${SMUGGLED}`, ["closed", "closed", "411 closed"]),
  one(
    "chunked POST",
    `POST /things HTTP/1.1\r\n${H}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    "411 closed",
  ),
  one("chunked and a length", `${get("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")}0\r\n\r\n${SMUGGLED}`, [
    "closed",
    "400 closed",
    "400 closed",
  ]),
  one("a length and chunked", `${get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")}0\r\n\r\n${SMUGGLED}`, [
    "closed",
    "400 closed",
    "400 closed",
  ]),
  one("coding identity", get("Transfer-Encoding: identity\r\n") + SMUGGLED, ["closed", "400 closed", "411 closed"]),
  one("coding with a tab", `${get("Transfer-Encoding:\tchunked\r\n")}0\r\n\r\n${SMUGGLED}`, [
    "closed",
    "closed",
    "411 closed",
  ]),
  one("coding xchunked", get("Transfer-Encoding: xchunked\r\n") + SMUGGLED, ["closed", "400 closed", "411 closed"]),
  // Newer versions of Node take it for no HTTP.
  one("coding empty", get("Transfer-Encoding: \r\n") + SMUGGLED, [
    "closed",
    "closed",
    process.version.startsWith("v20.") ? "411 closed" : "400 closed",
  ]),
  one("coding gzip, chunked", `${get("Transfer-Encoding: gzip, chunked\r\n")}0\r\n\r\n${SMUGGLED}`, [
    "closed",
    "closed",
    "411 closed",
  ]),
  one("coding chunked twice", `${get("Transfer-Encoding: chunked\r\n".repeat(2))}0\r\n\r\n${SMUGGLED}`, [
    "closed",
    "closed",
    "400 closed",
  ]),
  one(
    "a request in a chunk",
    `${get("Transfer-Encoding: chunked\r\n")}${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
    ["411 closed", "411 closed", "411 closed"],
  ),
  one("coding with a space before the colon", get("Transfer-Encoding : chunked\r\n") + SMUGGLED, [
    "silent",
    "400 closed",
    "400 closed",
  ]),
  one("coding after an obsolete fold", get("X: y\r\n Transfer-Encoding: chunked\r\n") + SMUGGLED, [
    "silent",
    "400 closed",
    "400 closed",
  ]),
  // Content-Length.
  one("two lengths, the same", get("Content-Length: 0\r\nContent-Length: 0\r\n") + SMUGGLED, [
    "closed",
    "closed",
    "400 closed",
  ]),
  one("two lengths", get("Content-Length: 0\r\nContent-Length: 60\r\n") + SMUGGLED, ["closed", "closed", "400 closed"]),
  one("a list of lengths", get("Content-Length: 0, 60\r\n") + SMUGGLED, ["closed", "400 closed", "400 closed"]),
  one("an empty length", get("Content-Length: \r\n") + SMUGGLED, ["closed", "closed", "400 closed"]),
  one("a negative length", get("Content-Length: -1\r\n") + SMUGGLED, ["closed", "400 closed", "400 closed"]),
  one("a length with a plus", get("Content-Length: +5\r\n") + SMUGGLED, ["closed", "400 closed", "400 closed"]),
  one("a length in hex", get("Content-Length: 0x5\r\n") + SMUGGLED, ["closed", "400 closed", "400 closed"]),
  one("a length with a fraction", get("Content-Length: 5.0\r\n") + SMUGGLED, ["closed", "400 closed", "400 closed"]),
  one("a length of 10 digits", `${get("Content-Length: 0000000005\r\n")}hello${SMUGGLED}`, [
    "closed",
    "closed",
    "400 closed",
  ]),
  one("a length of 20 digits", get("Content-Length: 18446744073709551616\r\n") + SMUGGLED, [
    "closed",
    "400 closed",
    "400 closed",
  ]),
  one("a body over the limit", post("", JSON_TYPE, 65_537), "413 closed"),
  one("a body over the limit, and its begin", post("", JSON_TYPE, 65_537) + SMUGGLED, "413 closed"),
  one("a POST without length", `POST /things HTTP/1.1\r\n${H}${JSON_TYPE}\r\n${SMUGGLED}`, [
    "closed",
    "closed",
    "411 closed",
  ]),
  one("a PATCH without length", `PATCH /nowhere HTTP/1.1\r\n${H}\r\n${SMUGGLED}`, ["closed", "closed", "411 closed"]),
  // Refused by the service alone: with nothing after it, each has an answer.
  one("two lengths, and no more", get("Content-Length: 0\r\nContent-Length: 60\r\n"), "400 closed"),
  one("an empty length, and no more", get("Content-Length: \r\n"), "400 closed"),
  one("a length of 10 digits, and no more", get("Content-Length: 0000000005\r\n"), [
    "closed",
    "400 closed",
    "400 closed",
  ]),
  one("a POST without length, and no more", `POST /things HTTP/1.1\r\n${H}${JSON_TYPE}\r\n`, "411 closed"),
  one("an empty host, and no more", "GET /a HTTP/1.1\r\nHost: \r\n\r\n", "400 closed"),
  // Host.
  one("no host", `GET /a HTTP/1.1\r\n\r\n${SMUGGLED}`, ["silent", "400 closed", "400 closed"]),
  one("two hosts", `GET /a HTTP/1.1\r\n${H}${H}\r\n${SMUGGLED}`, ["closed", "400 closed", "400 closed"]),
  one("an empty host", `GET /a HTTP/1.1\r\nHost: \r\n\r\n${SMUGGLED}`, ["closed", "closed", "400 closed"]),
  one("a host with a path", `GET /a HTTP/1.1\r\nHost: x/y\r\n\r\n${SMUGGLED}`, ["closed", "closed", "400 closed"]),
  one("a host with user info", `GET /a HTTP/1.1\r\nHost: u@x\r\n\r\n${SMUGGLED}`, ["closed", "closed", "400 closed"]),
  // The first line.
  one("an absolute target", `GET http://cell/a HTTP/1.1\r\n${H}\r\n`, ["silent", "505 closed", "400 closed"]),
  one("CONNECT", `CONNECT cell:443 HTTP/1.1\r\n${H}\r\n`, ["silent", "505 closed", "closed"]),
  one("HTTP/1.0 with a host", `GET /a HTTP/1.0\r\n${H}\r\n`, ["silent", "505 closed", "200 closed"]),
  one("HTTP/0.9", "GET /a\r\n\r\n", ["silent", "505 closed", "400 closed"]),
  one("HTTP/1.2", `GET /a HTTP/1.2\r\n${H}\r\n`, ["silent", "505 closed", "400 closed"]),
  one("HTTP/2.0", `GET /a HTTP/2.0\r\n${H}\r\n`, ["silent", "505 closed", "400 closed"]),
  one("lower-case method", `get /a HTTP/1.1\r\n${H}\r\n`, ["closed", "400 closed", "400 closed"]),
  one("a method in a body's rest", `${post(BODY, JSON_TYPE, 2)} /a HTTP/1.1\r\n${H}\r\n`, [
    "closed",
    "422 400 closed",
    "closed",
  ]),
  one("a method nobody has", `BREW /a HTTP/1.1\r\n${H}\r\n`, ["closed", "405 open", "400 closed"]),
  one("two spaces", `GET  /a HTTP/1.1\r\n${H}\r\n`, ["silent", "505 closed", "200 open"]),
  one("a tab for a space", `GET\t/a HTTP/1.1\r\n${H}\r\n`, ["silent", "505 closed", "400 closed"]),
  one("a space in the target", `GET /a b HTTP/1.1\r\n${H}\r\n`, ["silent", "505 closed", "400 closed"]),
  one("a NUL in the target", `GET /a\0 HTTP/1.1\r\n${H}\r\n`, ["silent", "505 closed", "400 closed"]),
  one("a target of raw bytes", `GET /\xff\xfe HTTP/1.1\r\n${H}\r\n`, ["404 open", "404 open", "400 closed"]),
  one("an empty line first", `\r\n${get()}`, ["silent", "silent", "200 open"]),
  // Line ends and header lines.
  one("bare line feeds", `GET /a HTTP/1.1\nHost: cell\n\n${SMUGGLED}`, ["silent", "505 closed", "400 closed"]),
  one("a bare carriage return in a value", get("X: a\rGET /smuggled HTTP/1.1\r\n"), ["silent", "silent", "400 closed"]),
  one("a NUL in a value", get("X: a\0b\r\n"), ["silent", "400 closed", "400 closed"]),
  one("a raw byte in a value", get("X: \xe9\r\n"), "200 open"),
  one("a space in a name", get("X Y: z\r\n"), ["silent", "400 closed", "400 closed"]),
  one("no colon", get("nonsense\r\n"), ["silent", "400 closed", "400 closed"]),
  one("an empty name", get(": x\r\n"), ["200 open", "200 open", "400 closed"]),
  one("an empty name before a length", get(`: x\r\nContent-Length: ${SMUGGLED.length}\r\n`) + SMUGGLED, [
    "200 200 open",
    "200 200 open",
    "400 closed",
  ]),
  one("a fold", get("X: y\r\n z\r\n"), ["silent", "400 closed", "400 closed"]),
  one("40 header lines", get("X: y\r\n".repeat(40)), "200 open"),
  one("100 header lines", get("X: y\r\n".repeat(100)), ["silent", "431 closed", "200 open"]),
  one("a value of 3,000 bytes", get(`X: ${"x".repeat(3000)}\r\n`), "200 open"),
  one("a value of 20,000 bytes", get(`X: ${"x".repeat(20_000)}\r\n`), ["200 open", "431 closed", "400 closed"]),
  one("a path of 3,000 bytes", get("", `/${"x".repeat(3000)}`), "404 open"),
  ...["//", "/a/", "/%00", "/%2e%2e/a", "/../a", "/a%2F..", "/%C0%AF"].map((path) =>
    one(`the path ${path}`, get("", path), "404 open"),
  ),
  // Bodies that are not what they say.
  one("broken JSON", post("{"), "422 open"),
  one("a body longer than its length", post(BODY, JSON_TYPE, 2) + get(), ["closed", "422 400 closed", "closed"]),
  many("a body that ends early", [post("", JSON_TYPE, 100), "{", END], "closed"),
  many("a body that is reset", [post("", JSON_TYPE, 100), "{", "reset"], "closed"),
  one("compressed", post(BODY, `${JSON_TYPE}Content-Encoding: gzip\r\n`), "415 open"),
  // Ends.
  many("nothing", [END], "closed"),
  many("half a line", ["GET /", END], ["closed", "closed", "400 closed"]),
  many("half a head", [get().slice(0, -4), END], ["closed", "closed", "400 closed"]),
  many("a request and a half-close", [get(), END], "200 closed"),
  many("a request and a reset", [get(), "reset"], "closed"),
  many("a slow request and a reset", [get("", "/until-gone"), "reset"], "closed"),
  many("a slow request and a half-close", [get("", "/until-gone"), END], "closed"),
  one("noise", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ["silent", "505 closed", "400 closed"]),
];
