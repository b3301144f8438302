/** Times in the viewer's zone, durations, and the clock of the service. */

const DAY_MS = 86_400_000;
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  // Not `hour12: false`, which some locales take for 24:00:00 at midnight.
  hourCycle: "h23",
});
const day = new Intl.DateTimeFormat(undefined, { day: "2-digit", month: "short" });
const dayAndYear = new Intl.DateTimeFormat(undefined, { day: "2-digit", month: "short", year: "numeric" });

/** `14:03:22`, with the day before it if it is not today. */
export function localTime(iso: string, nowMs = Date.now()): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const today = new Date(nowMs);
  if (at.toDateString() === today.toDateString()) return clock.format(at);
  const isRecent = Math.abs(nowMs - at.getTime()) < 180 * DAY_MS;
  return `${(isRecent ? day : dayAndYear).format(at)} ${clock.format(at)}`;
}

/** The time in UTC, for the tooltip. */
export function utcTime(iso: string): string {
  return iso.replace("T", " ").replace(/(?:Z|\+00:00)$/, " UTC");
}

/** `840 ms`, `12.4 s`, `3 min 05 s`, `2 h 07 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 100_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (count: number) => String(count).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

/** By how much the clock of the service is ahead of the viewer's. */
let aheadMs = 0;

/** Takes over the clock of the service. @param date of an answer that has just come: its header Date */
export function noteServiceTime(date: string | null, nowMs = Date.now()): void {
  // It has whole seconds: on average the time was half a second later.
  const foundMs = Date.parse(date ?? "") + 500 - nowMs;
  // A smaller difference comes from the rounding, and from the way of the answer.
  if (Math.abs(foundMs - aheadMs) > 1_500) aheadMs = foundMs;
}

/** The time at the service: what began there is measured with its clock. */
export function serviceNowMs(nowMs = Date.now()): number {
  return nowMs + aheadMs;
}

export function msBetween(
  from: string | null | undefined,
  to: string | null | undefined,
  nowMs = serviceNowMs(),
): number | undefined {
  if (!from) return undefined;
  return Math.max(0, (to ? Date.parse(to) : nowMs) - Date.parse(from));
}

/** Start of today in the viewer's zone, as the interface takes it. */
export function startOfToday(): string {
  const at = new Date();
  at.setHours(0, 0, 0, 0);
  return at.toISOString();
}
