import t from "tap";
import type { DeliveryOutcome, DeliveryRequest } from "../../../../workers/webhooks/dispatcher/delivery-request.js";
import { Dispatcher } from "../../../../workers/webhooks/dispatcher/dispatcher.js";
import type { DeliveryJob, DeliveryReport } from "../../../../workers/webhooks/dispatcher/dispatcher-messages.js";
import { listOf } from "../../../helpers/list-of.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";
import { signedBy } from "../../../helpers/webhooks/webhook-fixtures.js";

const OK: DeliveryOutcome = {
  ...{ statusCode: 204, responseHeaders: {}, responseBody: "", responseTruncated: false, error: null },
};
const START_US = 1_800_000_000_000_000;

const JOB: DeliveryJob = {
  ...{
    deliveryId: "d1",
    attemptNumber: 5,
    eventId: "e1",
    eventName: "ProgramFailed",
    url: "http://h/",
    signers: signedBy("s"),
    headers: [],
  },
  ...{ timeoutMs: 3000, windowLeftMs: 10_000, payload: Buffer.from("{}") },
};

/** A dispatcher whose network and time are the test's. The service clock is an hour ahead of the wall's, as after a step back. */
function harness() {
  const timers = new ManualTimers();
  const sent: { request: DeliveryRequest; end: (outcome: DeliveryOutcome) => void; timedOut: string | null }[] = [];
  const reports: DeliveryReport[] = [];
  const dispatcher = new Dispatcher({
    timers,
    tick: () => START_US + 3_600_000_000 + timers.nowMs() * 1000,
    wallUs: () => START_US + timers.nowMs() * 1000,
    userAgent: "test/1",
    send(request, onEnd) {
      const entry = { request, end: onEnd, timedOut: null as string | null };
      sent.push(entry);
      return {
        timeOut(fault) {
          entry.timedOut = fault;
          onEnd({ ...OK, statusCode: null, responseHeaders: null, responseBody: null, error: fault });
        },
      };
    },
    report: (report) => reports.push(report),
  });
  return { dispatcher, sent, reports, timers };
}

t.test(
  "an attempt is told in the service clock, and signed at the wall's time, which receivers have too",
  async (t) => {
    const { dispatcher, sent, reports, timers } = harness();
    timers.advance(1500);
    dispatcher.deliver(JOB);
    t.match(sent[0]?.request, {
      eventId: "e1",
      signers: signedBy("s"),
      headers: listOf(),
      timestampSeconds: START_US / 1e6 + 1,
      userAgent: "test/1",
    });
    timers.advance(200);
    sent[0]?.end(OK);
    const [startedAtUs, completedAtUs] = [START_US + 3_601_500_000, START_US + 3_601_700_000];
    t.same(reports, [{ deliveryId: "d1", attempt: { attemptNumber: 5, startedAtUs, completedAtUs, ...OK } }]);
    t.equal(timers.armed, 0);
  },
);

t.test("an attempt that is not answered ends after its time-out, or with the window", async (t) => {
  const { dispatcher, sent, reports, timers } = harness();
  dispatcher.deliver(JOB);
  dispatcher.deliver({ ...JOB, deliveryId: "d2", windowLeftMs: 2000 });
  dispatcher.deliver({ ...JOB, deliveryId: "d3", timeoutMs: 300_000 });
  timers.advance(9_999);
  t.equal(reports.length, 2);
  timers.advance(1);
  t.same(
    sent.map(({ timedOut }) => timedOut),
    [
      "no answer within 3 s",
      "no answer within 2 s: the time for this delivery was over",
      "no answer within 10 s: the time for this delivery was over",
    ],
  );
  t.same(
    reports.map(({ deliveryId }) => deliveryId),
    ["d2", "d1", "d3"],
  );
});

t.test("attempts begin in the order of their jobs, and do not wait for each other", async (t) => {
  const { dispatcher, sent, reports } = harness();
  const ids = Array.from({ length: 100 }, (_, nth) => `d${nth}`);
  for (const id of ids) dispatcher.deliver({ ...JOB, deliveryId: id, eventId: id });
  t.same(
    sent.map(({ request }) => request.eventId),
    ids,
  );
  sent[99]?.end(OK);
  t.same(
    reports.map(({ deliveryId }) => deliveryId),
    ["d99"],
  );
});

t.test("stopping waits for what is under way, and for no longer than it may", async (t) => {
  const { dispatcher, sent, reports, timers } = harness();
  await dispatcher.stop(1000);
  dispatcher.deliver(JOB);
  dispatcher.deliver({ ...JOB, deliveryId: "d2", timeoutMs: 9000 });
  const stopped = dispatcher.stop(5000);
  sent[0]?.end(OK);
  t.match(reports, listOf({ deliveryId: "d1" }));
  timers.advance(5000);
  await stopped;
  t.equal(reports.length, 1, "an attempt that was cut short is none");
  sent[1]?.end(OK);
  t.equal(reports.length, 1, "nor later");
  dispatcher.deliver(JOB);
  const soon = dispatcher.stop(5000);
  sent[2]?.end(OK);
  await soon;
  t.equal(timers.armed, 0);
});

t.test("an attempt that fails at once is one like any other", async (t) => {
  const reports: DeliveryReport[] = [];
  const timers = new ManualTimers();
  const dispatcher = new Dispatcher({
    ...{ timers, tick: () => START_US, wallUs: () => START_US, userAgent: "" },
    send(_request, onEnd) {
      onEnd({ ...OK, error: "refused" });
      return { timeOut: () => t.fail("it has ended") };
    },
    report: (report) => reports.push(report),
  });
  dispatcher.deliver(JOB);
  timers.advance(100_000);
  t.match(reports, listOf({ attempt: { error: "refused" } }));
});
