/** One program: its steps, how it and its checks are doing, and its newest runs. */
import { ApiError, getJson, type Program, queryOf, type RunList, type RunSummary } from "../data/api.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { type Resource, useResource } from "../data/resource.js";
import { whole } from "../data/units.js";
import { pageHref, place } from "../router.js";
import { RunsTable } from "../ui/runs-table.js";
import { Empty, Loaded } from "../ui/states.js";
import { Facts, Section, Text, Time } from "../ui/values.js";
import { CheckCharts } from "./programs/check-charts.js";
import { CheckList } from "./programs/check-list.js";
import { ProgramQuality as QualityPanel } from "./programs/program-quality.js";
import { ProgramSteps } from "./programs/program-steps.js";
import { ChecksExport, QualityFilter } from "./programs/quality-filter.js";
import { type ProgramQuality, type QualityQuery, readProgramQuality } from "./programs/read-quality.js";
import { RunsYield } from "./programs/runs-yield.js";

const LATELY = 100;
const LISTED = 20;

export function ProgramPage({ programId }: { programId: string }) {
  const path = `/programs/${encodeURIComponent(programId)}`;
  const asked = (name: keyof QualityQuery): string => place.value.query.get(name) ?? "";
  const query: QualityQuery = {
    completed_since: asked("completed_since"),
    completed_until: asked("completed_until"),
    check: asked("check"),
  };
  const program = useResource<ShownProgram>(`program ${path}`, (signal) => readProgram(path, signal));
  const runs = useResource<RunList>(`${path}/runs?limit=${LATELY}`);
  const quality = useResource<ProgramQuality>(`quality ${path}${queryOf({ ...query })}`, (signal) =>
    readProgramQuality(path, query, signal),
  );
  const isThis = (run: RunSummary) => run.program_id === programId.toLowerCase();
  useReloadOnChange(program, isThis);
  useReloadOnChange(runs, isThis);
  // Nothing else changes them.
  useReloadOnChange(quality, (run) => isThis(run) && Boolean(run.completed_at));
  return (
    <Loaded of={program} isPage>
      {(data) => (
        <>
          <header class="run-head">
            <h1>
              <Text of={data.name} none="Deleted program" />
            </h1>
            {data.steps === undefined ? (
              <p class="note">This program was deleted. Its runs and their quality stay.</p>
            ) : (
              <ProgramFacts program={data} />
            )}
          </header>
          <QualityFilter query={query} />
          <div class="columns">
            <div class="column-main">
              <Checks quality={quality} query={query} programId={programId} path={path} />
              <LastRuns runs={runs} programId={programId} />
            </div>
            <div class="column-side">
              <QualityPanel quality={quality} query={query} />
              {data.steps !== undefined && <ProgramSteps steps={data.steps} />}
            </div>
          </div>
        </>
      )}
    </Loaded>
  );
}

/** What is known of a program: of a deleted one the name that it had in its newest run. */
type ShownProgram = Program | { name: string | null; steps?: undefined };

async function readProgram(path: string, signal: AbortSignal): Promise<ShownProgram> {
  try {
    return await getJson<Program>(path, signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    // There are no runs either of a program that never was: then this is 404, too.
    const { runs } = await getJson<RunList>(`${path}/runs?limit=1`, signal);
    return { name: runs[0]?.program_name ?? null };
  }
}

interface ChecksProps {
  quality: Resource<ProgramQuality>;
  query: QualityQuery;
  programId: string;
  path: string;
}

/** All checks, or the one that the address names. */
function Checks({ quality, query, programId, path }: ChecksProps) {
  if (query.check !== "") {
    const { check: _, ...rest } = Object.fromEntries(place.value.query);
    const all = (
      <a class="aside-end" href={pageHref("programs", programId, rest)}>
        All checks
      </a>
    );
    return (
      <Section title="Check" aside={all}>
        <h3 class="card-body check-title">
          <Text of={query.check} />
        </h3>
        <Loaded of={quality}>{(data) => <CheckCharts quality={data} />}</Loaded>
        <ChecksExport path={path} query={query} />
      </Section>
    );
  }
  const count = quality.data.value?.statistics.checks.length;
  return (
    <Section title="Checks" aside={count !== undefined && <span class="count">{whole(count)}</span>}>
      <Loaded of={quality}>{({ statistics }) => <CheckList programId={programId} statistics={statistics} />}</Loaded>
      <ChecksExport path={path} query={query} />
    </Section>
  );
}

function LastRuns({ runs, programId }: { runs: Resource<RunList>; programId: string }) {
  const aside = (
    <>
      {runs.data.value !== undefined && <RunsYield runs={runs.data.value.runs} />}
      <a class="aside-end" href={pageHref("runs", undefined, { program_id: programId })}>
        All runs
      </a>
    </>
  );
  return (
    <Section title="Last runs" aside={aside}>
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
  if (program.cells?.length) facts.Cells = program.cells.join(", ");
  if (program.run_configs?.length) facts.Configurations = program.run_configs.map(({ name }) => name).join(", ");
  return (
    <>
      {program.description && (
        <p>
          <Text of={program.description} />
        </p>
      )}
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
