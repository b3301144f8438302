import t from "tap";
import { localTime, msBetween, noteServiceTime, serviceNowMs } from "../../../../http/console/data/times.js";

t.test("a day begins at 00:00:00, whatever the viewer's language makes of midnight", async (t) => {
  const midnight = new Date(2026, 10, 26);
  t.equal(localTime(midnight.toISOString(), midnight.getTime() + 1), "00:00:00");
  t.match(localTime(midnight.toISOString(), midnight.getTime() - 1), /26.* 00:00:00$/);
});

t.test("elapsed times count by the clock of the service, whatever the viewer's clock says", async (t) => {
  const begunMs = Date.parse("2026-11-26T10:00:00Z");
  const dateAt = (ms: number) => new Date(ms).toUTCString();
  const begun = new Date(begunMs).toISOString();
  for (const wrongByMs of [0, 3_600_000, -120_000]) {
    // An answer that comes 30.3 s after the begin.
    const viewerMs = begunMs + 30_300 + wrongByMs;
    noteServiceTime(dateAt(begunMs + 30_300), viewerMs);
    const elapsedMs = msBetween(begun, null, serviceNowMs(viewerMs)) as number;
    t.ok(Math.abs(elapsedMs - 30_300) <= 500, `${wrongByMs} ms wrong: ${elapsedMs} ms`);
    // The rounding of later answers, and those without a date, do not make it jump.
    noteServiceTime(dateAt(begunMs + 31_950), viewerMs + 1_650);
    noteServiceTime(null, viewerMs + 1_650);
    t.equal(msBetween(begun, null, serviceNowMs(viewerMs + 1_650)), elapsedMs + 1_650);
  }
});
