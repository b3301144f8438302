import type { Statistics } from "../../data/api.js";
import { fixed, whole } from "../../data/units.js";
import { pageHref, place, setQuery } from "../../router.js";
import { Plot } from "../../ui/charts/plot.js";
import { Empty } from "../../ui/states.js";
import { ShortText, ShowAll, unitOf } from "../../ui/values.js";
import { VirtualTable } from "../../ui/virtual-rows.js";
import { type CheckStatistics, isLength, numberTextOf, specificationLines } from "./check-numbers.js";

/** The checks of a program, those that fail most first; each leads to its charts. */
export function CheckList({ programId, statistics }: { programId: string; statistics: Statistics }) {
  const words = place.value.query.get("find") ?? "";
  const { checks, runs } = statistics;
  if (checks.length === 0) {
    const text = runs.completed > 0 ? "The completed runs have no checks." : "No run was completed in this time.";
    const isAll = statistics.completed_since === null && statistics.completed_until === null;
    return <Empty title={isAll && runs.completed === 0 ? "No completed run yet." : text} />;
  }
  const found = checks.filter(({ name }) => name.toLowerCase().includes(words.toLowerCase()));
  const sorted = found.sort((a, b) => b.failed / b.count - a.failed / a.count);
  const head = (
    <tr>
      <th scope="col">Check</th>
      <th scope="col">Trend</th>
      <th scope="col" class="number">
        Failed
      </th>
      <th scope="col" class="number wide-only">
        Mean
      </th>
      <th scope="col" class="number wide-only">
        Cpk
      </th>
      <th scope="col" class="number wide-only">
        Ppk
      </th>
    </tr>
  );
  return (
    <>
      {checks.length > 12 && (
        <p class="card-body">
          <input
            type="search"
            aria-label="Find checks by name"
            placeholder="Find"
            value={words}
            onInput={(event) => setQuery({ find: event.currentTarget.value }, true)}
          />
        </p>
      )}
      {sorted.length === 0 ? (
        <Empty title="No check has such a name." />
      ) : (
        <VirtualTable
          label="Checks, those that fail most first"
          class="check-list"
          rows={sorted}
          columns={6}
          head={head}
          draw={(check) => <CheckRow key={check.name} check={check} programId={programId} />}
        />
      )}
    </>
  );
}

function CheckRow({ check, programId }: { check: CheckStatistics; programId: string }) {
  const { name, count, failed, mean, cpk, ppk, trend } = check;
  const query = { ...Object.fromEntries(place.value.query), check: name };
  return (
    <tr>
      <th scope="row">
        <a href={pageHref("programs", programId, query)}>
          <ShortText of={name} />
        </a>
        <ShowAll of={name} />
      </th>
      <td class="check-trend">
        {trend.length > 0 && (
          <Plot
            points={trend.map((bucket) => ({ value: bucket.mean, isFailed: bucket.failed > 0 }))}
            lines={specificationLines(check).filter(({ kind }) => kind === "limit")}
          />
        )}
      </td>
      <td class={`number ${failed > 0 ? "trend-fail" : ""}`}>{`${whole(failed)} of ${whole(count)}`}</td>
      <td class="number wide-only">
        {mean === null ? "–" : numberTextOf(check)(mean)}
        {mean !== null && <span class="unit"> {unitOf(isLength(check))}</span>}
      </td>
      <td class="number wide-only">{indexText(cpk)}</td>
      <td class="number wide-only">{indexText(ppk)}</td>
    </tr>
  );
}

/** A capability. */
export function indexText(index: number | null): string {
  return index === null ? "–" : fixed(index, 2);
}
