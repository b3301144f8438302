import t from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { downloadReply, jsonReply, storedValidators } from "../../../http/replies/reply.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { isFullSize } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_125);
const ROUNDS = isFullSize ? 20_000 : 700;

const BYTES = Buffer.from("0123456789");
const MODIFIED = "Sat, 31 Jan 2026 12:00:00 GMT";
const MODIFIED_US = (Date.parse(MODIFIED) + 999) * 1000;
const STRONG = '"00abcdef-a"';

/** What is served: whether the client's tag can be the same by weak or by strong comparison, whether it has a time, and its length. */
interface Resource {
  path: string;
  tag: "strong" | "weak" | "none";
  hasTime: boolean;
  isDownload: boolean;
  lengthBytes: number;
}
const RESOURCES: readonly Resource[] = [
  { path: "/file", tag: "strong", hasTime: true, isDownload: true, lengthBytes: 10 },
  { path: "/empty", tag: "strong", hasTime: true, isDownload: true, lengthBytes: 0 },
  { path: "/untagged", tag: "none", hasTime: false, isDownload: true, lengthBytes: 10 },
  { path: "/json", tag: "weak", hasTime: false, isDownload: false, lengthBytes: 7 },
];

/** A list of tags, and what of it is the resource's own tag: by its opaque part, in a strong or in a weak spelling. */
interface Tags {
  text: string;
  names: "any" | "strong" | "weak" | "other";
}

function tagLists(own: string): Tags[] {
  const opaque = own.replace("W/", "");
  return [
    ...["*", " * "].map((text) => ({ text, names: "any" }) as const),
    ...[opaque, `"a", ${opaque}`, `,, ${opaque} ,"b"`, `W/"a",\t${opaque}`].map(
      (text) => ({ text, names: "strong" }) as const,
    ),
    ...[`W/${opaque}`, `"a", W/${opaque}`].map((text) => ({ text, names: "weak" }) as const),
    ...[
      ...['"other"', 'W/"other"', `"${opaque.slice(1, 4)}"`, `"x, ${opaque.slice(1)}`, "", ","],
      // No lists of tags: nothing is named.
      ...[opaque.slice(1, -1), `w/${opaque}`, `W/ ${opaque}`, `${opaque} ${opaque}`, `*, ${opaque}`, `${opaque}, *`],
      ...[`${opaque}x`, `"a" ${opaque}`, opaque.slice(0, -1)],
    ].map((text) => ({ text, names: "other" }) as const),
  ];
}

/** A date, and where it lies to the time of the last change. */
const DATES = [
  [MODIFIED, "same"],
  ["Saturday, 31-Jan-26 12:00:00 GMT", "same"],
  ["Sat Jan 31 12:00:00 2026", "same"],
  ["Sat, 31 Jan 2026 11:59:59 GMT", "before"],
  ["Thu, 01 Jan 1970 00:00:00 GMT", "before"],
  ["Sun Feb  1 00:00:00 2026", "after"],
  ["Sat, 31 Jan 2026 12:00:01 GMT", "after"],
  ["Tue, 01 Jan 2030 00:00:00 GMT", "after"],
  ["", "none"],
  ["2026", "none"],
  ["x 1", "none"],
  ["Sat, 31 Jan 2026", "none"],
  ["2026-01-31T12:00:00Z", "none"],
  [`${MODIFIED}, ${MODIFIED}`, "none"],
] as const;

const RANGES = [
  ["bytes=2-5", [2, 5]],
  ["bytes=9-", [9, 9]],
  ["bytes=-3", [7, 9]],
  ["bytes=0-99", [0, 9]],
  ["bytes=10-", "outside"],
  ["bytes=-0", "outside"],
  ["bytes=0-1,3-4", "ignored"],
  ["lines=1-2", "ignored"],
  ["bytes=5-2", "ignored"],
] as const;

interface Case {
  method: "GET" | "HEAD";
  ifMatch?: Tags;
  ifNoneMatch?: Tags;
  ifUnmodifiedSince?: (typeof DATES)[number];
  ifModifiedSince?: (typeof DATES)[number];
  /** A single tag or a date. */
  ifRange?: { text: string; isSame: boolean };
  range?: (typeof RANGES)[number];
}

/** The steps of RFC 9110, section 13.2.2, one after the other; then the range of section 14.2. */
function expectedOutcome(resource: Resource, one: Case): { status: number; part?: readonly [number, number] } {
  const { ifMatch, ifNoneMatch, ifUnmodifiedSince, ifModifiedSince, ifRange, range } = one;
  // 1 and 2.
  if (ifMatch !== undefined) {
    const isTrue = ifMatch.names === "any" || (ifMatch.names === "strong" && resource.tag === "strong");
    if (!isTrue) return { status: 412 };
  } else if (ifUnmodifiedSince !== undefined && resource.hasTime) {
    if (ifUnmodifiedSince[1] === "before") return { status: 412 };
  }
  // 3 and 4.
  if (ifNoneMatch !== undefined) {
    const isNamed = ifNoneMatch.names === "strong" || ifNoneMatch.names === "weak";
    if (ifNoneMatch.names === "any" || (isNamed && resource.tag !== "none")) return { status: 304 };
  } else if (ifModifiedSince !== undefined && resource.hasTime) {
    if (ifModifiedSince[1] === "same" || ifModifiedSince[1] === "after") return { status: 304 };
  }
  // 5.
  if (one.method === "GET" && resource.isDownload && range !== undefined) {
    if (ifRange !== undefined && !(ifRange.isSame && resource.tag === "strong")) return { status: 200 };
    const [text, bytes] = range;
    if (bytes === "ignored") return { status: 200 };
    if (resource.lengthBytes === 0) return { status: text === "bytes=-3" ? 200 : 416 };
    return bytes === "outside" ? { status: 416 } : { status: 206, part: bytes };
  }
  return { status: 200 };
}

