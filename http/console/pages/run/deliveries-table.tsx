import type { Run } from "../../data/api.js";
import { pageHref } from "../../router.js";
import { DeliveryRow } from "../../ui/delivery-row.js";
import { Section, Text } from "../../ui/values.js";

export function DeliveriesTable({ run, reload }: { run: Run; reload: () => Promise<void> }) {
  const deliveries = run.webhook_deliveries ?? [];
  if (deliveries.length === 0) return null;
  const failed = run.webhook_delivery?.failed ?? 0;
  const aside = (
    <span class="count">{failed > 0 ? `${failed} of ${deliveries.length} failed` : deliveries.length}</span>
  );
  return (
    <Section title="Deliveries" aside={aside}>
      <ul class="delivery-list">
        {deliveries.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} reload={reload}>
            <span class="grow">
              {delivery.event_name}
              {" to "}
              <a href={pageHref("webhooks", delivery.webhook_id)}>
                <Text of={delivery.webhook_name} />
              </a>
            </span>
          </DeliveryRow>
        ))}
      </ul>
    </Section>
  );
}
