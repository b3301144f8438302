/** All webhooks, and a form for another one. */
import { useState } from "preact/hooks";
import type { Webhook } from "../data/api.js";
import { type FailingWebhook, useFailing } from "../data/deliveries.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { useResource } from "../data/resource.js";
import { isReadOnly } from "../data/session.js";
import { go, pageHref } from "../router.js";
import { Scroll } from "../ui/scroll.js";
import { Empty, Loaded } from "../ui/states.js";
import { Section, Text } from "../ui/values.js";
import { HeadRow } from "../ui/virtual-rows.js";
import { ReadOnlyNote } from "./webhooks/read-only-note.js";
import { WebhookForm } from "./webhooks/webhook-form.js";

export function WebhooksPage() {
  const webhooks = useResource<Webhook[]>("/webhooks");
  useReloadOnChange(webhooks, () => false);
  const failing = useFailing();
  const [isNew, setIsNew] = useState(false);
  const created = (webhook: Webhook): void => {
    void webhooks.reload();
    go(pageHref("webhooks", webhook.id));
  };
  return (
    <>
      <h1 class="hidden">Webhooks</h1>
      <ReadOnlyNote />
      {isNew && (
        <Section title="New webhook">
          <WebhookForm done={created} cancel={() => setIsNew(false)} />
        </Section>
      )}
      <Section
        title="Webhooks"
        aside={
          <>
            <span class="count">{webhooks.data.value?.length ?? ""}</span>
            <button type="button" class="aside-end" disabled={isNew || isReadOnly.value} onClick={() => setIsNew(true)}>
              New webhook
            </button>
          </>
        }
      >
        <Loaded of={webhooks}>
          {(list) =>
            list.length === 0 ? (
              <Empty title="Nobody is told of events.">
                <p>A webhook posts an event to a server of yours when a run begins or ends.</p>
              </Empty>
            ) : (
              <WebhooksTable webhooks={list} failing={failing.data.value} />
            )
          }
        </Loaded>
      </Section>
    </>
  );
}

interface WebhooksTableProps {
  webhooks: readonly Webhook[];
  /** Undefined while they are read. */
  failing: readonly FailingWebhook[] | undefined;
}

function WebhooksTable({ webhooks, failing }: WebhooksTableProps) {
  return (
    <Scroll class="wide-scroll" label="List of webhooks">
      <table>
        <thead>
          <HeadRow columns={["Webhook", ["Address", "wide-only"], ["Events", "wide-only"], "Deliveries"]} />
        </thead>
        <tbody>
          {webhooks.map((webhook) => {
            const bad = failing?.find(({ webhook: { id } }) => id === webhook.id);
            return (
              <tr key={webhook.id}>
                <th scope="row" class="program">
                  <a href={pageHref("webhooks", webhook.id)}>
                    <Text of={webhook.name} />
                  </a>
                  {!webhook.enabled && <span class="tag">disabled</span>}
                </th>
                <td class="mono wide-only">
                  <Text of={webhook.url} />
                </td>
                <td class="wide-only note">{webhook.subscribed_events.join(", ")}</td>
                <td>
                  {failing === undefined ? (
                    ""
                  ) : bad === undefined ? (
                    <span class="note">none fails</span>
                  ) : (
                    <a class="trend-fail" href={pageHref("webhooks", webhook.id, { status: "failed" })}>
                      {bad.failed} of {bad.looked} failed
                    </a>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  );
}
