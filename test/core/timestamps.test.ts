import t from "tap";
import { createRandom } from "../../core/random.js";
import { formatTimeUs, parseTimeBoundUs, parseTimeUs, parseUtcTimeUs, TIME_LIMIT_US } from "../../core/timestamps.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

const us = (iso: string, micros = 0): number => Date.parse(iso) * 1000 + micros;

t.test("text has six decimals and Z, sorts as the times do, and reads back", async (t) => {
  t.equal(formatTimeUs(0), "1970-01-01T00:00:00.000000Z");
  t.equal(formatTimeUs(1), "1970-01-01T00:00:00.000001Z");
  t.equal(formatTimeUs(us("2026-11-20T19:07:00Z", 123_456)), "2026-11-20T19:07:00.123456Z");
  t.equal(formatTimeUs(TIME_LIMIT_US - 1), "2255-03-14T15:59:59.999999Z");
  const random = createRandom(seed);
  let before = 0;
  for (let i = 0; i < 20_000; i++) {
    // Neighbours often share their second, so that the cache of the second is used.
    const timeUs = random.chance(0.5)
      ? Math.min(before + random.integer(0, 1_500_000), TIME_LIMIT_US - 1)
      : Math.floor(random.next() * TIME_LIMIT_US);
    const text = formatTimeUs(timeUs);
    const expected = `${new Date(Math.floor(timeUs / 1000)).toISOString().slice(0, 23)}${String(timeUs % 1000).padStart(3, "0")}Z`;
    if (text !== expected) return void t.equal(text, expected);
    if (parseTimeUs(text) !== timeUs || parseUtcTimeUs(text) !== timeUs) return void t.fail(`${timeUs} reads back`);
    if (text < formatTimeUs(before) !== timeUs < before) return void t.fail(`${timeUs} and ${before} sort`);
    before = timeUs;
  }
  t.pass("20000 times");
});

t.test("what is read", async (t) => {
  const cases: [string, number | undefined][] = [
    ["2026-11-20T19:07:00Z", us("2026-11-20T19:07:00Z")],
    ["2026-11-20t19:07:00z", us("2026-11-20T19:07:00Z")],
    ["2026-11-20 19:07:00", us("2026-11-20T19:07:00Z")],
    ["2026-11-20T19:07:00.5Z", us("2026-11-20T19:07:00Z", 500_000)],
    ["2026-11-20T19:07:00,5Z", us("2026-11-20T19:07:00Z", 500_000)],
    ["2026-11-20T19:07:00.000001Z", us("2026-11-20T19:07:00Z", 1)],
    ["2026-11-20T19:07:00.1234569Z", us("2026-11-20T19:07:00Z", 123_456)],
    ["2026-11-20T19:07:00.999999999Z", us("2026-11-20T19:07:00Z", 999_999)],
    ["2026-11-20T19:07:00.1234567890Z", us("2026-11-20T19:07:00Z", 123_456)],
    [`2026-11-20T19:07:00.${"9".repeat(400)}Z`, us("2026-11-20T19:07:00Z", 999_999)],
    ["2026-11-20T19:07:00.Z", undefined],
    ["2026-11-20T19:07:00+01:00", us("2026-11-20T18:07:00Z")],
    ["2026-11-20T19:07:00-0530", us("2026-11-21T00:37:00Z")],
    ["2026-11-20T19:07:00+24:00", undefined],
    ["2026-11-20T19:07:00+01:60", undefined],
    ["2026-11-20T19:07:00+01", undefined],
    ["2026-11-20T19:07:00Z+01:00", undefined],
    ["2026-11-20T24:00:00Z", undefined],
    ["2026-11-20T23:60:00Z", undefined],
    ["2026-11-20T23:59:60Z", us("2026-11-21T00:00:00Z")],
    ["2026-11-20t19:29:60.25-04:30", us("2026-11-21T00:00:00Z")],
    ["2026-11-20T23:59:61Z", undefined],
    ["2026-11-20T22:59:60Z", undefined],
    ["2026-11-20T23:59Z", undefined],
    ["2026-11-20", undefined],
    ["2026-00-10T00:00:00Z", undefined],
    ["2026-13-10T00:00:00Z", undefined],
    ["2026-11-00T00:00:00Z", undefined],
    ["2026-11-31T00:00:00Z", undefined],
    ["2026-02-29T00:00:00Z", undefined],
    ["2024-02-29T00:00:00Z", us("2024-02-29T00:00:00Z")],
    ["2000-02-29T00:00:00Z", us("2000-02-29T00:00:00Z")],
    ["2100-02-29T00:00:00Z", undefined],
    ["1970-01-01T00:00:00Z", 0],
    ["1970-01-01T00:59:00+01:00", undefined],
    ["1969-12-31T23:59:59.999999Z", undefined],
    ["1969-12-31T23:30:00-01:00", 30 * 60 * 1_000_000],
    // Date.UTC takes years below 100 for those of the twentieth century.
    ["0070-01-01T00:00:00Z", undefined],
    ["0099-06-01T00:00:00Z", undefined],
    ["0000-01-01T00:00:00Z", undefined],
    ["2255-03-14T15:59:59.999999Z", TIME_LIMIT_US - 1],
    ["2255-03-14T16:00:00Z", undefined],
    ["9999-12-31T23:59:59Z", undefined],
    ["+012026-11-20T19:07:00Z", undefined],
    ["2026-11-20T19:07:00Z\n", undefined],
    [" 2026-11-20T19:07:00Z", undefined],
    ["2026-11-20T１9:07:00Z", undefined],
    ["", undefined],
    ["now", undefined],
  ];
  for (const [text, expected] of cases) t.equal(parseTimeUs(text), expected, JSON.stringify(text));
});

