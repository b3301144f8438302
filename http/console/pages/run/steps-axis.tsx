import { useEffect, useState } from "preact/hooks";
import type { Run, Step } from "../../data/api.js";
import { duration, msBetween, serviceNowMs, utcTime } from "../../data/times.js";
import { Mark, stepOutcome } from "../../ui/outcome.js";
import { Section, Text } from "../../ui/values.js";
import { HeadRow, VirtualTable } from "../../ui/virtual-rows.js";
import { stepBars } from "./step-bars.js";

const TICK_MS = 250;

/** All steps of a run, in order. */
export function stepsOf({ steps }: Run): Step[] {
  if (!steps) return [];
  const running = steps.in_progress ? [steps.in_progress] : [];
  return [...steps.completed, ...running, ...steps.pending].sort((a, b) => a.index - b.index);
}

/** The steps as bars on one time axis, so that it shows what took the time. */
export function StepsAxis({ run }: { run: Run }) {
  const steps = stepsOf(run);
  const isRunning = steps.some(({ status }) => status === "running");
  const nowMs = useNow(isRunning);
  if (steps.length === 0) return null;
  const { lengthMs, bars } = stepBars(steps, nowMs);
  const time = lengthMs === undefined ? "Time" : `0 to ${duration(lengthMs)}`;
  return (
    <Section
      title="Steps"
      aside={<span class="count">{`${run.progress.completed_steps} of ${run.progress.total_steps}`}</span>}
      class="steps"
    >
      <VirtualTable
        label="Steps"
        class="steps-table"
        rows={steps}
        columns={4}
        head={<HeadRow columns={[["#", "number"], "Step", [time, "axis-head"], ["Took", "number"]]} />}
        draw={(step, at) => <StepRow key={step.index} step={step} bar={bars[at]} nowMs={nowMs} />}
      />
    </Section>
  );
}

interface StepRowProps {
  step: Step;
  bar: { left: string; width: string } | undefined;
  nowMs: number;
}

function StepRow({ step, bar, nowMs }: StepRowProps) {
  const { started_at: from, completed_at: to } = step;
  const took = msBetween(from, to, nowMs);
  const outcome = stepOutcome(step.status);
  return (
    <tr class={step.status === "failed" ? "row-fail" : ""}>
      <td class="number note">{step.index}</td>
      <th scope="row" class="step-name">
        <Text of={step.name ?? step.type} />
        {step.status !== "completed" && <Mark of={outcome} />}
        {step.error && (
          <span class="note check-message" title={step.error}>
            <Text of={step.error} />
          </span>
        )}
      </th>
      <td class="axis" title={from ? utcTime(from) : undefined}>
        {bar !== undefined && <span class={`axis-bar tone-${outcome.tone}`} style={bar} />}
      </td>
      <td class="number">{took === undefined ? "" : duration(took)}</td>
    </tr>
  );
}

/** The time at the service, which goes on while `isRunning`. */
export function useNow(isRunning: boolean): number {
  const [nowMs, setNowMs] = useState(serviceNowMs());
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNowMs(serviceNowMs()), TICK_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return nowMs;
}
