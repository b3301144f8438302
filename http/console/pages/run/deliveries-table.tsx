import { useState } from "preact/hooks";
import type { DeliverySummary, Run } from "../../data/api.js";
import { pageHref } from "../../router.js";
import { DeliveryDetails } from "../../ui/delivery-details.js";
import { deliveryOutcome, Mark } from "../../ui/outcome.js";
import { RetryButton } from "../../ui/retry-button.js";
import { Section, Text } from "../../ui/values.js";

export function DeliveriesTable({ run, reload }: { run: Run; reload: () => Promise<void> }) {
  const deliveries = run.webhook_deliveries ?? [];
  if (deliveries.length === 0) return null;
  const failed = run.webhook_delivery?.failed ?? 0;
  const aside = (
    <span class="count">{failed > 0 ? `${failed} of ${deliveries.length} failed` : deliveries.length}</span>
  );
  return (
    <Section title="Deliveries" aside={aside} class="deliveries">
      <ul class="delivery-list" tabIndex={deliveries.length > 12 ? 0 : undefined}>
        {deliveries.map((delivery) => (
          <DeliveryRow key={delivery.id} delivery={delivery} reload={reload} />
        ))}
      </ul>
    </Section>
  );
}

function DeliveryRow({ delivery, reload }: { delivery: DeliverySummary; reload: () => Promise<void> }) {
  const [isOpen, setIsOpen] = useState(false);
  const { attempts } = delivery;
  return (
    <li>
      <div class="delivery-line">
        <Mark of={deliveryOutcome(delivery.status)} />
        <span class="grow">
          {delivery.event_name}
          {" to "}
          <a href={pageHref("webhooks", delivery.webhook_id)}>
            <Text of={delivery.webhook_name} />
          </a>
        </span>
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {attempts === 1 ? "1 attempt" : `${attempts} attempts`}
        </button>
        {(delivery.status === "failed" || delivery.status === "exhausted") && (
          <RetryButton deliveryId={delivery.id} done={reload} />
        )}
      </div>
      {delivery.last_error && (
        <p class="note">
          <Text of={delivery.last_error} />
        </p>
      )}
      {isOpen && <DeliveryDetails deliveryId={delivery.id} version={`${attempts} ${delivery.status}`} />}
    </li>
  );
}
