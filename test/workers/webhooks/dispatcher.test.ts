import t from "tap";
import { Dispatcher } from "../../../workers/webhooks/dispatcher.js";
import type { DeliveryJob, DeliveryReport } from "../../../workers/webhooks/dispatcher-messages.js";
import type { DeliveryOutcome, DeliveryRequest } from "../../../workers/webhooks/receivers/delivery-request.js";
import { listOf } from "../../helpers/list-of.js";
import { ManualTimers } from "../../helpers/recorder/manual-timers.js";

const OK: DeliveryOutcome = {
  statusCode: 204,
  responseHeaders: {},
  responseBody: "",
  responseTruncated: false,
  error: null,
};
const BAD: DeliveryOutcome = {
  statusCode: 500,
  responseHeaders: {},
  responseBody: "no",
  responseTruncated: false,
  error: "the receiver answered 500",
};
const START_US = 1_800_000_000_000_000;

/** A dispatcher whose network and time are the test's. */
function bench() {
  const timers = new ManualTimers();
  let nowMs = 0;
  const sent: { request: DeliveryRequest; end: (outcome: DeliveryOutcome) => void; timedOut: string | null }[] = [];
  const reports: DeliveryReport[] = [];
  const dispatcher = new Dispatcher({
    timers,
    nowMs: () => nowMs,
    tick: () => START_US + nowMs * 1000,
    wallUs: () => START_US + nowMs * 1000,
    userAgent: "test/1",
    send(request, onEnd) {
      const entry = { request, end: onEnd, timedOut: null as string | null };
      sent.push(entry);
      return {
        timeOut(fault) {
          entry.timedOut = fault;
          onEnd({
            statusCode: null,
            responseHeaders: null,
            responseBody: null,
            responseTruncated: false,
            error: fault,
          });
        },
      };
    },
    report: (report) => reports.push(report),
  });
  const advance = (ms: number): void => {
    for (let i = 0; i < ms; i += 100) {
      nowMs += 100;
      timers.advance(100);
    }
  };
  return { dispatcher, sent, reports, advance };
}

const JOB: DeliveryJob = {
  ...{ deliveryId: "d1", afterId: null, eventId: "e1", eventName: "ProgramFailed", url: "http://h/", secret: "s" },
  window: null,
  ...{ firstAttemptNumber: 1, attempts: 4, timeoutMs: 3000, backoffMs: 1000, payload: Buffer.from("{}") },
};

t.test("taken at once: one attempt, signed at its own time", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  advance(1500);
  dispatcher.deliver(JOB);
  t.match(sent[0]?.request, { eventId: "e1", secret: "s", timestampSeconds: START_US / 1e6 + 1, userAgent: "test/1" });
  advance(200);
  sent[0]?.end(OK);
  t.same(reports, [
    {
      deliveryId: "d1",
      attempt: {
        ...{ attemptNumber: 1, startedAtUs: START_US + 1_500_000, completedAtUs: START_US + 1_700_000 },
        ...OK,
      },
      next: { kind: "delivered" },
    },
  ]);
  t.equal(dispatcher.runningCount, 0);
  advance(20_000);
  t.equal(sent.length, 1, "nothing in the background");
});

t.test("refused each time: every attempt, the retry's time told, numbers counted on", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  dispatcher.deliver({ ...JOB, firstAttemptNumber: 5, attempts: 2 });
  sent[0]?.end(BAD);
  t.match(reports[0], { attempt: { attemptNumber: 5 }, next: { kind: "retry", atUs: START_US + 1_000_000 } });
  advance(1000);
  t.equal(sent.length, 2);
  t.same(reports[1], { deliveryId: "d1", attempt: null, next: { kind: "attempt" } }, "the pause's end is told");
  sent[1]?.end(BAD);
  t.match(reports[2], { attempt: { attemptNumber: 6, error: "the receiver answered 500" }, next: { kind: "failed" } });
});

t.test("never answered: time-outs within the window, the last one trimmed", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  dispatcher.deliver(JOB);
  advance(20_000);
  t.same(
    sent.map(({ timedOut }) => timedOut),
    ["no answer within 3 s", "no answer within 3 s", "no answer within 2 s, where the dispatch window ended"],
  );
  t.same(
    reports.map(({ next }) => next.kind),
    ["retry", "attempt", "retry", "attempt", "failed"],
  );
});

