/** All runs, by filters that are in the address. */

import { useReloadOnChange } from "../data/reload-on-change.js";
import { useResource } from "../data/resource.js";
import { RUNS_A_PAGE, type RunPage, type RunPageQuery, readRunPage } from "../data/run-pages.js";
import { whole } from "../data/units.js";
import { place } from "../router.js";
import { RunsTable } from "../ui/runs-table.js";
import { Empty, Loaded } from "../ui/states.js";
import { Section } from "../ui/values.js";
import { Pager, pageOf } from "./pager.js";
import { RunFilters } from "./runs/run-filters.js";
import { SideBySide } from "./runs/side-by-side.js";

function queryOfPlace(query: URLSearchParams): RunPageQuery {
  const time = (name: string): number | undefined => {
    const ms = Date.parse(query.get(name) ?? "");
    return Number.isNaN(ms) ? undefined : ms;
  };
  const text = (name: string) => query.get(name) ?? "";
  return {
    filter: {
      program_id: text("program_id"),
      status: text("status"),
      quality_status: text("quality_status"),
      serial_number: text("serial_number"),
      cell: text("cell"),
    },
    fromMs: time("from"),
    toMs: time("to"),
    page: pageOf(query, RUNS_A_PAGE),
  };
}

export function RunsPage() {
  const query = queryOfPlace(place.value.query);
  const runs = useResource<RunPage>(`runs ${JSON.stringify(query)}`, (signal) => readRunPage(query, signal));
  useReloadOnChange(runs);
  const serial = query.filter.serial_number;
  const total = runs.data.value?.total;
  return (
    <>
      <h1 class="hidden">Runs</h1>
      <RunFilters query={query} />
      {serial && <SideBySide serial={serial} />}
      <Section title="Runs" aside={total !== undefined && <span class="count">{whole(total)}</span>}>
        <Loaded of={runs}>
          {(page) => (
            <>
              {page.runs.length === 0 ? <NoRuns query={query} total={page.total} /> : <RunsTable runs={page.runs} />}
              <Pager of="runs" page={query.page} total={page.total} aPage={RUNS_A_PAGE} />
            </>
          )}
        </Loaded>
      </Section>
    </>
  );
}

function NoRuns({ query, total }: { query: RunPageQuery; total: number }) {
  const isFiltered =
    Object.values(query.filter).some(Boolean) || query.fromMs !== undefined || query.toMs !== undefined;
  if (total > 0) return <Empty title="This page is after the last one." />;
  return (
    <Empty title={isFiltered ? "No run matches." : "No run yet."}>
      {query.filter.serial_number && <p>Serial numbers are compared whole, with upper and lower case.</p>}
    </Empty>
  );
}
