import { useState } from "preact/hooks";
import { sendJson } from "../data/api.js";
import { isReadOnly } from "../data/session.js";
import { sentence } from "./states.js";

/** Tries a failed delivery again. @param done called when the service has taken it */
export function RetryButton({ deliveryId, done }: { deliveryId: string; done: () => Promise<unknown> }) {
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