t.test("without a pause no time of a further attempt is told", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  dispatcher.deliver({ ...JOB, attempts: 2, backoffMs: 0 });
  sent[0]?.end(BAD);
  advance(100);
  sent[1]?.end(BAD);
  t.match(
    reports,
    listOf(
      { attempt: { attemptNumber: 1 }, next: { kind: "attempt" } },
      { attempt: { attemptNumber: 2 }, next: { kind: "failed" } },
    ),
  );
  t.equal(reports.length, 2);
});

t.test("broken off and begun anew, again and again: in the same window, with the same pause", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  // As a webhook that is changed every two seconds, whose receiver always refuses.
  const backoffMs = 6000;
  dispatcher.deliver({ ...JOB, attempts: 11, backoffMs });
  advance(300);
  sent[0]?.end(BAD);
  for (const change of [0, 1]) {
    advance(2000);
    dispatcher.release("d1");
    const window = { endMs: 10_000, nextAttemptMs: 6300 };
    t.same(reports.at(-1), { deliveryId: "d1", attempt: null, next: { kind: "released", window } });
    const rest = { firstAttemptNumber: 2, attempts: 10, backoffMs, window };
    dispatcher.deliver({ ...JOB, ...rest, url: `http://${change}/` });
    const next = { kind: "retry", atUs: START_US + 6_300_000 };
    t.same(reports.at(-1), { deliveryId: "d1", attempt: null, next }, "as it was told before");
  }
  advance(1900);
  t.equal(sent.length, 1);
  advance(100);
  t.equal(sent[1]?.request.url, "http://1/", "with what the webhook is then");
  t.match(reports.at(-1), { attempt: null, next: { kind: "attempt" } });
  dispatcher.release("d1");
  sent[1]?.end(BAD);
  t.match(reports.at(-1), { attempt: { attemptNumber: 2 }, next: { kind: "failed" } }, "a third would begin too late");
  t.equal(dispatcher.runningCount, 0);
});

t.test(
  "broken off while an attempt is under way: the pause behind it is kept, one whose window is over makes none",
  async (t) => {
    const { dispatcher, sent, reports, advance } = bench();
    dispatcher.deliver(JOB);
    dispatcher.release("d1");
    advance(500);
    sent[0]?.end(BAD);
    const released = reports.at(-1)?.next;
    t.same(released, { kind: "released", window: { endMs: 10_000, nextAttemptMs: 1500 } });
    if (released?.kind !== "released") return;
    const { window } = released;
    dispatcher.deliver({ ...JOB, firstAttemptNumber: 2, attempts: 3, window });
    advance(900);
    t.equal(sent.length, 1, "not before its pause is over");
    advance(100);
    t.equal(sent.length, 2);
    sent[1]?.end(OK);
    t.match(reports.at(-1), { attempt: { attemptNumber: 2 }, next: { kind: "delivered" } });
    advance(9_000);
    dispatcher.deliver({ ...JOB, deliveryId: "d2", firstAttemptNumber: 2, attempts: 3, window });
    t.same(reports.at(-1), { deliveryId: "d2", attempt: null, next: { kind: "failed" } });
    t.equal(sent.length, 2);
  },
);

t.test("a manual attempt is bounded by the window too, whatever its time-out", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  dispatcher.deliver({ ...JOB, attempts: 1, timeoutMs: 300_000 });
  advance(9_900);
  t.equal(reports.length, 0);
  advance(100);
  t.same(
    [sent[0]?.timedOut, reports[0]?.next.kind],
    ["no answer within 10 s, where the dispatch window ended", "failed"],
  );
});

