import t from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import { parseQuery } from "../../../http/requests/query-parameters.js";

const DECLARED = {
  serial_number: { type: "string", description: "" },
  program_id: { type: "string", format: "uuid", description: "" },
  updated_since: { type: "string", format: "date-time", description: "" },
  limit: { type: "integer", minimum: 1, maximum: 1000, default: 50, description: "" },
  offset: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "" },
} as const;

function parse(query: string) {
  return parseQuery(DECLARED, query);
}

function refusal(query: string) {
  try {
    parse(query);
  } catch (error) {
    if (error instanceof ServiceError) return error.data;
    throw error;
  }
  return undefined;
}

t.test("absent, empty and unknown parameters", async (t) => {
  const defaults = { serial_number: undefined, program_id: undefined, updated_since: undefined, limit: 50, offset: 0 };
  for (const query of [
    "",
    "&&",
    "limit",
    "limit=",
    "limit=&offset=&updated_since=&serial_number=&program_id=",
    "unknown=1&unknown=2",
    "__proto__=1",
    "%zz=1",
  ]) {
    t.same(parse(query), defaults, JSON.stringify(query));
  }
});

t.test("strings are percent-decoded UTF-8, a plus is a space, %2B a plus", async (t) => {
  t.equal(parse("serial_number=SN%2D1").serial_number, "SN-1");
  t.equal(parse("serial_number=a+b%2Bc").serial_number, "a b+c");
  t.equal(parse("serial_number=%C3%A9").serial_number, "é");
  t.equal(parse("serial_number=é").serial_number, "é");
  t.equal(parse("serial_number=a=b").serial_number, "a=b");
  t.equal(parse("serial%5Fnumber=x").serial_number, "x", "names are decoded too");
  t.equal(parse("serial_number=%00").serial_number, "\0");
  for (const broken of ["%", "%z1", "%C3", "%C0%AF", "%ED%A0%80", "\ufffd"]) {
    t.match(refusal(`serial_number=${broken}`), {
      code: "invalid_parameter",
      params: { field: "serial_number", in: "query", value: broken, allowed: "percent-encoded UTF-8" },
    });
  }
});

t.test("an id is a UUID in either case, and handed on in lower case", async (t) => {
  const id = "f47ac10b-58cc-7372-a567-0e02b2c3d479";
  for (const text of [id, id.toUpperCase(), id.replace("f", "F"), id.replace("f", "%66")]) {
    t.equal(parse(`program_id=${text}`).program_id, id, text);
  }
  for (const text of [
    "x",
    "1",
    id.slice(1),
    `${id}0`,
    id.replaceAll("-", ""),
    `%7B${id}%7D`,
    `+${id}`,
    `urn:uuid:${id}`,
  ]) {
    const { message, params } = refusal(`program_id=${text}`) as { message: string; params: unknown };
    t.match(params, { field: "program_id", in: "query", value: decodeURIComponent(text.replace("+", " ")) }, text);
    t.match(message, /program_id must be a UUID/);
  }
});

t.test("integers are decimal digits within their bounds", async (t) => {
  for (const [text, value] of [
    ["1", 1],
    ["1000", 1000],
    ["007", 7],
    ["%37", 7],
  ] as const) {
    t.equal(parse(`limit=${text}`).limit, value, text);
  }
  for (const text of [
    "0",
    "1001",
    "-1",
    "1.0",
    "1e2",
    "0x10",
    " 7",
    "7 ",
    "+7",
    "%2B7",
    "null",
    "NaN",
    "1_000",
    "९",
    "99999999999999999999",
  ]) {
    t.match(
      refusal(`limit=${text}`),
      {
        code: "invalid_parameter",
        message: /limit/,
        params: { field: "limit", in: "query", allowed: "an integer from 1 to 1000" },
      },
      text,
    );
  }
  t.equal(parse("offset=9007199254740991").offset, Number.MAX_SAFE_INTEGER);
  t.match(refusal("offset=-1")?.params, { value: "-1", allowed: "an integer of at least 0" });
  t.match(refusal("offset=9007199254740993")?.params, { allowed: "an integer of at least 0" });
});

t.test("date-times in any offset come as microseconds", async (t) => {
  const timeUs = Date.UTC(2026, 0, 31, 12) * 1000;
  for (const text of [
    "2026-01-31T12:00:00Z",
    "2026-01-31T12:00:00.000000Z",
    "2026-01-31T14:00:00%2B02:00",
    "2026-01-31T14:00:00+02:00",
    "2026-01-31T14:00:00+0200",
    "2026-01-31+14:00:00+02:00",
    "2026-01-31T07:00:00-05:00",
    "2026-01-31%2012:00:00Z",
    "2026-01-31T12%3A00%3A00Z",
  ]) {
    t.equal(parse(`updated_since=${text}`).updated_since, timeUs, text);
  }
  t.equal(parse("updated_since=2026-01-31T12:00:00.123456Z").updated_since, timeUs + 123456);
  t.equal(parse("updated_since=0001-01-01T00:00:00Z").updated_since, 0, "how some clients say: from the start");
  for (const text of [
    "yesterday",
    "2026-01-31",
    "1769860800",
    "2026-02-30T00:00:00Z",
    "2026-01-31T25:00:00Z",
    "2026-01-31T12:00:00Z+",
  ]) {
    t.match(
      refusal(`updated_since=${text}`),
      {
        code: "invalid_parameter",
        params: { field: "updated_since", in: "query", allowed: /date-time/ },
      },
      text,
    );
  }
});

t.test("a repeated parameter is refused, showing what came", async (t) => {
  t.same(refusal("limit=1&offset=2&limit=3"), {
    code: "invalid_parameter",
    message: "query parameter limit must be given at most once",
    params: { field: "limit", in: "query", value: ["1", "3"], allowed: "given at most once" },
  });
  t.ok(refusal("limit=&limit="));
});

t.test("what is shown of a value is bounded", async (t) => {
  const value = refusal(`limit=${"9".repeat(5000)}`)?.params.value as string;
  t.ok(value.length < 250);
  const values = refusal(Array(100).fill("limit=1").join("&"))?.params.value;
  t.ok(Array.isArray(values) && values.length === 10);
});