function randomCase(random: Random, own: string): Case {
  const lists = tagLists(own);
  const maybe = <T>(items: readonly T[], chance = 0.4): T | undefined =>
    random.chance(chance) ? random.pick(items) : undefined;
  const opaque = own.replace("W/", "");
  const ranges = [
    ...[opaque, MODIFIED, "Sat Jan 31 12:00:00 2026"].map((text) => ({ text, isSame: true })),
    ...[`W/${opaque}`, '"other"', "Sat, 31 Jan 2026 12:00:01 GMT", "x", "*"].map((text) => ({ text, isSame: false })),
  ];
  const one: Record<string, unknown> = { method: random.chance(0.8) ? "GET" : "HEAD" };
  const conditions = {
    ifMatch: maybe(lists),
    ifNoneMatch: maybe(lists),
    ifUnmodifiedSince: maybe(DATES),
    ifModifiedSince: maybe(DATES),
    range: maybe(RANGES, 0.6),
    ifRange: maybe(ranges, 0.3),
  };
  for (const [name, value] of Object.entries(conditions)) if (value !== undefined) one[name] = value;
  return one as unknown as Case;
}

function headersOf(random: Random, one: Case): string {
  const lines: string[] = [];
  const add = (name: string, text: string | undefined) => {
    if (text !== undefined) lines.push(`${name}: ${text}\r\n`);
  };
  add("If-Match", one.ifMatch?.text);
  add("If-None-Match", one.ifNoneMatch?.text);
  add("If-Unmodified-Since", one.ifUnmodifiedSince?.[0]);
  add("If-Modified-Since", one.ifModifiedSince?.[0]);
  add("If-Range", one.ifRange?.text);
  add("Range", one.range?.[0]);
  // Their order must not matter.
  return lines.sort(() => random.next() - 0.5).join("");
}

onEveryFront(t, `conditions against a plain model of RFC 9110 (seed ${seed})`, async (t, serve, front) => {
  let open = 0;
  const download = (bytes: Buffer, isTagged: boolean) => () => {
    open++;
    const body = {
      totalBytes: bytes.byteLength,
      read: async (position: number, lengthBytes: number) => bytes.subarray(position, position + lengthBytes),
      release: () => {
        open--;
      },
    };
    const validators = isTagged ? storedValidators(0xabcdef, 10, MODIFIED_US) : undefined;
    return downloadReply(body, "application/octet-stream", "a.bin", validators);
  };
  const { port } = await serve(t, {
    "/file": download(BYTES, true),
    "/empty": download(Buffer.alloc(0), true),
    "/untagged": download(BYTES, false),
    "/json": () => jsonReply({ a: 1 }),
  });
  const random = createRandom(seed);
  const connection = await RawConnection.openFor(t, port);
  connection.send("GET /json HTTP/1.1\r\nHost: x\r\n\r\n");
  const jsonTag = (await connection.response())?.headers.etag as string;
  t.match(jsonTag, /^W\//);
  const seen = new Map<number, number>();
  for (let round = 0; round < ROUNDS; round++) {
    const resource = random.pick(RESOURCES);
    const own = resource.tag === "weak" ? jsonTag : STRONG;
    const one = randomCase(random, own);
    const headers = headersOf(random, one);
    const outcome = expectedOutcome(resource, one);
    const what = `${front}, round ${round}: ${one.method} ${resource.path} ${JSON.stringify(headers)}`;
    connection.send(`${one.method} ${resource.path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
    const answer = await connection.response(one.method);
    if (answer?.status !== outcome.status) return void t.equal(answer?.status, outcome.status, what);
    seen.set(outcome.status, (seen.get(outcome.status) ?? 0) + 1);
    const { etag } = answer.headers;
    const isOfVersion = outcome.status < 400 && resource.tag !== "none";
    if (isOfVersion && etag !== own) return void t.equal(etag, own, what);
    if (one.method === "HEAD" || outcome.status === 304) continue;
    if (outcome.status === 412) {
      const field = one.ifMatch === undefined ? "if-unmodified-since" : "if-match";
      const fits = { code: "precondition_failed", params: { field, in: "header" } };
      if (!t.match(answer.json(), fits, what)) return;
    }
    if (!resource.isDownload || outcome.status >= 400) continue;
    const [first, last] = outcome.part ?? [0, resource.lengthBytes - 1];
    const expected = BYTES.subarray(first, last + 1);
    if (!answer.body.equals(expected)) return void t.equal(String(answer.body), String(expected), what);
  }
  for (const status of [200, 206, 304, 412, 416])
    t.ok((seen.get(status) ?? 0) > ROUNDS / 100, `${status} ${seen.get(status)}`);
  await until(() => open === 0);
});
