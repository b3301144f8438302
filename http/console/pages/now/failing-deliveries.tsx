import { useFailing } from "../../data/deliveries.js";
import { pageHref } from "../../router.js";
import { Loaded } from "../../ui/states.js";
import { Section, Text, Time } from "../../ui/values.js";

export function FailingDeliveries() {
  const failing = useFailing();
  return (
    <Section
      title="Deliveries that fail"
      aside={
        <a class="aside-end" href={pageHref("webhooks")}>
          Webhooks
        </a>
      }
    >
      <Loaded of={failing}>
        {(webhooks) =>
          webhooks.length === 0 ? (
            <p class="card-body note">None.</p>
          ) : (
            <ul class="delivery-list">
              {webhooks.map(({ webhook, failed, looked, latest }) => (
                <li key={webhook.id}>
                  <a href={pageHref("webhooks", webhook.id, { status: "failed" })}>
                    <Text of={webhook.name} />
                  </a>
                  <span>
                    {failed} of the last {looked} failed, the latest at <Time at={latest.created_at} />
                  </span>
                  {latest.last_error && (
                    <span class="note">
                      <Text of={latest.last_error} />
                    </span>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
