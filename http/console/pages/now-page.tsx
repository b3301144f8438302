/** What the cell is doing now, and what came out lately. */
import { useEffect, useState } from "preact/hooks";
import type { ActiveRun, RunList, RunSummary } from "../data/api.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { useResource } from "../data/resource.js";
import { countDay, type DayCounts } from "../data/run-pages.js";
import { startOfToday } from "../data/times.js";
import { pageHref } from "../router.js";
import { Mark, runOutcome } from "../ui/outcome.js";
import { RunPreview } from "../ui/preview.js";
import { Reason } from "../ui/runs-table.js";
import { Empty, Loaded } from "../ui/states.js";
import { InspectionNote, Section, Text, Time } from "../ui/values.js";
import { ActivePanel } from "./now/active-panel.js";
import { FailingDeliveries } from "./now/failing-deliveries.js";
import { HealthPanel } from "./now/health-panel.js";
import { LastPanel, YieldPanel } from "./now/today-panels.js";

const SHOWN_RUNS = 50;
/** A page that is open over midnight goes on with the new day within this time. */
const DAY_LOOK_MS = 1_000;

export function NowPage() {
  const active = useResource<ActiveRun>("/runs/active");
  const runs = useResource<RunList>(`/runs?limit=${SHOWN_RUNS}`);
  const [since, setSince] = useState(startOfToday);
  useEffect(() => {
    const timer = setInterval(() => setSince(startOfToday()), DAY_LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const today = useResource<DayCounts>(`count since ${since}`, (signal) => countDay(since, signal));
  useReloadOnChange(active);
  useReloadOnChange(runs);
  useReloadOnChange(today, ({ completed_at: at }) => at !== null && at !== undefined);
  const ended = (runs.data.value?.runs ?? []).filter(({ completed_at: at }) => at);
  const last = ended.sort((a, b) => Date.parse(b.completed_at ?? "") - Date.parse(a.completed_at ?? ""))[0];
  return (
    <>
      <h1 class="hidden">What the cell is doing now</h1>
      <div class="now-top">
        <Loaded of={active}>{(data) => <ActivePanel run={data.run ?? undefined} />}</Loaded>
        <LastPanel run={last} />
        <YieldPanel today={today} since={since} />
      </div>
      <div class="now-below">
        <Section
          title={`Last ${SHOWN_RUNS} runs`}
          aside={<a href={pageHref("runs")}>{`All ${runs.data.value?.total ?? ""} runs`}</a>}
        >
          <Loaded of={runs}>{(data) => <Tiles runs={data.runs} />}</Loaded>
        </Section>
        <div class="column-side">
          <HealthPanel />
          <FailingDeliveries />
        </div>
      </div>
    </>
  );
}

function Tiles({ runs }: { runs: readonly RunSummary[] }) {
  if (runs.length === 0) {
    return (
      <Empty title="No run yet.">
        <p>Runs appear here as soon as the cell makes them.</p>
      </Empty>
    );
  }
  return (
    <ul class="tiles">
      {runs.map((run) => {
        const outcome = runOutcome(run);
        return (
          <li key={run.id} class={`tile edge-${outcome.tone}`}>
            <a href={pageHref("runs", run.id)}>
              <RunPreview run={run} />
              <span class="tile-name">
                <Text of={run.serial_number} none="No serial number" />
              </span>
            </a>
            <span class="tile-line">
              <Mark of={outcome} />
              <span class="note">
                <Time at={run.started_at ?? run.created_at} />
              </span>
              <InspectionNote run={run} />
            </span>
            <Reason run={run} class="tile-reason" />
          </li>
        );
      })}
    </ul>
  );
}