t.test("attempts are told in the service clock, and signed at the wall's time, which receivers have too", async (t) => {
  // As after a wall clock that was set an hour back: the service clock does not go back.
  let serviceUs = START_US + 3_600_000_000;
  let wallUs = START_US;
  const ends: ((outcome: DeliveryOutcome) => void)[] = [];
  const stamps: number[] = [];
  const reports: DeliveryReport[] = [];
  const timers = new ManualTimers();
  const dispatcher = new Dispatcher({
    ...{ timers, nowMs: () => 0, tick: () => ++serviceUs, wallUs: () => wallUs, userAgent: "" },
    send(request, onEnd) {
      ends.push(onEnd);
      stamps.push(request.timestampSeconds);
      return { timeOut: () => t.fail("it answered in time") };
    },
    report: (report) => reports.push(report),
  });
  dispatcher.deliver({ ...JOB, attempts: 2 });
  wallUs += 1_000_000;
  ends[0]?.(BAD);
  timers.advance(1000);
  ends[1]?.(OK);
  const [first, second] = reports.flatMap(({ attempt }) => attempt ?? []);
  const base = START_US + 3_600_000_000;
  t.match(first, { startedAtUs: base + 1, completedAtUs: base + 2 });
  t.match(reports[0]?.next, { kind: "retry", atUs: base + 2 + 1_000_000 });
  t.match(second, { startedAtUs: base + 3, completedAtUs: base + 4 });
  t.same(stamps, [START_US / 1e6, START_US / 1e6 + 1]);
});

t.test("a wall clock that steps moves no attempt", async (t) => {
  for (const stepUs of [-3_600_000_000, 3_600_000_000]) {
    const timers = new ManualTimers();
    let [nowMs, wallUs] = [0, START_US];
    let serviceUs = START_US;
    const ends: ((outcome: DeliveryOutcome) => void)[] = [];
    const stamps: number[] = [];
    const reports: DeliveryReport[] = [];
    const dispatcher = new Dispatcher({
      ...{ timers, nowMs: () => nowMs, wallUs: () => wallUs, userAgent: "" },
      tick: () => {
        serviceUs = Math.max(wallUs, serviceUs + 1);
        return serviceUs;
      },
      send(request, onEnd) {
        ends.push(onEnd);
        stamps.push(request.timestampSeconds);
        return { timeOut: () => t.fail("it answered in time") };
      },
      report: (report) => reports.push(report),
    });
    const pass = (ms: number): void => {
      nowMs += ms;
      wallUs += ms * 1000;
      timers.advance(ms);
    };
    dispatcher.deliver({ ...JOB, attempts: 2 });
    pass(500);
    wallUs += stepUs;
    ends[0]?.(BAD);
    const [{ attempt, next } = {}] = reports;
    t.ok(attempt && attempt.completedAtUs >= attempt.startedAtUs);
    t.ok(next?.kind === "retry" && next.atUs === (attempt?.completedAtUs ?? 0) + 1_000_000);
    pass(999);
    t.equal(ends.length, 1);
    pass(1);
    t.equal(ends.length, 2, "after its pause, by the clock that does not step");
    t.equal(stamps[1], Math.floor((START_US + stepUs + 1_500_000) / 1e6), "signed at the time that receivers have too");
    ends[1]?.(OK);
    t.match(reports[2], { attempt: { attemptNumber: 2 }, next: { kind: "delivered" } });
  }
});

t.test("deliveries do not wait for each other", async (t) => {
  const { dispatcher, sent, reports } = bench();
  for (let i = 0; i < 100; i++) dispatcher.deliver({ ...JOB, deliveryId: `d${i}` });
  t.equal(sent.length, 100);
  sent[99]?.end(OK);
  t.same(
    reports.map(({ deliveryId }) => deliveryId),
    ["d99"],
  );
  t.throws(() => dispatcher.deliver({ ...JOB, deliveryId: "d0" }), /already/);
});

t.test("released in a pause, in an attempt that fails, and in one that is taken", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  dispatcher.deliver(JOB);
  sent[0]?.end(BAD);
  dispatcher.release("d1");
  t.match(reports.at(-1), { attempt: null, next: { kind: "released" } });
  advance(20_000);
  t.equal(sent.length, 1, "no further attempt");
  dispatcher.deliver({ ...JOB, deliveryId: "d2" });
  dispatcher.release("d2");
  t.equal(reports.length, 2, "the attempt under way goes on");
  sent[1]?.end(BAD);
  t.match(reports.at(-1), { deliveryId: "d2", attempt: { error: BAD.error }, next: { kind: "released" } });
  dispatcher.deliver({ ...JOB, deliveryId: "d3" });
  dispatcher.release("d3");
  sent[2]?.end(OK);
  t.match(reports.at(-1), { deliveryId: "d3", next: { kind: "delivered" } });
  dispatcher.release("unknown");
  t.equal(dispatcher.runningCount, 0);
});

