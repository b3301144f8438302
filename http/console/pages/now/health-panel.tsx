import type { Health } from "../../data/api.js";
import { useHealth } from "../../data/health.js";
import { pageHref } from "../../router.js";
import { componentState, Mark } from "../../ui/outcome.js";
import { Loaded } from "../../ui/states.js";
import { Section, Text } from "../../ui/values.js";

const ORDER = ["down", "estopped", "degraded", "healthy"];

/** Components, those that are not well first. */
export function componentsOf({ components }: Health) {
  return Object.entries(components).sort(([, a], [, b]) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status));
}

/** The state of all; nothing while the service does not tell it. */
export function HealthState() {
  const { data, error } = useHealth();
  if (data.value === undefined || error.value !== undefined) return null;
  return <Mark of={componentState(data.value.status)} />;
}

export function HealthPanel() {
  const health = useHealth();
  return (
    <Section
      title="Health"
      aside={
        <>
          <HealthState />
          <a class="aside-end" href={pageHref("system")}>
            System
          </a>
        </>
      }
    >
      <Loaded of={health}>
        {(data) => (
          <ul class="components">
            {componentsOf(data).map(([key, component]) => {
              const { tone, sign, word } = componentState(component.status);
              return (
                <li key={`${key} ${tone}`} class={`component-${tone}`}>
                  <span class="component-sign" aria-hidden="true">
                    {sign}
                  </span>
                  <span class="hidden">{word}: </span>
                  <span class="component-name">
                    <Text of={key.replaceAll("_", " ")} />
                  </span>
                  {component.detail && (
                    <span class="note">
                      <Text of={component.detail} />
                    </span>
                  )}
                </li>
              );
            })}
          </ul>
        )}
      </Loaded>
    </Section>
  );
}
