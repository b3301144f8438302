import { useState } from "preact/hooks";
import { ApiError, sendJson, type Webhook, type WebhookRequest } from "../../data/api.js";
import { isReadOnly } from "../../data/session.js";
import { sentence } from "../../ui/states.js";
import { Fault, type Faults, Field, focus } from "./form-fields.js";
import { HeaderFields, headersOf } from "./header-fields.js";
import { SigningFields } from "./signing-fields.js";

const EVENTS = ["ProgramStarted", "ProgramCompleted", "ProgramFailed", "ProgramCancelled"] as const;

interface WebhookFormProps {
  /** Undefined: a new one. */
  webhook?: Webhook;
  done(webhook: Webhook): void;
  cancel(): void;
}

/** What the service says of the fields, by their name, and of each header; what belongs to no field under "". */
function faultsOf(error: unknown): Faults {
  if (!(error instanceof ApiError)) return { "": (error as Error).message };
  const { field, allowed, faults } = error.params;
  const each = faults ?? (field === undefined || allowed === undefined ? [] : [{ field, allowed }]);
  if (each.length === 0) return { "": sentence(error.message) };
  const fieldOf = (field: string) => (field.startsWith("headers/") ? field : (field.split("/")[0] as string));
  return Object.fromEntries(each.map((one) => [fieldOf(one.field), `Must be ${one.allowed}.`]));
}

/** The body of the request. An empty secret keeps the one that there is; the box beside it removes it. */
function requestOf(form: FormData, isNew: boolean): WebhookRequest {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const number = (name: string) => (text(name) === "" ? null : Number(text(name)));
  // As it was typed: the receiver has the same spaces.
  const secret = String(form.get("secret") ?? "");
  const headers = headersOf(form);
  return {
    name: text("name"),
    url: text("url"),
    subscribed_events: form.getAll("subscribed_events") as WebhookRequest["subscribed_events"],
    on_failure_mode: form.has("warn") ? "WARN" : "IGNORE",
    enabled: form.has("enabled"),
    delivery_timeout_seconds: number("delivery_timeout_seconds"),
    retry_backoff_seconds: number("retry_backoff_seconds"),
    max_retries: number("max_retries"),
    signing: text("signing") as NonNullable<WebhookRequest["signing"]>,
    ...(headers !== undefined && { headers }),
    ...(secret !== "" && { secret }),
    ...(!isNew && form.has("remove_secret") && { secret: null }),
  };
}

/** Only what was changed here: somebody else may have changed the rest meanwhile. */
function changesOf(request: WebhookRequest, webhook: Webhook): Partial<WebhookRequest> {
  const before: Readonly<Record<string, unknown>> = { ...webhook };
  const comparable = (value: unknown) => JSON.stringify(Array.isArray(value) ? value.toSorted() : value);
  return Object.fromEntries(
    Object.entries(request).filter(([name, value]) => comparable(value) !== comparable(before[name])),
  );
}

/** A new secret takes the place of another without a gap: for a day, both sign. */
async function saved(webhook: Webhook, request: WebhookRequest): Promise<Webhook> {
  const { secret, ...others } = changesOf(request, webhook);
  const path = `/webhooks/${webhook.id}`;
  if (!webhook.has_secret || !secret) {
    return sendJson<Webhook>("PATCH", path, secret === undefined ? others : { ...others, secret });
  }
  await sendJson("PATCH", path, others);
  return sendJson<Webhook>("POST", `${path}/rotate-secret`, { secret });
}

export function WebhookForm({ webhook: latest, done, cancel }: WebhookFormProps) {
  // When the settings are read again, the form stays as it was opened: a field must not change unseen.
  const [webhook] = useState(latest);
  const [faults, setFaults] = useState<Faults>({});
  const [isSending, setIsSending] = useState(false);
  const isNew = webhook === undefined;
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setIsSending(true);
    try {
      const body = requestOf(form, isNew);
      if (isNew) done(await sendJson<Webhook>("POST", "/webhooks", body));
      else done(await saved(webhook, body));
    } catch (error) {
      setFaults(faultsOf(error));
      setIsSending(false);
    }
  };
  const field = (name: string, label: string, attributes: Record<string, unknown>) => (
    <Field name={name} label={label} attributes={attributes} faults={faults} />
  );
  return (
    <form class="webhook-form" onSubmit={(event) => void submit(event)} noValidate>
      {field("name", "Name", { defaultValue: webhook?.name ?? "", required: true, autocomplete: "off", ref: focus })}
      {field("url", "Address", {
        defaultValue: webhook?.url ?? "",
        type: "url",
        placeholder: "https://mes.example/events",
        autocomplete: "off",
      })}
      <Events webhook={webhook} faults={faults} />
      <div class="form-row">
        {field("delivery_timeout_seconds", "Timeout in seconds", {
          type: "number",
          step: "any",
          defaultValue: webhook?.delivery_timeout_seconds ?? 3,
        })}
        {field("retry_backoff_seconds", "Pause between attempts in seconds", {
          type: "number",
          step: "any",
          defaultValue: webhook?.retry_backoff_seconds ?? 1,
        })}
        {field("max_retries", "Retries", { type: "number", defaultValue: webhook?.max_retries ?? 3 })}
      </div>
      <SigningFields webhook={webhook} faults={faults} />
      <HeaderFields names={webhook?.header_names ?? []} faults={faults} />
      <Settings webhook={webhook} />
      <Fault fault={faults[""]} />
      <p class="buttons">
        <button type="submit" class="primary" disabled={isSending || isReadOnly.value}>
          {isNew ? "Create" : "Save"}
        </button>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </p>
    </form>
  );
}

function Box({ name, words, isOn }: { name: string; words: string; isOn: boolean }) {
  return (
    <label>
      <input type="checkbox" name={name} defaultChecked={isOn} />
      {words}
    </label>
  );
}

interface EventsProps {
  webhook: Webhook | undefined;
  faults: Faults;
}

function Events({ webhook, faults }: EventsProps) {
  return (
    <fieldset class="choice-list">
      <legend>Events</legend>
      {EVENTS.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            name="subscribed_events"
            value={name}
            defaultChecked={
              webhook === undefined ? name !== "ProgramStarted" : webhook.subscribed_events.includes(name)
            }
          />
          {name}
        </label>
      ))}
      <Fault fault={faults.subscribed_events} />
    </fieldset>
  );
}

function Settings({ webhook }: { webhook: Webhook | undefined }) {
  return (
    <fieldset class="choice-list">
      <legend class="hidden">Further settings</legend>
      <Box name="enabled" words="Enabled" isOn={webhook?.enabled ?? true} />
      <Box name="warn" words="Note failures in the run's event log" isOn={webhook?.on_failure_mode === "WARN"} />
      {webhook?.has_secret && <Box name="remove_secret" words="Remove the secret" isOn={false} />}
    </fieldset>
  );
}
