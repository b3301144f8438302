import { useEffect, useRef } from "preact/hooks";
import { type Delivery, getJson, queryOf, type RunSummary } from "../../data/api.js";
import { useReloadOnChange } from "../../data/reload-on-change.js";
import { PENDING_MS, useReloadWhileSeen } from "../../data/reload-while-seen.js";
import { useResource } from "../../data/resource.js";
import { pageHref, place, setQuery } from "../../router.js";
import { DeliveryRow } from "../../ui/delivery-row.js";
import { Empty, Loaded } from "../../ui/states.js";
import { Section, Time } from "../../ui/values.js";

const A_PAGE = 50;
/** Between two searches for what matches a filter. */
const SEARCH_PAUSE_MS = 10_000;

interface Filter {
  status: string;
  event: string;
}

interface Found {
  deliveries: Delivery[];
  /** Where to look on; undefined if there are no more. */
  before: string | undefined;
}

async function find(webhookId: string, filter: Filter, from: string | undefined, signal: AbortSignal): Promise<Found> {
  const deliveries: Delivery[] = [];
  for (let before = from; deliveries.length < A_PAGE; before = deliveries.at(-1)?.created_at) {
    const query = { limit: A_PAGE - deliveries.length, before, status: filter.status, event_name: filter.event };
    const path = `/webhooks/${encodeURIComponent(webhookId)}/deliveries${queryOf(query)}`;
    const page = await getJson<Delivery[]>(path, signal);
    // A page can be short because its payloads are long: only an empty one is the end.
    if (page.length === 0) return { deliveries, before: undefined };
    deliveries.push(...page);
  }
  return { deliveries, before: deliveries.at(-1)?.created_at };
}

/** Whether a run has come to another state, which makes an event. Its steps and checks make none. */
function useNewState(): (run: RunSummary) => boolean {
  const told = useRef("");
  return ({ id, status }) => {
    const state = `${id} ${status}`;
    const isNew = state !== told.current;
    told.current = state;
    return isNew;
  };
}

interface DeliveryListProps {
  webhookId: string;
  /** Changes when something was posted. */
  version: number;
  /** The list has been read. */
  loaded(): void;
}

export function DeliveryList({ webhookId, version, loaded }: DeliveryListProps) {
  const { query } = place.value;
  const filter: Filter = { status: query.get("status") ?? "", event: query.get("event") ?? "" };
  const before = query.get("before") ?? undefined;
  const key = `deliveries ${webhookId} ${JSON.stringify([filter, before])}`;
  const found = useResource<Found>(key, (signal) => find(webhookId, filter, before, signal));
  const isFiltered = filter.status !== "" || filter.event !== "";
  // Only the newest page gets new deliveries.
  const isNewest = before === undefined;
  const isNewState = useNewState();
  useReloadOnChange(found, (run) => isNewest && !isFiltered && isNewState(run));
  useEffect(() => void (version > 0 && found.reload()), [version]);
  useEffect(() => void (found.data.value !== undefined && loaded()), [found.data.value]);
  const isPending = found.data.value?.deliveries.some(({ status }) => status === "pending") ?? false;
  // No change of a run tells when a delivery comes to a state, or that one of an earlier state of the run was made.
  const searchMs = isNewest || isPending ? SEARCH_PAUSE_MS : null;
  useReloadWhileSeen(found, isFiltered ? searchMs : isPending ? PENDING_MS : null);
  return (
    <Section title="Deliveries" aside={<Filters filter={filter} />}>
      <Loaded of={found}>
        {({ deliveries, before: next }) => (
          <>
            {deliveries.length === 0 ? (
              <Empty title="No delivery matches." />
            ) : (
              <ul class="delivery-list">
                {deliveries.map((delivery) => (
                  <DeliveryRow key={delivery.id} delivery={delivery} reload={() => found.reload()}>
                    <Time at={delivery.created_at} />
                    <What delivery={delivery} />
                  </DeliveryRow>
                ))}
              </ul>
            )}
            {(next !== undefined || before !== undefined) && (
              <nav class="pager" aria-label="Pages of deliveries">
                <button type="button" disabled={before === undefined} onClick={() => setQuery({ before: undefined })}>
                  Newest
                </button>
                <button type="button" disabled={next === undefined} onClick={() => setQuery({ before: next })}>
                  Older
                </button>
              </nav>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

const STATES = ["pending", "delivered", "failed"] as const;
const EVENTS = ["ProgramStarted", "ProgramCompleted", "ProgramFailed", "ProgramCancelled", "WebhookTest"] as const;

function Filters({ filter }: { filter: Filter }) {
  const choose = (name: keyof Filter, word: string, options: readonly string[]) => (
    <select
      aria-label={word}
      value={filter[name]}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value, before: undefined })}
    >
      <option value="">{word}: all</option>
      {options.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
  return (
    <span class="head-filters">
      {choose("status", "State", STATES)}
      {choose("event", "Event", EVENTS)}
    </span>
  );
}

function What({ delivery }: { delivery: Delivery }) {
  const { event_name: event, program_run_id: runId, last_status_code: answer } = delivery;
  return (
    <span class="grow">
      {runId === null ? event : <a href={pageHref("runs", runId)}>{event}</a>}
      {answer !== null && <span class="note"> answer {answer}</span>}
    </span>
  );
}
