import { useState } from "preact/hooks";
import { getJson, type Program, type ProgramList, queryOf } from "../../data/api.js";
import { useEditedInput } from "../../data/edited-input.js";
import { type Resource, useResource } from "../../data/resource.js";
import { whole } from "../../data/units.js";

/** The interface gives as many at once; a longer list nobody reads. */
const OFFERED = 1_000;

interface ProgramChoiceProps {
  /** The newest `OFFERED` programs. */
  newest: Resource<ProgramList>;
  chosen: string;
  choose(id: string): void;
}

/** Chooses a program among the newest. If there are more, it can also search all of them. */
export function ProgramChoice({ newest, chosen, choose }: ProgramChoiceProps) {
  const { programs = NONE, total = 0 } = newest.data.value ?? {};
  const [words, setWords] = useState("");
  const search = useEditedInput(words, (input) => setWords(input.value.trim()));
  const isSearched = words !== "" && total > OFFERED;
  const found = useResource<Program[]>(isSearched ? `programs with ${words}` : null, (signal) =>
    findPrograms(words, signal),
  );
  const matches = found.data.value;
  const offered = (isSearched ? matches : programs) ?? NONE;
  const isUnlisted = chosen !== "" && newest.data.value !== undefined && offered.every(({ id }) => id !== chosen);
  const own = useResource<Program>(isUnlisted ? `/programs/${encodeURIComponent(chosen)}` : null);
  return (
    <>
      {total > OFFERED && (
        <label>
          Find a program
          <input type="search" name="program" placeholder="Name or id" {...search} />
        </label>
      )}
      <label>
        Program
        <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">All</option>
          {offered.map(({ id, name }) => (
            <option key={id} value={id}>
              {name.slice(0, 100)}
            </option>
          ))}
          {(isUnlisted || newest.data.value === undefined) && chosen !== "" && (
            <option value={chosen}>{(own.data.value?.name ?? chosen).slice(0, 100)}</option>
          )}
        </select>
      </label>
      {isSearched && (
        <output class="note">
          {found.error.value?.message ?? (matches === undefined ? "Searching …" : countText(matches.length))}
        </output>
      )}
    </>
  );
}

const NONE: readonly Program[] = [];

function countText(count: number): string {
  if (count === 0) return "No program matches";
  if (count === 1) return "1 program matches";
  return `${count < OFFERED ? whole(count) : `The newest ${whole(OFFERED)}`} programs match`;
}

/** Programs whose name or id has these words, newest first. The interface has no such filter, so all of them are read. */
async function findPrograms(words: string, signal: AbortSignal): Promise<Program[]> {
  const wanted = words.toLowerCase();
  const found: Program[] = [];
  for (let offset = 0; found.length < OFFERED; ) {
    const { programs, total } = await getJson<ProgramList>(`/programs${queryOf({ limit: OFFERED, offset })}`, signal);
    found.push(...programs.filter(({ id, name }) => id === wanted || name.toLowerCase().includes(wanted)));
    offset += programs.length;
    if (programs.length === 0 || offset >= total) break;
  }
  return found.slice(0, OFFERED);
}
