import type { Run, Step } from "../../data/api.js";
import { duration, msBetween } from "../../data/times.js";
import { pageHref } from "../../router.js";
import { stepOutcome } from "../../ui/outcome.js";
import { Text } from "../../ui/values.js";
import { stepsOf, useNow } from "../run/steps-axis.js";

/** Steps that fit on the panel around the current one. */
const SHOWN_STEPS = 12;

export function ActivePanel({ run }: { run: Run | undefined }) {
  const nowMs = useNow(run !== undefined);
  if (run === undefined) {
    return (
      <section class="card now-card" aria-label="Active run">
        <p class="now-label">Active run</p>
        <p class="now-big quiet-big">None</p>
        <p class="note">No part is being inspected.</p>
      </section>
    );
  }
  const steps = stepsOf(run);
  const { completed_steps: done, total_steps: all } = run.progress;
  const current = steps.find(({ status }) => status === "running");
  return (
    <section class="card now-card now-active" aria-label="Active run">
      <p class="now-label">
        {run.status === "finalizing" ? "Finalizing" : "Active run"}
        <span>{duration(msBetween(run.started_at ?? run.created_at, null, nowMs) ?? 0)}</span>
      </p>
      <p class="now-big">
        <a href={pageHref("runs", run.id)}>
          <Text of={run.serial_number} none="No serial number" />
        </a>
      </p>
      <progress value={done} max={Math.max(1, all)} aria-label={`${done} of ${all} steps`} />
      <p class="now-step">
        <span>
          Step {Math.min(done + 1, all)} of {all}
        </span>
        <strong>{current === undefined ? "" : <Text of={current.name ?? current.type} />}</strong>
        {current !== undefined && <span>{duration(msBetween(current.started_at, null, nowMs) ?? 0)}</span>}
      </p>
      <ol class="now-steps">
        {around(steps, current).map((step) => {
          const { tone, sign, word } = stepOutcome(step.status);
          return (
            <li key={step.index} value={step.index} class={`step-${tone}`}>
              <span aria-hidden="true">{sign}</span>
              <span class="hidden">{word}: </span>
              <Text of={step.name ?? step.type} />
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function around(steps: readonly Step[], current: Step | undefined): readonly Step[] {
  if (steps.length <= SHOWN_STEPS) return steps;
  const at = current === undefined ? steps.length : steps.indexOf(current);
  const first = Math.min(Math.max(0, at - SHOWN_STEPS / 2), steps.length - SHOWN_STEPS);
  return steps.slice(first, first + SHOWN_STEPS);
}
