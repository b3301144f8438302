import { Fragment } from "preact";
import type { RunSummary } from "../data/api.js";
import { useFailedNames } from "../data/reports.js";
import { duration, msBetween } from "../data/times.js";
import { pageHref } from "../router.js";
import { Mark, runOutcome } from "./outcome.js";
import { Scroll } from "./scroll.js";
import { InspectionNote, ShortText, Text, Time } from "./values.js";
import { HeadRow } from "./virtual-rows.js";

export function RunsTable({ runs, withProgram = true }: { runs: readonly RunSummary[]; withProgram?: boolean }) {
  // Only a hub says it.
  const withCell = runs.some(({ cell }) => cell);
  return (
    <Scroll class="wide-scroll" label="List of runs">
      <table class="runs-table">
        <thead>
          <HeadRow
            columns={[
              "Outcome",
              "Part",
              ["Inspection", "number wide-only"],
              withProgram && ["Program", "wide-only"],
              withCell && ["Cell", "wide-only"],
              "Began",
              ["Took", "number wide-only"],
              ["Steps", "number wide-only"],
            ]}
          />
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunRow key={run.id} run={run} withProgram={withProgram} withCell={withCell} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

interface RunRowProps {
  run: RunSummary;
  withProgram: boolean;
  withCell: boolean;
}

function RunRow({ run, withProgram, withCell }: RunRowProps) {
  const took = run.completed_at ? msBetween(run.started_at, run.completed_at) : undefined;
  const { completed_steps: done, total_steps: all } = run.progress;
  return (
    <tr>
      <td>
        <Mark of={runOutcome(run)} />
      </td>
      <th scope="row" class="part">
        <a href={pageHref("runs", run.id)}>
          <Text of={run.serial_number} none="No serial number" />
        </a>{" "}
        <InspectionNote run={run} class="narrow-only" />
        <Reason run={run} class="check-message" />
      </th>
      <td class="number wide-only">
        {run.serial_number && (run.revision ?? 1) > 1 ? (
          <a href={pageHref("runs", undefined, { serial_number: run.serial_number })}>{run.revision}</a>
        ) : (
          (run.revision ?? 1)
        )}
      </td>
      {withProgram && (
        <td class="program wide-only">
          <a href={pageHref("programs", run.program_id)}>
            <Text of={run.program_name} />
          </a>
        </td>
      )}
      {withCell && (
        <td class="wide-only">
          <Text of={run.cell} />
        </td>
      )}
      <td class="nowrap">
        <Time at={run.started_at ?? run.created_at} />
      </td>
      <td class="number wide-only">{took === undefined ? "" : duration(took)}</td>
      <td class="number wide-only">{`${done} / ${all}`}</td>
    </tr>
  );
}

const NAMED_CHECKS = 3;

/** Why a run did not pass: what ended it, or its checks. Nothing if it passed. */
export function Reason({ run, class: name }: { run: RunSummary; class: string }) {
  const names = useFailedNames(run);
  if (!run.error_message && names.length === 0) return null;
  const more = names.length - NAMED_CHECKS;
  return (
    <span class={`note ${name}`}>
      {run.error_message ? (
        <Text of={run.error_message} />
      ) : (
        names.slice(0, NAMED_CHECKS).map((check, at) => (
          <Fragment key={at}>
            {at > 0 && ", "}
            <ShortText of={check} />
          </Fragment>
        ))
      )}
      {more > 0 && ` and ${more} more`}
    </span>
  );
}
