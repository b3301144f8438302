/** One webhook: its settings, a test, and what was delivered to it. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, sendJson, type TestResult, type Webhook } from "../data/api.js";
import { liveState } from "../data/live.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { type Resource, useResource } from "../data/resource.js";
import { isReadOnly } from "../data/session.js";
import { localTime } from "../data/times.js";
import { go, pageHref } from "../router.js";
import { Loaded, sentence } from "../ui/states.js";
import { Section, Text, Time } from "../ui/values.js";
import { DeliveryList } from "./webhooks/delivery-list.js";
import { ReadOnlyNote } from "./webhooks/read-only-note.js";
import { ResendPanel } from "./webhooks/resend-panel.js";
import { PublicKey } from "./webhooks/signing-fields.js";
import { WebhookForm } from "./webhooks/webhook-form.js";

export function WebhookPage({ webhookId }: { webhookId: string }) {
  const webhook = useResource<Webhook>(`/webhooks/${encodeURIComponent(webhookId)}`);
  useReloadOnChange(webhook, () => false);
  const [tests, setTests] = useState(0);
  return (
    <>
      <ReadOnlyNote />
      <Loaded of={webhook} isPage>
        {(data) => <Settings webhook={data} resource={webhook} tested={() => setTests(tests + 1)} />}
      </Loaded>
      {/* The deliveries of a deleted webhook stay readable. */}
      <DeliveryList
        webhookId={webhookId}
        version={tests}
        // Its figures and last times are those of the deliveries below.
        loaded={() => webhook.data.peek() !== undefined && void webhook.reload()}
      />
    </>
  );
}

interface SettingsProps {
  webhook: Webhook;
  resource: Resource<Webhook>;
  tested(): void;
}

function Settings({ webhook, resource, tested }: SettingsProps) {
  const [isEditing, setIsEditing] = useState(false);
  const saved = (): void => {
    void resource.reload();
    setIsEditing(false);
  };
  return (
    <>
      <header class="run-head">
        <div class="run-title">
          <h1>
            <Text of={webhook.name} />
          </h1>
          {!webhook.enabled && <span class="tag">disabled</span>}
        </div>
        <dl class="fact-list">
          <Fact word="Address" fact={webhook.url} />
          <Fact word="Events" fact={webhook.subscribed_events.join(", ")} />
          <Fact word="Signed" fact={signedBy(webhook)} />
          <Fact word="Attempts" fact={`${webhook.max_retries + 1} at most, ${webhook.retry_backoff_seconds} s apart`} />
          <Fact word="Timeout" fact={`${webhook.delivery_timeout_seconds} s`} />
          <Fact
            word="A failure"
            fact={webhook.on_failure_mode === "WARN" ? "is noted in the run's event log" : "shows in the delivery only"}
          />
          <Fact word="Headers" fact={webhook.header_names.join(", ")} />
          <Fact word="Last 24 hours" fact={dayOf(webhook)} />
          <div>
            <dt>Last success</dt>
            <dd>
              <Time at={webhook.last_success_at} />
            </dd>
          </div>
          {webhook.last_failure_at !== null && (
            <div>
              <dt>Last failure</dt>
              <dd>
                <Time at={webhook.last_failure_at} /> <Text of={webhook.last_error} none="" />
              </dd>
            </div>
          )}
          <div>
            <dt>Changed</dt>
            <dd>
              <Time at={webhook.updated_at} />
            </dd>
          </div>
        </dl>
        {webhook.signing === "ed25519" &&
          (webhook.cell === undefined ? <PublicKey /> : <KeyAtCell cell={webhook.cell} />)}
        <Actions webhook={webhook} edit={() => setIsEditing(true)} tested={tested} />
        <ResendPanel webhook={webhook} changed={tested} />
      </header>
      {isEditing && (
        <Section title="Settings">
          <WebhookForm webhook={webhook} done={saved} cancel={() => setIsEditing(false)} />
        </Section>
      )}
    </>
  );
}

