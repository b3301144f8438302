/** All programs, with what came out of each lately. */
import { getJson, type Program, type ProgramList, queryOf, type RunList } from "../data/api.js";
import { useReloadOnChange, useUnlistedProgram } from "../data/reload-on-change.js";
import { useResource } from "../data/resource.js";
import { whole } from "../data/units.js";
import { pageHref, place } from "../router.js";
import { Scroll } from "../ui/scroll.js";
import { Empty, Loaded } from "../ui/states.js";
import { Section, Text, Time } from "../ui/values.js";
import { Pager, pageOf } from "./pager.js";
import { RunsYield } from "./programs/runs-yield.js";
import { CellChoice } from "./runs/run-filters.js";

/** Runs over which the yield counts. */
const LATELY = 100;
/** Each costs a request for its runs. */
const A_PAGE = 50;

export function ProgramsPage() {
  const page = pageOf(place.value.query, A_PAGE);
  const offset = (page - 1) * A_PAGE;
  const cell = place.value.query.get("cell") ?? "";
  // The interface does not list the programs of one cell: they are chosen among the newest.
  const programs = useResource<ProgramList>(
    cell === "" ? `/programs${queryOf({ limit: A_PAGE, offset })}` : `programs of ${cell}, ${page}`,
    cell === "" ? undefined : (signal) => readCellPage(cell, offset, signal),
  );
  const listed = programs.data.value?.programs ?? [];
  const isUnlisted = useUnlistedProgram(listed);
  useReloadOnChange(programs, (run) => listed.some(({ id }) => id === run.program_id) || isUnlisted(run));
  const isAtHub = cell !== "" || listed.some(hasCell);
  const newest = useResource<ProgramList>(isAtHub ? NEWEST : null);
  const total = programs.data.value?.total;
  return (
    <>
      <h1 class="hidden">Programs</h1>
      {isAtHub && (
        <search aria-label="Filter programs">
          <form class="filters" onSubmit={(event) => event.preventDefault()}>
            <CellChoice programs={newest.data.value?.programs ?? []} cell={cell} />
          </form>
        </search>
      )}
      <Section title="Programs" aside={total !== undefined && <span class="count">{whole(total)}</span>}>
        <Loaded of={programs}>
          {({ programs: list, total: all }) => (
            <>
              {list.length > 0 ? (
                <ProgramsTable programs={list} cell={cell} />
              ) : (
                <Empty
                  title={all > 0 ? "This page is after the last one." : NO_PROGRAM[cell === "" ? "cell" : "chosen"]}
                />
              )}
              <Pager of="programs" page={page} total={all} aPage={A_PAGE} />
            </>
          )}
        </Loaded>
      </Section>
    </>
  );
}

const NO_PROGRAM = { cell: "The cell has declared no program yet.", chosen: "No program of this cell." };
const NEWEST = "/programs?limit=1000";

const hasCell = ({ cells = [] }: Program): boolean => cells.length > 0;

async function readCellPage(cell: string, offset: number, signal: AbortSignal): Promise<ProgramList> {
  const list = await getJson<ProgramList>(NEWEST, signal);
  const own = list.programs.filter(({ cells }) => cells?.includes(cell));
  return { ...list, programs: own.slice(offset, offset + A_PAGE), total: own.length };
}

/** @param cell only its runs count; empty: all */
function ProgramsTable({ programs, cell }: { programs: readonly Program[]; cell: string }) {
  const withCells = programs.some(hasCell);
  return (
    <Scroll class="wide-scroll" label="List of programs">
      <table>
        <thead>
          <tr>
            <th scope="col">Program</th>
            {withCells && (
              <th scope="col" class="wide-only">
                Cells
              </th>
            )}
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
            <ProgramRow key={program.id} program={program} cell={cell} withCells={withCells} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

interface ProgramRowProps {
  program: Program;
  cell: string;
  withCells: boolean;
}

function ProgramRow({ program, cell, withCells }: ProgramRowProps) {
  const runs = useResource<RunList>(`/programs/${program.id}/runs${queryOf({ limit: LATELY, cell })}`);
  useReloadOnChange(runs, (run) => run.program_id === program.id);
  const last = runs.data.value?.runs[0];
  return (
    <tr>
      <th scope="row" class="program">
        <a href={pageHref("programs", program.id)}>
          <Text of={program.name} />
        </a>
      </th>
      {withCells && (
        <td class="wide-only">
          <Text of={program.cells?.join(", ")} />
        </td>
      )}
      <td>{runs.data.value !== undefined && <RunsYield runs={runs.data.value.runs} />}</td>
      <td class="number">
        <a href={pageHref("runs", undefined, { program_id: program.id, ...(cell !== "" && { cell }) })}>
          {whole((cell === "" ? program.run_count : runs.data.value?.total) ?? 0)}
        </a>
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
