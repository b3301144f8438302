import { type Check, queryOf, type Report, type RunList, type RunSummary } from "../../data/api.js";
import { useReloadOnChange } from "../../data/reload-on-change.js";
import { readReports } from "../../data/reports.js";
import { useResource } from "../../data/resource.js";
import { lengthDecimals } from "../../data/units.js";
import { pageHref } from "../../router.js";
import { checkOutcome, Mark, runOutcome } from "../../ui/outcome.js";
import { LeftOut, Loaded } from "../../ui/states.js";
import { checkNumber, Section, Text, Time, unitOf } from "../../ui/values.js";
import { VirtualTable } from "../../ui/virtual-rows.js";

/** Inspections of a part that are compared: each costs a request, and nobody looks through more columns. */
const COMPARED = 100;

/** All inspections of one part, whatever else the list is filtered by: a column each, the newest first; a row for each check. */
export function SideBySide({ serial }: { serial: string }) {
  const list = useResource<RunList>(`/runs${queryOf({ serial_number: serial, limit: COMPARED })}`);
  useReloadOnChange(list, ({ serial_number: one }) => one === serial);
  const { runs = NONE, total = 0 } = list.data.value ?? {};
  const key = runs.map(({ id, updated_at: at }) => `${id} ${at}`).join(" ");
  const inspections = useResource<Inspection[]>(runs.length < 2 ? null : `reports ${key}`, async (signal) => {
    const reports = await readReports(runs, signal);
    return runs.flatMap((run, at) => (reports[at] === undefined ? [] : { run, report: reports[at] }));
  });
  if (runs.length < 2) return null;
  return (
    <Section
      title="Side by side"
      aside={<span class="count">{`${total > COMPARED ? `the newest ${COMPARED} of ` : ""}${total} inspections`}</span>}
    >
      <Loaded of={inspections}>
        {(readable) => (
          <>
            <LeftOut unreadable={runs.length - readable.length} of={runs.length} />
            <Comparison inspections={readable} />
          </>
        )}
      </Loaded>
    </Section>
  );
}

const NONE: readonly RunSummary[] = [];

interface Inspection {
  run: RunSummary;
  report: Report;
}

interface Row {
  name: string;
  /** One for each run. */
  checks: (Check | undefined)[];
}

/** A row for each name, in the order in which the names came up; what failed anywhere comes first. */
function rowsOf(inspections: readonly Inspection[]): Row[] {
  const rows = new Map<string, Row>();
  inspections.forEach(({ report: { quality_report: report } }, at) => {
    const seen = new Map<string, number>();
    for (const check of report?.checks ?? []) {
      // A name can come twice in a run: the second one is compared with the second one.
      const times = seen.get(check.name) ?? 0;
      seen.set(check.name, times + 1);
      const key = `${times} ${check.name}`;
      let row = rows.get(key);
      if (row === undefined) {
        row = { name: check.name, checks: inspections.map(() => undefined) };
        rows.set(key, row);
      }
      row.checks[at] = check;
    }
  });
  const isBad = ({ checks }: Row) => checks.some((check) => check?.status === "failed" || check?.status === "error");
  return [...rows.values()].sort((a, b) => Number(isBad(b)) - Number(isBad(a)));
}

function Comparison({ inspections }: { inspections: readonly Inspection[] }) {
  const head = (
    <tr>
      <th scope="col">Check</th>
      {inspections.map(({ run }) => (
        <th scope="col" key={run.id} class="number">
          <a href={pageHref("runs", run.id)}>Inspection {run.revision ?? 1}</a>{" "}
          <Time at={run.started_at ?? run.created_at} /> <Mark of={runOutcome(run)} />
        </th>
      ))}
    </tr>
  );
  return (
    <VirtualTable
      label="Inspections side by side"
      class="compare-table"
      rows={rowsOf(inspections)}
      columns={inspections.length + 1}
      head={head}
      draw={({ name, checks }, at) => (
        <tr key={at}>
          <th scope="row">
            <Text of={name} />
          </th>
          {checks.map((check, column) => (
            <td key={inspections[column]?.run.id} class="number">
              {check !== undefined && <Cell check={check} />}
            </td>
          ))}
        </tr>
      )}
    />
  );
}

function Cell({ check }: { check: Check }) {
  const isLength = check.canonical_units === "mm";
  const isFine = check.status === "passed";
  return (
    <>
      {!isFine && <Mark of={checkOutcome(check.status)} />}{" "}
      <span class={isFine ? "" : "strong"}>{checkNumber(check.value, isLength, lengthDecimals(check.threshold))}</span>{" "}
      <span class="unit">{check.value == null ? (isFine ? "✓" : "") : unitOf(isLength)}</span>
    </>
  );
}
