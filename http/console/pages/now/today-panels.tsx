import type { Check, Report, Run, RunSummary } from "../../data/api.js";
import { type Resource, useResource } from "../../data/resource.js";
import type { DayCounts } from "../../data/run-pages.js";
import { lengthDecimals, whole } from "../../data/units.js";
import { pageHref } from "../../router.js";
import { percentText, YieldBar, yieldOf } from "../../ui/bars.js";
import { checkOutcome, runOutcome } from "../../ui/outcome.js";
import { Loaded } from "../../ui/states.js";
import { checkNumber, Text, Time, unitOf } from "../../ui/values.js";
import { CheckName, sorted } from "../run/checks-table.js";
import { checkHref } from "../run/defects-table.js";

/** The outcome of the part that came last, as large as the panel allows. */
export function LastPanel({ run }: { run: RunSummary | undefined }) {
  if (run === undefined) {
    return (
      <section class="card now-card" aria-label="Last result">
        <p class="now-label">Last result</p>
        <p class="now-big quiet-big">None</p>
      </section>
    );
  }
  const { tone, sign, word } = runOutcome(run);
  return (
    <section class={`card now-card now-last ground-${tone}`} aria-label="Last result" aria-live="polite">
      <p class="now-label">
        Last result
        <span>
          <Time at={run.completed_at} />
        </span>
      </p>
      <p class="now-big now-outcome">
        <span aria-hidden="true">{sign}</span> {word}
      </p>
      <p class="now-part">
        <a href={pageHref("runs", run.id)}>
          <Text of={run.serial_number} none="No serial number" />
        </a>
        {(run.revision ?? 1) > 1 && <span>inspection {run.revision}</span>}
      </p>
      <p>
        <Text of={run.error_message ?? run.program_name} />
      </p>
      {run.quality_status !== null && run.quality_status !== "passed" && <Reasons run={run} />}
    </section>
  );
}

const SHOWN_REASONS = 3;

/** The checks that did not pass, the worst kind first. */
function Reasons({ run }: { run: RunSummary }) {
  const report = useResource<Report>(`/runs/${run.id}/quality-report`);
  const detail = useResource<Run>(`/runs/${run.id}`).data.value;
  const { checks = [], defects = [] } = report.data.value?.quality_report ?? {};
  const bad = checks.filter(({ status }) => status !== "passed");
  if (bad.length === 0) return null;
  return (
    <ul class="now-reasons">
      {sorted(bad, "status", false)
        .slice(0, SHOWN_REASONS)
        .map((check, at) => (
          <li key={at}>
            <strong>
              <CheckName check={check} href={detail && checkHref(detail, check, defects)} />
            </strong>{" "}
            <Text of={reasonOf(check)} none={checkOutcome(check.status).word} />
          </li>
        ))}
      {bad.length > SHOWN_REASONS && <li>{bad.length - SHOWN_REASONS} more</li>}
    </ul>
  );
}

/** By how much a value is off, or what the cell says. */
function reasonOf({ value, nominal, threshold, canonical_units: units, message }: Check): string | null | undefined {
  if (value == null || threshold == null) return message;
  const isLength = units === "mm";
  const number = (of: number | null | undefined) => checkNumber(of, isLength, lengthDecimals(threshold));
  const allowed = nominal == null ? `≥ ${number(threshold)}` : `${number(nominal)} ± ${number(threshold)}`;
  return [`${number(value)}, allowed ${allowed}`, unitOf(isLength)].join(" ").trim();
}

/** @param since when today began */
export function YieldPanel({ today, since }: { today: Resource<DayCounts>; since: string }) {
  const outcome = (quality_status: string) => ({ status: "completed", quality_status, from: since });
  return (
    <section class="card now-card" aria-label="Yield today">
      <p class="now-label">Yield today</p>
      <Loaded of={today}>
        {(counts) => (
          <>
            <p class="now-big">{percentText(yieldOf(counts))}</p>
            <YieldBar counts={counts} />
            <dl class="now-counts">
              <Count word="passed" count={counts.passed} query={outcome("passed")} />
              <Count word="failed" count={counts.failed} query={outcome("failed")} />
              <Count word="indeterminate" count={counts.indeterminate} query={outcome("indeterminate")} />
              <Count word="broke off" count={counts.brokeOff} query={{ status: "failed", from: since }} />
            </dl>
          </>
        )}
      </Loaded>
    </section>
  );
}

/** Leads to the runs that it counts. */
function Count({ word, count, query }: { word: string; count: number; query: Readonly<Record<string, string>> }) {
  return (
    <div>
      <dt>{word}</dt>
      <dd>
        <a href={pageHref("runs", undefined, query)}>{whole(count)}</a>
      </dd>
    </div>
  );
}
