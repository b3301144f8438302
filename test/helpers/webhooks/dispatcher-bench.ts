import type { Test } from "tap";
import { createServiceClock, wallClockUs } from "../../../core/service-clock.js";
import { type DispatcherHandle, startDispatcher } from "../../../workers/webhooks/dispatcher-handle.js";
import type { DeliveryJob, DeliveryReport, DispatcherOptions } from "../../../workers/webhooks/dispatcher-messages.js";

const OPTIONS: DispatcherOptions = { serviceVersion: "1.2.3", allow: [], deny: [], extraCa: null };
export const PAYLOAD = Buffer.from('{"event_id":"e","hello":"Wörld"}');

/** The dispatcher thread, with its reports gathered by delivery. */
export function startTestDispatcher(
  t: Test,
  options: Partial<DispatcherOptions> = {},
  clock = createServiceClock(wallClockUs),
) {
  const reports = new Map<string, DeliveryReport[]>();
  const waiting: (() => void)[] = [];
  const handle: DispatcherHandle = startDispatcher(
    { ...OPTIONS, ...options },
    {
      onReports(list) {
        for (const report of list) reports.set(report.deliveryId, [...(reports.get(report.deliveryId) ?? []), report]);
        for (const resolve of waiting.splice(0)) resolve();
      },
      onFailure: (message) => t.fail(message),
    },
    clock,
  );
  t.teardown(() => handle.stop(0));
  handle.serving(1);
  let made = 0;
  const deliver = (url: string, more: Partial<DeliveryJob> = {}): string => {
    const deliveryId = `d${++made}`;
    handle.deliver([
      {
        ...{
          deliveryId,
          afterId: null,
          eventId: `e${made}`,
          eventName: "ProgramFailed",
          url,
          window: null,
          secret: null,
          payload: PAYLOAD,
        },
        ...{ firstAttemptNumber: 1, attempts: 1, timeoutMs: 3000, backoffMs: 0, ...more },
      },
    ]);
    return deliveryId;
  };
  /** All reports of a delivery, once it has ended. */
  const end = async (deliveryId: string): Promise<DeliveryReport[]> => {
    for (;;) {
      const list = reports.get(deliveryId) ?? [];
      const last = list.at(-1)?.next.kind ?? "retry";
      if (last !== "retry" && last !== "attempt") return list.filter(({ attempt }) => attempt !== null);
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  return { handle, deliver, end, hasEnded: (id: string) => reports.has(id) };
}
