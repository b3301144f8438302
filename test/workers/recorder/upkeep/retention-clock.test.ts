import t from "tap";
import { RetentionClock } from "../../../../workers/recorder/upkeep/retention-clock.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A machine on which both clocks go, and the wall clock can be set. */
class Machine {
  #nowMs = 5_000;
  #setMs = 0;
  readonly #clock = new RetentionClock(() => this.#nowMs);

  set(aheadMs: number): void {
    this.#setMs = aheadMs;
  }

  /** Looks once an hour, in days of the wall clock when this machine started; the store's last run ended then. */
  lead(hours: number, lastRunDays: number | null): number | null {
    let leadUs: number | null = null;
    for (let hour = 0; hour < hours; hour++) {
      this.#nowMs += HOUR_MS;
      leadUs = this.#clock.doubtfulLeadUs((this.#nowMs + this.#setMs) * 1_000, (byUs) =>
        lastRunDays === null || lastRunDays * DAY_MS * 1_000 > byUs ? null : lastRunDays * DAY_MS * 1_000,
      );
    }
    return leadUs === null ? null : Math.floor(leadUs / 1_000 / DAY_MS);
  }
}

t.test("a start with a clock that is far ahead of the store: it is gone by after a day", (t) => {
  for (const lastRunDays of [null, -30, -8]) {
    const machine = new Machine();
    t.not(machine.lead(23, lastRunDays), null);
    t.equal(machine.lead(1, lastRunDays), null);
  }
  t.equal(new Machine().lead(1, -6), null, "a few days are a holiday");
  t.end();
});

t.test("a clock that is set ahead while the service runs proves nothing by that", (t) => {
  const machine = new Machine();
  machine.lead(48, -30);
  machine.set(365 * DAY_MS);
  t.equal(machine.lead(72, -30), 365);
  t.equal(machine.lead(1, 365), null, "runs of that time do");
  machine.set(0);
  t.equal(machine.lead(1, -30), null);
  t.end();
});

t.test("a clock that starts far back, as without a battery, and is then set right", (t) => {
  const machine = new Machine();
  machine.set(-10_000 * DAY_MS);
  machine.lead(1, -1);
  machine.set(0);
  t.equal(machine.lead(1, -1), null);
  t.end();
});
