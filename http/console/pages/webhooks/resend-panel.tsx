/** Sends again what a receiver did not get. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, getJson, type Resend, type StartedResend, sendJson, type Webhook } from "../../data/api.js";
import { isReadOnly } from "../../data/session.js";
import { serviceNowMs } from "../../data/times.js";
import { sentence } from "../../ui/states.js";

const SPANS_HOURS = {
  "the last hour": 1,
  "the last day": 24,
  "the last 7 days": 168,
  "the last 30 days": 720,
} as const;
const LOOK_MS = 1_000;

interface ResendPanelProps {
  webhook: Webhook;
  /** Deliveries have changed. */
  changed(): void;
}

export function ResendPanel({ webhook, changed }: ResendPanelProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [path, setPath] = useState<string>();
  const [resend, setResend] = useState<Resend>();
  const [fault, setFault] = useState("");
  const failed = (error: unknown): void => setFault(sentence((error as ApiError).message));
  const isRunning = path !== undefined && (resend === undefined || resend.state === "running");
  useEffect(() => {
    if (path === undefined || !isRunning) return;
    const look = async (): Promise<void> => {
      try {
        setResend(await getJson<Resend>(path));
        changed();
      } catch (error) {
        failed(error);
      }
    };
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => clearInterval(timer);
  }, [path, isRunning]);
  const begin = async (event: SubmitEvent): Promise<void> => {
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setFault("");
    setResend(undefined);
    setPath(undefined);
    const since = new Date(serviceNowMs() - Number(form.get("hours")) * 3_600_000).toISOString();
    try {
      const body = { since, statuses: form.getAll("statuses") };
      const { resend_id } = await sendJson<StartedResend>("POST", `/webhooks/${webhook.id}/resend`, body);
      setPath(`/webhooks/${webhook.id}/resends/${resend_id}`);
    } catch (error) {
      failed(error);
    }
  };
  return (
    <>
      <p class="buttons">
        <button type="button" disabled={isReadOnly.value || isRunning} onClick={() => dialog.current?.showModal()}>
          Resend
        </button>
        {isRunning && (
          <button type="button" onClick={() => void sendJson("DELETE", path).catch(failed)}>
            Cancel the resend
          </button>
        )}
      </p>
      <p role="status" class={fault === "" ? "note" : "fault"}>
        {fault === "" ? wordsOf(resend, isRunning) : fault}
      </p>
      <dialog ref={dialog} aria-labelledby="resend-question">
        <form method="dialog" onSubmit={(event) => void begin(event)}>
          <Question close={() => dialog.current?.close()} />
        </form>
      </dialog>
    </>
  );
}

function Question({ close }: { close(): void }) {
  return (
    <>
      <p id="resend-question">Send again what it did not get?</p>
      <select name="hours" aria-label="Span">
        {Object.entries(SPANS_HOURS).map(([words, hours]) => (
          <option key={hours} value={hours}>
            {words}
          </option>
        ))}
      </select>
      <fieldset class="choice-list">
        <legend class="hidden">Which</legend>
        <label>
          <input type="checkbox" name="statuses" value="failed" defaultChecked />
          Those that failed
        </label>
        <label>
          <input type="checkbox" name="statuses" value="missed" />
          Those of which it has no delivery
        </label>
      </fieldset>
      <p class="buttons">
        <button type="submit" class="primary">
          Send them
        </button>
        <button type="button" onClick={close}>
          Keep as it is
        </button>
      </p>
    </>
  );
}

function wordsOf(resend: Resend | undefined, isRunning: boolean): string {
  if (resend === undefined) return isRunning ? "The resend has begun." : "";
  const { deliveries, attempted, delivered, failed, state } = resend;
  const figures = `${attempted} of ${deliveries} attempted, ${delivered} delivered, ${failed} failed`;
  return `Resend ${state === "running" ? "under way" : state}: ${figures}.`;
}
