import type { Test } from "tap";
import { createServiceClock, wallClockUs } from "../../../core/service-clock.js";
import type { DeliveryAttempt } from "../../../core/webhook/delivery.js";
import { type DispatcherHandle, startDispatcher } from "../../../workers/webhooks/dispatcher/dispatcher-handle.js";
import type {
  DeliveryJob,
  DeliveryReport,
  DispatcherOptions,
} from "../../../workers/webhooks/dispatcher/dispatcher-messages.js";
import { NO_SIGNERS } from "./webhook-fixtures.js";

const OPTIONS: DispatcherOptions = { serviceVersion: "1.2.3", allow: [], deny: [], extraCa: null };
export const PAYLOAD = Buffer.from('{"event_id":"e","hello":"Wörld"}');

/** The dispatcher thread, with what comes of its attempts. */
export function startTestDispatcher(
  t: Test,
  options: Partial<DispatcherOptions> = {},
  clock = createServiceClock(wallClockUs),
) {
  const attempts = new Map<string, DeliveryReport["attempt"]>();
  const waiting: (() => void)[] = [];
  const handle: DispatcherHandle = startDispatcher(
    { ...OPTIONS, ...options },
    {
      onReports(list) {
        for (const { deliveryId, attempt } of list) attempts.set(deliveryId, attempt);
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
          ...{
            eventId: `e${made}`,
            eventName: "ProgramFailed",
            url,
            signers: NO_SIGNERS,
            headers: [],
            payload: PAYLOAD,
          },
        },
        ...{ attemptNumber: 1, timeoutMs: 3000, windowLeftMs: 10_000, ...more },
      },
    ]);
    return deliveryId;
  };
  /** The attempt, once it has ended. */
  const end = async (deliveryId: string): Promise<DeliveryAttempt> => {
    for (;;) {
      const attempt = attempts.get(deliveryId);
      if (attempt !== undefined && "lacking" in attempt) throw new Error(attempt.lacking);
      if (attempt !== undefined) return attempt;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  };
  return { handle, deliver, end, hasEnded: (id: string) => attempts.has(id) };
}
