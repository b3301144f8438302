import { localTime } from "../../data/times.js";
import { whole } from "../../data/units.js";
import { pageHref } from "../../router.js";
import { Chart } from "../../ui/charts/chart.js";
import { ChartTable } from "../../ui/charts/chart-table.js";
import type { PlotLine } from "../../ui/charts/plot.js";
import { Text, Time } from "../../ui/values.js";
import { type CheckStatistics, numberTextOf, specificationLines } from "./check-numbers.js";
import { controlLimitsOf } from "./control-limits.js";
import type { MeasuredCheck } from "./read-quality.js";

/** The newest values one by one, with their control limits. */
export function ControlChart({ check, newest }: { check: CheckStatistics; newest: readonly MeasuredCheck[] }) {
  const text = numberTextOf(check);
  const limits = controlLimitsOf(newest.map(({ value }) => value));
  const lines: PlotLine[] = specificationLines(check);
  if (limits !== undefined) {
    lines.push({ name: "UCL", value: limits.upper, kind: "control" });
    lines.push({ name: "Mean", value: limits.mean, kind: "control" });
    lines.push({ name: "LCL", value: limits.lower, kind: "control" });
  }
  const points = newest.map(({ run_id: id, serial_number: serial, completed_at: at, status, value }) => {
    const isOutside = limits !== undefined && (value < limits.lower || value > limits.upper);
    const part = serial === null ? "no serial number" : serial.slice(0, 100);
    const words = [text(value), status, ...(isOutside ? ["outside the control limits"] : []), localTime(at), part];
    return { value, isOutside, isFailed: status === "failed", href: pageHref("runs", id), text: words.join(", ") };
  });
  const outside = points.filter(({ isOutside }) => isOutside).length;
  return (
    <figure class="chart-figure">
      <figcaption>
        <h3>Control chart</h3>
        <p class="note">
          {newest.length < check.values
            ? `The newest ${newest.length} of ${whole(check.values, "value")}, one by one. `
            : `${newest.length === 1 ? "The only value" : `All ${newest.length} values, one by one`}. `}
          {limits === undefined
            ? "Control limits need two values."
            : `UCL and LCL: mean of these ± 2.66 × mean moving range. ${outside} outside: a ring. Red: the check failed.`}
        </p>
      </figcaption>
      <Chart
        label="Control chart"
        points={points}
        lines={lines}
        numberText={text}
        ends={[<Time key="from" at={newest[0]?.completed_at} />, <Time key="to" at={newest.at(-1)?.completed_at} />]}
        hint="A click on a point, or Enter, opens its run."
      />
      <ChartTable
        label="Control chart as a table"
        columns={["Run", "Ended", "Value", "Status", "Control"]}
        rows={newest.map(({ run_id: id, serial_number: serial, completed_at: at, status, value }, row) => [
          <a key="run" href={pageHref("runs", id)}>
            <Text of={serial} none="No serial number" />
          </a>,
          <Time key="at" at={at} />,
          text(value),
          status,
          points[row]?.isOutside ? "outside" : "",
        ])}
      />
    </figure>
  );
}
