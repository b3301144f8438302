import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { type DeliverySummary, sendJson } from "../data/api.js";
import { isReadOnly } from "../data/session.js";
import { DeliveryDetails } from "./delivery-details.js";
import { deliveryOutcome, Mark } from "./outcome.js";
import { sentence } from "./states.js";
import { Text } from "./values.js";

interface DeliveryRowProps {
  delivery: Pick<DeliverySummary, "id" | "status" | "attempts" | "last_error">;
  /** Called after a retry. */
  reload(): Promise<void>;
  /** Which delivery it is. */
  children: ComponentChildren;
}

/** A delivery in a list: its state, its attempts on request, and a retry if it failed. */
export function DeliveryRow({ delivery, reload, children }: DeliveryRowProps) {
  const [isOpen, setIsOpen] = useState(false);
  const { id, status, attempts, last_error: error } = delivery;
  return (
    <li>
      <div class="delivery-line">
        <Mark of={deliveryOutcome(status)} />
        {children}
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {attempts === 1 ? "1 attempt" : `${attempts} attempts`}
        </button>
        {(status === "failed" || status === "exhausted") && <RetryButton deliveryId={id} done={reload} />}
      </div>
      {error && (
        <p class="note">
          <Text of={error} />
        </p>
      )}
      {isOpen && <DeliveryDetails deliveryId={id} version={`${attempts} ${status}`} />}
    </li>
  );
}

/** Tries a failed delivery again. @param done called when the service has taken it */
function RetryButton({ deliveryId, done }: { deliveryId: string; done: () => Promise<unknown> }) {
  const [state, setState] = useState<"idle" | "sending">("idle");
  const [fault, setFault] = useState("");
  const retry = async (): Promise<void> => {
    setState("sending");
    setFault("");
    try {
      await sendJson("POST", `/webhook-deliveries/${deliveryId}/retry`);
      await done();
    } catch (error) {
      setFault(sentence((error as Error).message));
    }
    setState("idle");
  };
  return (
    <>
      <button
        type="button"
        disabled={state === "sending" || isReadOnly.value}
        title={isReadOnly.value ? "This key may only read" : undefined}
        onClick={() => void retry()}
      >
        {state === "sending" ? "Retrying …" : "Retry"}
      </button>
      {fault !== "" && (
        <span class="fault" role="alert">
          {fault}
        </span>
      )}
    </>
  );
}
