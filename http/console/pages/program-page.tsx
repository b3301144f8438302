/** One program: its steps, how its checks come out over the last runs, and its defects over all of them. */
import { getJson, type Program, type RunList, type Statistics } from "../data/api.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { type Resource, useResource } from "../data/resource.js";
import { readTrends, type Trends } from "../data/trends.js";
import { whole } from "../data/units.js";
import { pageHref } from "../router.js";
import { RunsTable } from "../ui/runs-table.js";
import { Empty, LeftOut, Loaded } from "../ui/states.js";
import { Facts, Section, Text, Time } from "../ui/values.js";
import { ProgramQuality } from "./programs/program-quality.js";
import { ProgramSteps } from "./programs/program-steps.js";
import { RunsYield } from "./programs/runs-yield.js";
import { TrendList } from "./programs/trend-list.js";

const LATELY = 100;
/** How many of these runs have their reports read. */
const WITH_TRENDS = 50;
const LISTED = 20;

export function ProgramPage({ programId }: { programId: string }) {
  const path = `/programs/${encodeURIComponent(programId)}`;
  const program = useResource<Program>(path);
  const runs = useResource<RunList>(`${path}/runs?limit=${LATELY}`);
  const trends = useResource<Trends>(`trends ${programId}`, async (signal) => {
    const { runs: latest } = await getJson<RunList>(`${path}/runs?limit=${WITH_TRENDS}`, signal);
    return readTrends(latest, signal);
  });
  const statistics = useResource<Statistics>(`${path}/statistics`);
  const isThis = (run: { program_id: string }) => run.program_id === programId.toLowerCase();
  useReloadOnChange(program, isThis);
  useReloadOnChange(runs, isThis);
  useReloadOnChange(trends, isThis);
  // Nothing else changes them.
  useReloadOnChange(statistics, (run) => isThis(run) && Boolean(run.completed_at));
  return (
    <Loaded of={program} isPage>
      {(data) => (
        <>
          <header class="run-head">
            <h1>
              <Text of={data.name} />
            </h1>
            {data.description && (
              <p>
                <Text of={data.description} />
              </p>
            )}
            <ProgramFacts program={data} />
          </header>
          <div class="columns">
            <div class="column-main">
              <Section
                title={`Checks over the last ${WITH_TRENDS} runs`}
                aside={runs.data.value !== undefined && <RunsYield runs={runs.data.value.runs} />}
              >
                <Loaded of={trends}>
                  {({ trends: list, completed, unreadable }) => (
                    <>
                      <LeftOut unreadable={unreadable} of={completed} />
                      {(completed === 0 || unreadable < completed) && <TrendList trends={list} />}
                    </>
                  )}
                </Loaded>
              </Section>
              <LastRuns runs={runs} programId={programId} />
            </div>
            <div class="column-side">
              <ProgramQuality statistics={statistics} />
              <ProgramSteps steps={data.steps} />
            </div>
          </div>
        </>
      )}
    </Loaded>
  );
}

function LastRuns({ runs, programId }: { runs: Resource<RunList>; programId: string }) {
  const all = (
    <a class="aside-end" href={pageHref("runs", undefined, { program_id: programId })}>
      All runs
    </a>
  );
  return (
    <Section title="Last runs" aside={all}>
      <Loaded of={runs}>
        {({ runs: list }) =>
          list.length === 0 ? (
            <Empty title="No run yet." />
          ) : (
            <RunsTable runs={list.slice(0, LISTED)} withProgram={false} />
          )
        }
      </Loaded>
    </Section>
  );
}

function ProgramFacts({ program }: { program: Program }) {
  const facts: Record<string, unknown> = {};
  if (program.robot_ids?.length) facts.Robots = program.robot_ids.join(", ");
  if (program.sensor_id) facts.Sensor = program.sensor_id;
  if (program.co_processor) facts["Co-processor"] = program.co_processor;
  if (program.pre_hook) facts["Before a run"] = program.pre_hook;
  if (program.post_hook) facts["After a run"] = program.post_hook;
  if (program.run_configs?.length) facts.Configurations = program.run_configs.map(({ name }) => name).join(", ");
  return (
    <>
      <dl class="fact-list">
        <div>
          <dt>State</dt>
          <dd>{program.status}</dd>
        </div>
        <div>
          <dt>Runs</dt>
          <dd>{whole(program.run_count ?? 0)}</dd>
        </div>
        <div>
          <dt>Changed</dt>
          <dd>
            <Time at={program.updated_at} />
          </dd>
        </div>
        <div>
          <dt>Id</dt>
          <dd class="mono">{program.id}</dd>
        </div>
      </dl>
      <Facts of={{ ...facts, ...program.metadata }} />
    </>
  );
}
