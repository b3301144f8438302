import t from "tap";
import type { SnapshotPolicy } from "../../../workers/recorder/recorder-messages.js";
import { SnapshotSchedule } from "../../../workers/snapshot/snapshot-schedule.js";
import type { SnapshotOutcome } from "../../../workers/snapshot/snapshot-worker.js";
import { listOf } from "../../helpers/list-of.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

const MIB = 1024 * 1024;
const MINUTE = 60_000;

/** A schedule whose snapshots the test makes. */
class Scheduled {
  readonly timers = new ManualTimers();
  readonly asked: number[] = [];
  readonly lines: { level: string; message: string; fields: object }[] = [];
  readonly damages: string[] = [];
  /** What health said of it, each time that it could have changed. */
  readonly details: (string | null)[] = [];
  readonly schedule: SnapshotSchedule;
  sequence = 0;
  hasSpare = true;
  isBusy = false;
  spareAsked = 0;
  cancelled = 0;
  durableFails = false;
  #answer: (outcome: SnapshotOutcome) => void = () => {};

  constructor(policy: SnapshotPolicy = {}) {
    this.schedule = new SnapshotSchedule({
      policy,
      timers: this.timers,
      makeDurable: async () => {
        if (this.durableFails) throw new Error("the log takes no more records");
        return this.sequence;
      },
      hasSpare: (bytes) => {
        this.spareAsked = bytes;
        return this.hasSpare;
      },
      runCount: () => 1_000,
      isBusy: () => this.isBusy,
      make: (throughSequence) => {
        this.asked.push(throughSequence);
        const outcome = new Promise<SnapshotOutcome>((resolve) => {
          this.#answer = resolve;
        });
        return {
          outcome,
          cancel: () => {
            this.cancelled++;
            this.#answer({ failed: "cancelled" });
          },
        };
      },
      wallUs: () => Date.UTC(2026, 10, 20) * 1000 + this.timers.nowMs() * 1000,
      onReadDamage: ({ message }) => this.damages.push(message),
      onChange: () => this.details.push(this.schedule.fault),
      line: (level, message, fields) => this.lines.push({ level, message, fields }),
    });
  }

  /** So much log is committed, as one record. */
  async commit(bytes: number): Promise<void> {
    this.sequence++;
    this.schedule.committed({ bytes: new Uint8Array(bytes) });
    await turn();
  }

  async pass(ms: number): Promise<void> {
    this.timers.advance(ms);
    await turn();
  }

