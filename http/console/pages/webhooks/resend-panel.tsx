/** Sends again what a receiver did not get. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, type Resend, type StartedResend, sendJson, type Webhook } from "../../data/api.js";
import { useReloadWhileSeen } from "../../data/reload-while-seen.js";
import { useResource } from "../../data/resource.js";
import { isReadOnly } from "../../data/session.js";
import { serviceNowMs } from "../../data/times.js";
import { place, setQuery } from "../../router.js";
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
  // The address names it: the service has no list of resends, and the page may be loaded again.
  const id = place.value.query.get("resend");
  const path = id === null ? null : `/webhooks/${webhook.id}/resends/${encodeURIComponent(id)}`;
  const resend = useResource<Resend>(path);
  const [fault, setFault] = useState("");
  const figures = resend.data.value;
  const error = resend.error.value;
  const isRunning = path !== null && (figures === undefined ? error === undefined : figures.state === "running");
  useReloadWhileSeen(resend, isRunning ? LOOK_MS : null);
  useEffect(() => void (figures !== undefined && changed()), [figures]);
  useEffect(() => {
    // Once the other one has ended, the page need not say that it runs.
    if (!isRunning) setFault("");
  }, [isRunning]);
  const failed = (error: unknown): void => setFault(sentence((error as ApiError).message));
  const show = (resend: string | undefined): void => {
    // Somebody may have gone to another page meanwhile.
    if (dialog.current !== null) setQuery({ resend }, true);
  };
  const begin = async (event: SubmitEvent): Promise<void> => {
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setFault("");
    show(undefined);
    const since = new Date(serviceNowMs() - Number(form.get("hours")) * 3_600_000).toISOString();
    try {
      const body = { since, statuses: form.getAll("statuses") };
      show((await sendJson<StartedResend>("POST", `/webhooks/${webhook.id}/resend`, body)).resend_id);
    } catch (error) {
      failed(error);
      // If another one runs, the error names it.
      show((error as ApiError).params.resend_id);
    }
  };
  const cancel = async (): Promise<void> => {
    try {
      await sendJson("DELETE", path as string);
      await resend.reload();
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
          <button type="button" disabled={isReadOnly.value} onClick={() => void cancel()}>
            Cancel the resend
          </button>
        )}
      </p>
      <p role="alert" class="fault">
        {fault === "" && error !== undefined ? sentence(error.message) : fault}
      </p>
      <p role="status" class="note">
        {figures === undefined ? "" : wordsOf(figures)}
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

function wordsOf({ deliveries, attempted, delivered, failed, state }: Resend): string {
  const figures = `${attempted} of ${deliveries} attempted, ${delivered} delivered, ${failed} failed`;
  return `Resend ${state === "running" ? "under way" : state}: ${figures}.`;
}
