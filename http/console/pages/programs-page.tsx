/** All programs, with what came out of each lately. */
import { type Program, type ProgramList, queryOf, type RunList } from "../data/api.js";
import { useReloadOnChange, useUnlistedProgram } from "../data/reload-on-change.js";
import { useResource } from "../data/resource.js";
import { whole } from "../data/units.js";
import { pageHref, place } from "../router.js";
import { Scroll } from "../ui/scroll.js";
import { Empty, Loaded } from "../ui/states.js";
import { Section, Text, Time } from "../ui/values.js";
import { Pager, pageOf } from "./pager.js";
import { RunsYield } from "./programs/runs-yield.js";

/** Runs over which the yield counts. */
const LATELY = 100;
/** Each costs a request for its runs. */
const A_PAGE = 50;

export function ProgramsPage() {
  const page = pageOf(place.value.query, A_PAGE);
  const offset = (page - 1) * A_PAGE;
  const programs = useResource<ProgramList>(`/programs${queryOf({ limit: A_PAGE, offset })}`);
  const listed = programs.data.value?.programs ?? [];
  const isUnlisted = useUnlistedProgram(listed);
  useReloadOnChange(programs, (run) => listed.some(({ id }) => id === run.program_id) || isUnlisted(run));
  const total = programs.data.value?.total;
  return (
    <>
      <h1 class="hidden">Programs</h1>
      <Section title="Programs" aside={total !== undefined && <span class="count">{whole(total)}</span>}>
        <Loaded of={programs}>
          {({ programs: list, total: all }) => (
            <>
              {list.length > 0 ? (
                <ProgramsTable programs={list} />
              ) : (
                <Empty title={all > 0 ? "This page is after the last one." : "The cell has declared no program yet."} />
              )}
              <Pager of="programs" page={page} total={all} aPage={A_PAGE} />
            </>
          )}
        </Loaded>
      </Section>
    </>
  );
}

function ProgramsTable({ programs }: { programs: readonly Program[] }) {
  return (
    <Scroll class="wide-scroll" label="List of programs">
      <table>
        <thead>
          <tr>
            <th scope="col">Program</th>
            <th scope="col">Yield of the last {LATELY} runs</th>
            <th scope="col" class="number">
              Runs
            </th>
            <th scope="col" class="number wide-only">
              Steps
            </th>
            <th scope="col" class="wide-only">
              State
            </th>
            <th scope="col" class="wide-only">
              Last run
            </th>
          </tr>
        </thead>
        <tbody>
          {programs.map((program) => (
            <ProgramRow key={program.id} program={program} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function ProgramRow({ program }: { program: Program }) {
  const runs = useResource<RunList>(`/programs/${program.id}/runs?limit=${LATELY}`);
  useReloadOnChange(runs, (run) => run.program_id === program.id);
  const last = runs.data.value?.runs[0];
  return (
    <tr>
      <th scope="row" class="program">
        <a href={pageHref("programs", program.id)}>
          <Text of={program.name} />
        </a>
      </th>
      <td>{runs.data.value !== undefined && <RunsYield runs={runs.data.value.runs} />}</td>
      <td class="number">
        <a href={pageHref("runs", undefined, { program_id: program.id })}>{whole(program.run_count ?? 0)}</a>
      </td>
      <td class="number wide-only">{program.steps.length}</td>
      <td class="wide-only">{program.status}</td>
      <td class="nowrap wide-only">
        {last === undefined ? (
          "–"
        ) : (
          <a href={pageHref("runs", last.id)}>
            <Time at={last.started_at ?? last.created_at} />
          </a>
        )}
      </td>
    </tr>
  );
}