  async end(outcome: SnapshotOutcome | "made", bytes = 5_000): Promise<void> {
    const sequence = this.asked.at(-1) ?? 0;
    this.#answer(outcome === "made" ? { made: { sequence, runs: 1_000, bytes, fromSequence: null } } : outcome);
    await turn();
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

t.test("due with enough log behind the last one, and never two at a time", async (t) => {
  const scheduled = new Scheduled();
  scheduled.schedule.start(0, null);
  await scheduled.commit(40 * MIB);
  t.same(scheduled.asked, []);
  await scheduled.commit(24 * MIB);
  t.same(scheduled.asked, [2]);
  t.equal(scheduled.spareAsked, 200_000, "by the runs, as there is no size yet");
  await scheduled.commit(64 * MIB);
  t.same(scheduled.asked, [2], "not while one is made");
  await scheduled.end("made");
  t.same(scheduled.asked, [2, 3], "what came meanwhile lies behind it, and makes the next one due");
  t.match(
    scheduled.lines,
    listOf({
      level: "info",
      message: "made a snapshot",
      fields: { sequence: 2, from_sequence: null, runs: 1_000, bytes: 5_000 },
    }),
  );
  await scheduled.end("made");
  await scheduled.pass(60 * MINUTE);
  t.same(scheduled.asked, [2, 3], "nothing has changed since");
});

t.test(
  "one that is due waits while deliveries do, until four times as much log lies behind the last one",
  async (t) => {
    const scheduled = new Scheduled();
    scheduled.schedule.start(0, null);
    scheduled.isBusy = true;
    await scheduled.commit(255 * MIB);
    t.same(scheduled.asked, []);
    scheduled.isBusy = false;
    await scheduled.commit(100);
    t.same(scheduled.asked, [2], "nothing waits any more");
    await scheduled.end("made");
    scheduled.isBusy = true;
    await scheduled.commit(255 * MIB);
    t.same(scheduled.asked, [2]);
    await scheduled.commit(MIB);
    t.same(scheduled.asked, [2, 4], "however much waits");
    await scheduled.end("made");
    await scheduled.commit(65 * MIB);
    await scheduled.pass(5 * MINUTE);
    t.same(scheduled.asked, [2, 4, 5], "enough time");
  },
);

t.test("a large snapshot is made as the log grows by half of it", async (t) => {
  const scheduled = new Scheduled();
  scheduled.schedule.start(0, { sequence: 1, bytes: 200 * MIB });
  await scheduled.commit(99 * MIB);
  t.same(scheduled.asked, []);
  await scheduled.commit(MIB);
  t.same(scheduled.asked, [2]);
  t.equal(scheduled.spareAsked, 200 * MIB, "by the size of the last one");
});

t.test("due some minutes after the first change; a mark is none", async (t) => {
  const scheduled = new Scheduled();
  scheduled.schedule.start(0, null);
  await scheduled.commit(48);
  await scheduled.pass(60 * MINUTE);
  t.same(scheduled.asked, []);
  await scheduled.commit(200);
  await scheduled.pass(4 * MINUTE);
  await scheduled.commit(200);
  t.same(scheduled.asked, []);
  await scheduled.pass(MINUTE);
  t.same(scheduled.asked, [3]);
});

t.test("what was read at open lies behind the last one", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000 });
  scheduled.schedule.start(1_000, null);
  await turn();
  t.equal(scheduled.asked.length, 1);
});

t.test("without room it is put off", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000 });
  scheduled.schedule.start(0, null);
  scheduled.hasSpare = false;
  await scheduled.commit(1_000);
  await scheduled.commit(1_000);
  t.same(scheduled.asked, []);
  scheduled.hasSpare = true;
  await scheduled.pass(10_000);
  t.equal(scheduled.asked.length, 1);
  await scheduled.end("made");
  t.equal(scheduled.lines.filter(({ level }) => level === "warn").length, 0);
});

t.test("nothing came in since the last one was begun: no other is made, and later ones are", async (t) => {
  const scheduled = new Scheduled();
  scheduled.sequence = 7;
  scheduled.schedule.start(70 * MIB, { sequence: 7, bytes: 5_000 });
  await turn();
  t.same(scheduled.asked, [], "what was read again at open is in it");
  const beginning = scheduled.commit(70 * MIB);
  // While the log makes the rest durable, more comes in: it is in the snapshot, and in what is taken to lie behind it.
  scheduled.schedule.committed({ bytes: new Uint8Array(MIB) });
  await beginning;
  t.same(scheduled.asked, [8]);
  await scheduled.end("made");
  await scheduled.pass(5 * MINUTE);
  t.same(scheduled.asked, [8], "due by time, and nothing is new");
  await scheduled.pass(60 * MINUTE);
  t.same(scheduled.asked, [8]);
  await scheduled.commit(64 * MIB);
  t.same(scheduled.asked, [8, 9]);
  t.notOk(scheduled.lines.some(({ level }) => level === "warn"));
});

t.test("a failure is a line, and tried again when the next is due", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000 });
  scheduled.schedule.start(0, null);
  await scheduled.commit(1_000);
  await scheduled.end({ failed: "write: EIO" });
  t.match(
    scheduled.lines,
    listOf({ level: "warn", message: "a snapshot could not be made", fields: { cause: "write: EIO" } }),
  );
  await scheduled.commit(5_000);
  t.equal(scheduled.asked.length, 1, "not at once");
  await scheduled.pass(5 * MINUTE);
  t.equal(scheduled.asked.length, 2);
  await scheduled.end("made", 100);
  await scheduled.commit(1_000);
  t.equal(scheduled.asked.length, 3, "and then as before");
});

