/**
 * Times are integers: microseconds since the Unix epoch, exact below 2^53 (until the year 2255). As text they are ISO 8601 UTC with six decimals
 * and Z, so that they sort as text.
 */
const TIMESTAMP =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:([Zz])|([+-])(\d{2}):?(\d{2}))?$/;

const DAY_SECONDS = 86_400;
const TWO_DIGITS = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, "0"));

let lastDay = Number.NaN;
/** `2026-11-20T`. */
let lastDayText = "";

/** All times are below this: 2255-03-14T16:00:00Z, a round number of microseconds below 2^53. */
export const TIME_LIMIT_US = 9_000_000_000_000_000;

/** `2026-11-20T19:07:00.123456Z`. */
export function formatTimeUs(timeUs: number): string {
  const second = Math.floor(timeUs / 1_000_000);
  const day = Math.floor(second / DAY_SECONDS);
  // A page of fifty runs has two hundred times, and most of them are of one day. So the calendar is asked once for each
  // day. The rest is division.
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

/** Does what `formatTimeUs` does; null gives null. */
export function timeText(timeUs: number | null): string | null {
  return timeUs === null ? null : formatTimeUs(timeUs);
}

/**
 * Reads an ISO 8601 date-time in UTC (Z), with an offset, or without one (taken as UTC). Returns microseconds since the Unix epoch. Digits after the
 * microsecond are cut off. A leap second (RFC 3339, section 5.7) counts as the start of the next second. Undefined when the text is no date-time,
 * names a day or an hour that does not exist, or is before 1970 or not before `TIME_LIMIT_US`.
 */
export function parseTimeUs(text: string): number | undefined {
  const timeUs = readLeapSecondUs(text) ?? readTimeUs(text);
  return timeUs !== undefined && timeUs >= 0 && timeUs < TIME_LIMIT_US ? timeUs : undefined;
}

/**
 * As `parseTimeUs`, for a bound with which times are compared. A bound before 1970 becomes 0 (some clients write 0001-01-01 for "from the
 * start"), and one beyond all times becomes `TIME_LIMIT_US`. Undefined only when the text is no date-time.
 *
 * @param rounding of a bound between two microseconds: down for a lower bound, up for an upper one
 */
export function parseTimeBoundUs(text: string, rounding: "down" | "up"): number | undefined {
  const timeUs = parseAnyTimeUs(text, rounding);
  return timeUs === undefined ? undefined : Math.min(Math.max(timeUs, 0), TIME_LIMIT_US);
}

/** As `parseTimeBoundUs`, without limits: tells which of two bounds is before the other. Far from 1970 it is not exact to the microsecond. */
export function parseAnyTimeUs(text: string, rounding: "down" | "up"): number | undefined {
  const leapUs = readLeapSecondUs(text);
  const readUs = leapUs ?? readTimeUs(text);
  const isBetween = leapUs === undefined && isBetweenMicroseconds(text);
  return readUs !== undefined && rounding === "up" && isBetween ? readUs + 1 : readUs;
}

function isBetweenMicroseconds(text: string): boolean {
  return /[.,]\d{6}0*[1-9]/.test(text);
}

/** Reads 23:59:60 UTC, in any zone, as the start of the next second, because Unix time has no leap seconds. */
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
  // Date.UTC would read the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  const offsetSeconds = (Number(offsetHours) * 3600 + Number(offsetMinutes) * 60) * (sign === "-" ? -1 : 1);
  const seconds = date.getTime() / 1000 + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - offsetSeconds;
  return seconds * 1_000_000 + Number(fraction.slice(0, 6).padEnd(6, "0"));
}

/** As `parseTimeUs`, but only in UTC (`…Z`), as messages of the cell link carry times. */
export function parseUtcTimeUs(text: string): number | undefined {
  return /[Zz]$/.test(text) && /^[^.,]*(?:\.\d{1,6})?[Zz]$/.test(text) ? parseTimeUs(text) : undefined;
}
