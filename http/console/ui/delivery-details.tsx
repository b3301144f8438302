import { useEffect } from "preact/hooks";
import type { DeliveryDetail } from "../data/api.js";
import { useResource } from "../data/resource.js";
import { duration, msBetween } from "../data/times.js";
import { Scroll } from "./scroll.js";
import { Loaded } from "./states.js";
import { Text, Time } from "./values.js";

/** A delivery's attempts and what was posted. @param version changes when the delivery does */
export function DeliveryDetails({ deliveryId, version }: { deliveryId: string; version: string }) {
  const detail = useResource<DeliveryDetail>(`/webhook-deliveries/${deliveryId}`);
  useEffect(() => void detail.reload(), [version]);
  return (
    <div class="delivery-details">
      <Loaded of={detail}>
        {(delivery) => (
          <>
            <ol class="attempts" reversed>
              {delivery.attempt_history.map((attempt) => (
                <li key={attempt.attempt_number} value={attempt.attempt_number}>
                  <Time at={attempt.started_at} />
                  {attempt.completed_at && `, ${duration(msBetween(attempt.started_at, attempt.completed_at) ?? 0)}`}
                  {attempt.status_code !== null && `, answer ${attempt.status_code}`}
                  {attempt.error !== null ? (
                    <>
                      {": "}
                      <Text of={attempt.error} />
                    </>
                  ) : (
                    ": delivered"
                  )}
                  {attempt.response_body && (
                    <Scroll class="code" label="The receiver's answer">
                      <pre>{attempt.response_body}</pre>
                    </Scroll>
                  )}
                </li>
              ))}
            </ol>
            {delivery.next_retry_at && (
              <p class="note">
                Next attempt <Time at={delivery.next_retry_at} />
              </p>
            )}
            <details>
              <summary>Payload</summary>
              <Scroll class="code" label="Payload">
                <pre>{JSON.stringify(delivery.payload, undefined, 2)}</pre>
              </Scroll>
            </details>
          </>
        )}
      </Loaded>
    </div>
  );
}