/** A hub does not have the key. */
function KeyAtCell({ cell }: { cell: string }) {
  return (
    <p class="note">
      Its cell <Text of={cell} /> gives the public key.
    </p>
  );
}

function signedBy(webhook: Webhook): string {
  const { has_secret: hasSecret, previous_secret_expires_at: endsAt, signing } = webhook;
  const hmac = hasSecret ? (endsAt === null ? "with a secret" : `with two secrets until ${localTime(endsAt)}`) : "no";
  if (signing === "hmac") return hmac;
  return hasSecret ? `with Ed25519 and ${hmac}` : "with Ed25519";
}

function dayOf({ deliveries_24h: { delivered, failed } }: Webhook): string {
  return `${delivered} delivered, ${failed} failed`;
}

function Fact({ word, fact }: { word: string; fact: string }) {
  return (
    <div>
      <dt>{word}</dt>
      <dd>
        <Text of={fact} />
      </dd>
    </div>
  );
}

interface ActionsProps {
  webhook: Webhook;
  edit(): void;
  tested(): void;
}

function Actions({ webhook, edit, tested }: ActionsProps) {
  const [result, setResult] = useState<{ isFine: boolean; words: string; isPassing?: boolean }>();
  const [isTesting, setIsTesting] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const failed = (error: unknown): void => {
    const { message, status } = error as ApiError;
    setResult({ isFine: false, words: sentence(message), isPassing: status === 0 });
  };
  const isLive = liveState.value === "live";
  useEffect(() => {
    // If a request failed because the service did not answer, the error is old when the service answers again.
    if (isLive && result?.isPassing) setResult(undefined);
  }, [isLive]);
  const test = async (): Promise<void> => {
    setIsTesting(true);
    setResult(undefined);
    try {
      const {
        delivered,
        status_code: status,
        error,
      } = await sendJson<TestResult>("POST", `/webhooks/${webhook.id}/test`);
      const words = delivered
        ? `The receiver took the test event: it answered ${status}.`
        : sentence(error ?? "not delivered");
      setResult({ isFine: delivered, words });
      tested();
    } catch (error) {
      failed(error);
    }
    setIsTesting(false);
  };
  const remove = async (): Promise<void> => {
    dialog.current?.close();
    try {
      await sendJson("DELETE", `/webhooks/${webhook.id}`);
      go(pageHref("webhooks"));
    } catch (error) {
      failed(error);
    }
  };
  const { value: mayOnlyRead } = isReadOnly;
  return (
    <>
      <p class="buttons">
        <button type="button" disabled={mayOnlyRead} onClick={edit}>
          Edit
        </button>
        <button type="button" disabled={mayOnlyRead || isTesting} onClick={() => void test()}>
          {isTesting ? "Testing …" : "Test"}
        </button>
        <button type="button" class="danger" disabled={mayOnlyRead} onClick={() => dialog.current?.showModal()}>
          Delete
        </button>
      </p>
      <p role="status" class={result?.isFine === false ? "fault" : "note"}>
        {result?.words ?? ""}
      </p>
      <DeleteDialog name={webhook.name} dialog={dialog} remove={remove} />
    </>
  );
}

interface DeleteDialogProps {
  name: string;
  dialog: RefObject<HTMLDialogElement | null>;
  remove(): Promise<void>;
}

function DeleteDialog({ name, dialog, remove }: DeleteDialogProps) {
  return (
    <dialog ref={dialog} aria-labelledby="delete-question">
      <p id="delete-question">
        Delete <Text of={name} />? Nothing more is posted to it. Its deliveries stay readable.
      </p>
      <p class="buttons">
        <button type="button" class="danger" onClick={() => void remove()}>
          Delete it
        </button>
        <button type="button" autofocus onClick={() => dialog.current?.close()}>
          Keep it
        </button>
      </p>
    </dialog>
  );
}
