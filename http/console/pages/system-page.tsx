/** The service and the cell: health, version, storage. */
import { apiFetch, apiUrl } from "../data/api.js";
import { useHealth } from "../data/health.js";
import { useReloadWhileSeen } from "../data/reload-while-seen.js";
import { useResource } from "../data/resource.js";
import { apiKey } from "../data/session.js";
import { duration, serviceNowMs } from "../data/times.js";
import { bytes, whole } from "../data/units.js";
import { componentState, Mark } from "../ui/outcome.js";
import { Scroll } from "../ui/scroll.js";
import { Loaded } from "../ui/states.js";
import { Section, Text } from "../ui/values.js";
import { HeadRow } from "../ui/virtual-rows.js";
import { componentsOf, HealthState } from "./now/health-panel.js";

/** Figures of the Prometheus text: those without labels. */
function parseFigures(text: string): Map<string, number> {
  const figures = new Map<string, number>();
  for (const [, name, value] of text.matchAll(/^([a-z_]+) (\S+)$/gm)) figures.set(name as string, Number(value));
  return figures;
}

export function SystemPage() {
  const version = useResource<{ "service-version": string }>("/system/version");
  const figures = useResource<Map<string, number>>("figures", async (signal) =>
    parseFigures(await (await apiFetch("/metrics", { signal })).text()),
  );
  useReloadWhileSeen(figures);
  return (
    <>
      <h1 class="hidden">System</h1>
      <div class="columns">
        <div class="column-main">
          <HealthTable />
        </div>
        <div class="column-side">
          <Section title="Service">
            <Loaded of={version}>
              {(data) => (
                <dl class="figures">
                  <Figure word="Version" figure={data["service-version"]} />
                  {figures.data.value !== undefined && <Figures found={figures.data.value} of={PROCESS} />}
                </dl>
              )}
            </Loaded>
          </Section>
          <Section title="Storage">
            <Loaded of={figures}>
              {(found) => (
                <dl class="figures">
                  <Figures found={found} of={STORAGE} />
                </dl>
              )}
            </Loaded>
          </Section>
          <Section title="For developers">
            <ul class="links">
              <ApiLink path="/docs" words="The interface, with every request and field" />
              <ApiLink path="/openapi.json" words="The same as an OpenAPI document" />
              <ApiLink path="/metrics" words="All figures, for Prometheus" />
              <ApiLink path="/health" words="The health of service and cell" />
            </ul>
            {apiKey.value !== undefined && (
              <p class="card-body note">These pages need the key too: send it as a header, from a program.</p>
            )}
          </Section>
        </div>
      </div>
    </>
  );
}

function ApiLink({ path, words }: { path: string; words: string }) {
  return (
    <li>
      <a href={apiUrl(path)}>{path}</a> <span class="note">{words}</span>
    </li>
  );
}

function Figure({ word, figure }: { word: string; figure: string }) {
  return (
    <div>
      <dt>{word}</dt>
      <dd>{figure}</dd>
    </div>
  );
}

/** A word, the figure's name, and how it is written. */
type ShownFigure = readonly [word: string, name: string, shown: (value: number) => string];

const PROCESS: readonly ShownFigure[] = [
  ["Running for", "process_start_time_seconds", (seconds) => duration(Math.max(0, serviceNowMs() - seconds * 1000))],
  ["Memory", "process_resident_memory_bytes", bytes],
  ["Producers connected", "inspection_producers", whole],
  ["Open requests", "inspection_http_open_requests", whole],
  ["Waiting deliveries", "inspection_webhook_waiting", whole],
];
const STORAGE: readonly ShownFigure[] = [
  ["Free on the disk", "inspection_disk_free_bytes", bytes],
  ["Captures", "inspection_captured_bytes", bytes],
  ["Log", "inspection_log_bytes", bytes],
  ["Files made on demand", "inspection_made_bytes", bytes],
  ["Runs", "inspection_runs", whole],
  ["Captures removed since the start", "inspection_retention_bytes_total", bytes],
];

function Figures({ found, of }: { found: ReadonlyMap<string, number>; of: readonly ShownFigure[] }) {
  return of.map(([word, name, shown]) => {
    const value = found.get(name);
    return value === undefined ? null : <Figure key={name} word={word} figure={shown(value)} />;
  });
}

function HealthTable() {
  const health = useHealth();
  return (
    <Section title="Health" aside={<HealthState />}>
      <Loaded of={health}>
        {(data) => (
          <Scroll class="wide-scroll" label="Components">
            <table>
              <thead>
                <HeadRow columns={["State", "Component", "Details"]} />
              </thead>
              <tbody>
                {componentsOf(data).map(([key, { status, detail, enabled }]) => (
                  <tr key={key}>
                    <td>
                      <Mark of={componentState(status)} />
                    </td>
                    <th scope="row">
                      <Text of={key.replaceAll("_", " ")} />
                    </th>
                    <td class="note">
                      <Text of={detail} none="" />
                      {enabled === false && <span class="tag">motion disabled</span>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        )}
      </Loaded>
    </Section>
  );
}