t.test("health says that none could be made, why, and since when, until one is", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000 });
  scheduled.schedule.start(0, null);
  await scheduled.commit(1_000);
  await scheduled.end({ failed: "open: EMFILE" });
  await scheduled.pass(5 * MINUTE);
  await scheduled.end({ failed: "write: EIO" });
  const since = "since 2026-11-20T00:00:00.000Z: no snapshot could be made, and it is tried again: ";
  t.same(scheduled.details, [`${since}open: EMFILE`, `${since}write: EIO`]);
  await scheduled.pass(5 * MINUTE);
  await scheduled.end("made", 100);
  t.equal(scheduled.details.at(-1), null);
  t.same(scheduled.damages, []);
  await scheduled.commit(1_000);
  const params = {};
  const damages = [{ code: "record_damaged", message: "segment 1, offset 2: …", params }] as const;
  await scheduled.end({ refused: "the log is damaged", damages });
  const refused = "since 2026-11-20T00:10:00.000Z: no snapshot is made until the next start: the log is damaged";
  t.equal(scheduled.details.at(-1), refused);
  t.same(scheduled.damages, ["segment 1, offset 2: …"]);
  await scheduled.commit(1_000);
  await scheduled.schedule.stop(true);
  t.equal(scheduled.details.at(-1), refused, "for good");
});

t.test("a log that allows none: said once, and no more are tried", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000 });
  scheduled.schedule.start(0, null);
  await scheduled.commit(1_000);
  await scheduled.end({ refused: "the log is damaged" });
  await scheduled.commit(5_000);
  await scheduled.pass(60 * MINUTE);
  await scheduled.schedule.stop(true);
  t.equal(scheduled.asked.length, 1);
  t.match(scheduled.lines, listOf({ level: "warn", fields: { cause: "the log is damaged" } }));
  t.equal(scheduled.lines.length, 1);
});

t.test("a log that takes no more: no snapshot, and no error beyond a line", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000 });
  scheduled.schedule.start(0, null);
  scheduled.durableFails = true;
  await scheduled.commit(1_000);
  t.same(scheduled.asked, []);
  t.match(scheduled.lines, listOf({ level: "warn", fields: { cause: "the log takes no more records" } }));
});

t.test("a clean stop makes one, if there is much to put into it", async (t) => {
  const little = new Scheduled({ stopLogBytes: 1_000 });
  little.schedule.start(999, null);
  await little.schedule.stop(true);
  t.same(little.asked, []);

  const much = new Scheduled({ stopLogBytes: 1_000 });
  much.schedule.start(0, null);
  await much.commit(1_000);
  const stopped = much.schedule.stop(true);
  await turn();
  t.same(much.asked, [1]);
  await much.end("made");
  await stopped;
  await much.commit(100 * MIB);
  await much.pass(60 * MINUTE);
  t.same(much.asked, [1], "nothing comes behind a stop");
});

t.test("a stop waits for one under way, and no longer than its time", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000, stopLogBytes: 1_000, stopMs: 2_000 });
  scheduled.schedule.start(0, null);
  await scheduled.commit(1_000);
  await scheduled.commit(1_000);
  const stopped = scheduled.schedule.stop(true);
  await scheduled.end("made");
  t.same(scheduled.asked, [1, 2], "the one under way, then the last");
  await scheduled.pass(2_000);
  await stopped;
  t.equal(scheduled.cancelled, 1);
  t.match(scheduled.lines.at(-1), { level: "info", message: /gave up/ });
});

t.test("a stop after a failure of the log gives up at once", async (t) => {
  const scheduled = new Scheduled({ logBytes: 1_000, stopLogBytes: 0 });
  scheduled.schedule.start(0, null);
  await scheduled.commit(1_000);
  await scheduled.schedule.stop(false);
  t.equal(scheduled.cancelled, 1);
  t.equal(scheduled.asked.length, 1);
});