t.test(
  "one that follows another begins when that has ended, whatever comes of it, or when it is told to",
  async (t) => {
    const { dispatcher, sent, reports, advance } = bench();
    dispatcher.deliver({ ...JOB, attempts: 2 });
    dispatcher.deliver({ ...JOB, deliveryId: "d2", afterId: "d1", eventId: "e2" });
    dispatcher.begin("d1");
    dispatcher.begin("d3");
    sent[0]?.end(BAD);
    advance(900);
    t.equal(sent.length, 1, "also in its pause");
    advance(100);
    sent[1]?.end(BAD);
    t.match(reports.at(-1), { deliveryId: "d1", next: { kind: "failed" } });
    t.equal(sent[2]?.request.eventId, "e2");
    dispatcher.deliver({ ...JOB, deliveryId: "d3", afterId: "d2", eventId: "e3" });
    t.equal(sent.length, 3);
    dispatcher.begin("d3");
    t.equal(sent[3]?.request.eventId, "e3");
    sent[2]?.end(OK);
    t.equal(sent.length, 4, "once");
    advance(200);
    sent[3]?.end(OK);
    t.match(reports.at(-1), {
      deliveryId: "d3",
      attempt: { attemptNumber: 1, startedAtUs: START_US + 1_000_000, completedAtUs: START_US + 1_200_000 },
      next: { kind: "delivered" },
    });
  },
);

t.test("one that follows another which is not there begins at once, and so does a second one", async (t) => {
  const { dispatcher, sent } = bench();
  dispatcher.deliver({ ...JOB, deliveryId: "d2", afterId: "d1", eventId: "e2" });
  t.equal(sent.length, 1);
  dispatcher.deliver({ ...JOB, deliveryId: "d3", afterId: "d2", eventId: "e3" });
  t.equal(sent.length, 1);
  dispatcher.deliver({ ...JOB, deliveryId: "d4", afterId: "d2", eventId: "e4" });
  t.same([sent.length, sent[1]?.request.eventId], [2, "e4"]);
});

t.test("one that follows another and is released, or stopped, is never begun", async (t) => {
  const { dispatcher, sent, reports } = bench();
  dispatcher.deliver(JOB);
  const window = { endMs: 9_000, nextAttemptMs: 100 };
  for (const one of [null, window]) {
    dispatcher.deliver({ ...JOB, deliveryId: "d2", afterId: "d1", window: one });
    dispatcher.release("d2");
    t.same(reports.at(-1), { deliveryId: "d2", attempt: null, next: { kind: "released", window: one } });
  }
  dispatcher.deliver({ ...JOB, deliveryId: "d2", afterId: "d1" });
  const stopped = dispatcher.stop(1_000);
  t.same(reports.at(-1), { deliveryId: "d2", attempt: null, next: { kind: "released", window: null } });
  sent[0]?.end(OK);
  await stopped;
  t.match(reports.at(-1), { deliveryId: "d1", next: { kind: "delivered" } });
  t.equal(sent.length, 1);
});

t.test("stopping waits for what is under way, and for no longer than it may", async (t) => {
  const { dispatcher, sent, reports, advance } = bench();
  await dispatcher.stop(1000);
  dispatcher.deliver(JOB);
  dispatcher.deliver({ ...JOB, deliveryId: "d2", timeoutMs: 9000 });
  const stopped = dispatcher.stop(5000);
  sent[0]?.end(OK);
  t.match(reports, listOf({ deliveryId: "d1", next: { kind: "delivered" } }));
  advance(5000);
  await stopped;
  t.equal(reports.length, 1, "an attempt that was cut short is none");
  sent[1]?.end(OK);
  t.equal(reports.length, 1, "nor later");
});

t.test("an attempt that fails at once is one like any other", async (t) => {
  const reports: DeliveryReport[] = [];
  const timers = new ManualTimers();
  const dispatcher = new Dispatcher({
    ...{ timers, nowMs: () => 0, tick: () => START_US, wallUs: () => START_US, userAgent: "" },
    send(_request, onEnd) {
      onEnd(BAD);
      return { timeOut: () => t.fail("it has ended") };
    },
    report: (report) => reports.push(report),
  });
  dispatcher.deliver({ ...JOB, attempts: 1 });
  timers.advance(100_000);
  t.match(reports, listOf({ next: { kind: "failed" } }));
});
