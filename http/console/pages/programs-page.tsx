/** All programs, with what came out of each lately. */
import type { Program, ProgramList, RunList } from "../data/api.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { useResource } from "../data/resource.js";
import { whole } from "../data/units.js";
import { pageHref } from "../router.js";
import { Scroll } from "../ui/scroll.js";
import { Empty, Loaded } from "../ui/states.js";
import { Section, Text, Time } from "../ui/values.js";
import { RunsYield } from "./programs/runs-yield.js";

/** Runs over which the yield counts. */
const LATELY = 100;

export function ProgramsPage() {
  const programs = useResource<ProgramList>("/programs?limit=1000");
  useReloadOnChange(programs);
  const total = programs.data.value?.total;
  return (
    <>
      <h1 class="hidden">Programs</h1>
      <Section title="Programs" aside={total !== undefined && <span class="count">{whole(total)}</span>}>
        <Loaded of={programs}>
          {({ programs: list }) =>
            list.length === 0 ? (
              <Empty title="The cell has declared no program yet." />
            ) : (
              <ProgramsTable programs={list} />
            )
          }
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
