import type { Program, ProgramList } from "../../data/api.js";
import { useEditedInput } from "../../data/edited-input.js";
import { useReloadOnChange, useUnlistedProgram } from "../../data/reload-on-change.js";
import { useResource } from "../../data/resource.js";
import type { RunPageQuery } from "../../data/run-pages.js";
import { setQuery } from "../../router.js";
import { TimeInput } from "../../ui/time-input.js";
import { ProgramChoice } from "./program-choice.js";

const STATES = [
  ["pending", "Pending"],
  ["running", "Running"],
  ["finalizing", "Finalizing"],
  ["completed", "Completed"],
  ["failed", "Broke off"],
  ["cancelled", "Cancelled"],
] as const;
const OUTCOMES = [
  ["passed", "Passed"],
  ["failed", "Failed"],
  ["indeterminate", "Indeterminate"],
  ["none", "Without a report"],
] as const;

const timeText = (ms: number | undefined): string => (ms === undefined ? "" : new Date(ms).toISOString());

/** A change of a filter begins on the first page. */
function set(name: string, value: string): void {
  setQuery({ [name]: value, page: undefined });
}

export function RunFilters({ query }: { query: RunPageQuery }) {
  const { filter, fromMs, toMs } = query;
  const programs = useResource<ProgramList>("/programs?limit=1000");
  const list = programs.data.value?.programs ?? [];
  useReloadOnChange(programs, useUnlistedProgram(list));
  const serial = useEditedInput(filter.serial_number ?? "", (input) => set("serial_number", input.value.trim()));
  const isAny = Object.values(filter).some(Boolean) || fromMs !== undefined || toMs !== undefined;
  const clear = (): void => {
    const names = [...Object.keys(filter), "from", "to", "page"];
    setQuery(Object.fromEntries(names.map((name) => [name, undefined])));
  };
  return (
    <search aria-label="Filter runs">
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Serial number
          <input type="search" name="serial_number" placeholder="In full" {...serial} />
        </label>
        <ProgramChoice newest={programs} chosen={filter.program_id ?? ""} choose={(id) => set("program_id", id)} />
        <CellChoice programs={list} cell={filter.cell ?? ""} />
        <Choice label="Outcome" name="quality_status" value={filter.quality_status} options={OUTCOMES} />
        <Choice label="State" name="status" value={filter.status} options={STATES} />
        <TimeInput label="From" name="from" at={timeText(fromMs)} change={(at) => set("from", at)} />
        <TimeInput label="Until" name="to" at={timeText(toMs)} change={(at) => set("to", at)} />
        <button type="button" disabled={!isAny} onClick={clear}>
          Clear
        </button>
      </form>
    </search>
  );
}

/** At a hub: one of the cells that have programs. */
export function CellChoice({ programs, cell }: { programs: readonly Program[]; cell: string }) {
  const names = new Set(programs.flatMap(({ cells }) => cells ?? []));
  if (cell !== "") names.add(cell);
  if (names.size === 0) return null;
  return <Choice label="Cell" name="cell" value={cell} options={[...names].sort().map((name) => [name, name])} />;
}

interface ChoiceProps {
  label: string;
  name: string;
  value: string | undefined;
  options: readonly (readonly [value: string, word: string])[];
}

function Choice({ label, name, value, options }: ChoiceProps) {
  return (
    <label>
      {label}
      <select name={name} value={value} onChange={(event) => set(name, event.currentTarget.value)}>
        <option value="">All</option>
        {options.map(([one, word]) => (
          <option key={one} value={one}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
}