t.test("a bound outside the times that can be is the first or the last of them", async (t) => {
  const cases: [string, number | undefined][] = [
    ["2026-11-20T19:07:00.1234567Z", parseTimeUs("2026-11-20T19:07:00.123456Z")],
    ["0001-01-01T00:00:00Z", 0],
    ["1969-12-31T23:59:59.999999Z", 0],
    ["1970-01-01T00:00:00.000001Z", 1],
    ["2255-03-14T16:00:00Z", TIME_LIMIT_US],
    ["9999-12-31T23:59:59.999999Z", TIME_LIMIT_US],
    ["0001-02-29T00:00:00Z", undefined],
    ["0001-13-01T00:00:00Z", undefined],
    ["now", undefined],
    ["2016-12-31T23:59:60Z", parseTimeUs("2017-01-01T00:00:00Z")],
    ["2016-12-31T23:59:60.999999999999Z", parseTimeUs("2017-01-01T00:00:00Z")],
    ["2016-12-31 23:59:60", parseTimeUs("2017-01-01T00:00:00Z")],
    ["2017-01-01T01:59:60,5+02:00", parseTimeUs("2017-01-01T00:00:00Z")],
    ["2016-12-31T18:29:60-0530", parseTimeUs("2017-01-01T00:00:00Z")],
    ["2016-12-31T23:58:60Z", undefined],
    ["2016-12-31T22:59:60Z", undefined],
    ["2016-12-31T23:59:60+01:00", undefined],
    ["2016-12-31T23:59:61Z", undefined],
    ["2016-12-31T23:59:60.Z", undefined],
    ["2016-02-30T23:59:60Z", undefined],
  ];
  for (const [text, expected] of cases) t.equal(parseTimeBoundUs(text, "down"), expected, text);
  t.equal(parseTimeBoundUs("2016-12-31T23:59:60.5Z", "up"), parseTimeUs("2017-01-01T00:00:00Z"));
  const [first, next] = [parseTimeUs("2026-11-20T19:07:00.123456Z"), parseTimeUs("2026-11-20T19:07:00.123457Z")];
  for (const fraction of ["123456", "1234560", "123456000"]) {
    t.equal(parseTimeBoundUs(`2026-11-20T19:07:00.${fraction}Z`, "up"), first, fraction);
  }
  for (const fraction of ["1234561", "123456001", "123456999"]) {
    t.equal(parseTimeBoundUs(`2026-11-20T19:07:00.${fraction}+00:00`, "up"), next, fraction);
  }
  t.equal(parseTimeBoundUs("9999-12-31T23:59:59.9999999Z", "up"), TIME_LIMIT_US);
  t.equal(parseTimeBoundUs("now", "up"), undefined);
});

t.test("the cell link takes UTC with up to microseconds only", async (t) => {
  const right = [
    "2026-11-20T19:07:00Z",
    "2026-11-20t19:07:00.1z",
    "2026-11-20T19:07:00.123456Z",
    "2016-12-31T23:59:60.5Z",
  ];
  for (const text of right) {
    t.equal(parseUtcTimeUs(text), parseTimeUs(text), text);
    t.type(parseUtcTimeUs(text), "number");
  }
  for (const text of [
    "2026-11-20T19:07:00.1234567Z",
    "2026-11-20T19:07:00,5Z",
    "2026-11-20T19:07:00",
    "2026-11-20T19:07:00+00:00",
    "2026-11-20T19:07:00.5",
    "2026-02-30T19:07:00Z",
    "2016-12-31T23:58:60Z",
  ]) {
    t.equal(parseUtcTimeUs(text), undefined, text);
  }
});
