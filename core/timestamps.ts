/**
 * Times are integers of microseconds since the Unix epoch (exact below 2^53, until the year 2255). As text they are ISO 8601
 * UTC with six decimals and Z, so that they sort as text.
 */
const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:([Zz])|([+-])(\d{2}):?(\d{2}))?$/;

const DAY_SECONDS = 86_400;
const TWO_DIGITS = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, "0"));

let lastDay = Number.NaN;
/** `2026-11-20T`. */
let lastDayText = "";

/** Times are below this: 2255-03-14T16:00:00Z, a round number of microseconds below 2^53. */
export const TIME_LIMIT_US = 9_000_000_000_000_000;

/** `2026-11-20T19:07:00.123456Z`. */
export function formatTimeUs(timeUs: number): string {
  const second = Math.floor(timeUs / 1_000_000);
  const day = Math.floor(second / DAY_SECONDS);
  // The times of an answer are mostly of one day: the calendar is asked once a day, the rest is division. A page of fifty runs has two
  // hundred times, a few tens of nanoseconds each.
  if (day !== lastDay) {
    lastDayText = new Date(day * DAY_SECONDS * 1000).toISOString().slice(0, 11);
    lastDay = day;
  }
  const ofDay = second - day * DAY_SECONDS;
  const ofSecond = timeUs - second * 1_000_000;
  const hour = TWO_DIGITS[Math.floor(ofDay / 3600)];
  const minute = TWO_DIGITS[Math.floor(ofDay / 60) % 60];
  const high = TWO_DIGITS[Math.floor(ofSecond / 10_000)];
  const middle = TWO_DIGITS[Math.floor(ofSecond / 100) % 100];
  return `${lastDayText}${hour}:${minute}:${TWO_DIGITS[ofDay % 60]}.${high}${middle}${TWO_DIGITS[ofSecond % 100]}Z`;
}

/**
 * Reads an ISO 8601 date-time: UTC (Z), with an offset, or without one (taken as UTC). Digits behind the microsecond are
 * cut off. A leap second (RFC 3339, section 5.7) counts as the begin of the next second. Undefined when the text is not a date-time from 1970
 * until `TIME_LIMIT_US` or names a day or an hour that does not exist.
 */
export function parseTimeUs(text: string): number | undefined {
  const timeUs = readLeapSecondUs(text) ?? readTimeUs(text);
  return timeUs !== undefined && timeUs >= 0 && timeUs < TIME_LIMIT_US ? timeUs : undefined;
}

/**
 * As `parseTimeUs`, for a bound that times are compared with: one before 1970 (0001-01-01, as some clients say "from the start") becomes 0,
 * one behind all times `TIME_LIMIT_US`. Undefined only when the text is not a date-time.
 *
 * @param rounding of a time between two microseconds: down for a bound that times lie behind, up for one that they lie before
 */
export function parseTimeBoundUs(text: string, rounding: "down" | "up"): number | undefined {
  const leapUs = readLeapSecondUs(text);
  const readUs = leapUs ?? readTimeUs(text);
  const isBetween = leapUs === undefined && isBetweenMicroseconds(text);
  const timeUs = readUs !== undefined && rounding === "up" && isBetween ? readUs + 1 : readUs;
  return timeUs === undefined ? undefined : Math.min(Math.max(timeUs, 0), TIME_LIMIT_US);
}

function isBetweenMicroseconds(text: string): boolean {
  return /[.,]\d{6}0*[1-9]/.test(text);
}

/** 23:59:60 UTC, in any zone, as the next second's begin: the clock that times come from has no such second. */
function readLeapSecondUs(text: string): number | undefined {
  const [, minute, zone] = /^(.{16}):60(?:[.,]\d+)?(.*)$/.exec(text) ?? [];
  const beforeUs = minute === undefined ? undefined : readTimeUs(`${minute}:59${zone}`);
  if (beforeUs === undefined) return undefined;
  const nextUs = beforeUs + 1_000_000;
  return nextUs % (DAY_SECONDS * 1_000_000) === 0 ? nextUs : undefined;
}

function readTimeUs(text: string): number | undefined {
  const match = TIMESTAMP.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = "", , sign, offsetHours = "0", offsetMinutes = "0"] =
    match;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined;
  const date = new Date(0);
  // Not by Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  const offsetSeconds = (Number(offsetHours) * 3600 + Number(offsetMinutes) * 60) * (sign === "-" ? -1 : 1);
  const seconds = date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - offsetSeconds;
  return seconds * 1_000_000 + Number(fraction.slice(0, 6).padEnd(6, "0"));
}

/** Date-time in UTC only (`…Z`), as messages of the cell link carry them; undefined otherwise. */
export function parseUtcTimeUs(text: string): number | undefined {
  return /[Zz]$/.test(text) && /^[^.,]*(?:\.\d{1,6})?[Zz]$/.test(text) ? parseTimeUs(text) : undefined;
}
