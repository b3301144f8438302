import { localTime } from "../../data/times.js";
import { whole } from "../../data/units.js";
import { pageHref, place } from "../../router.js";
import { percentText } from "../../ui/bars.js";
import { Chart } from "../../ui/charts/chart.js";
import { ChartTable } from "../../ui/charts/chart-table.js";
import { Histogram } from "../../ui/charts/histogram.js";
import { Empty } from "../../ui/states.js";
import { Time, unitOf } from "../../ui/values.js";
import { indexText } from "./check-list.js";
import { type CheckStatistics, isLength, numberTextOf, specificationLines, spreadText } from "./check-numbers.js";
import { ControlChart } from "./control-chart.js";
import type { MeasuredCheck, ProgramQuality } from "./read-quality.js";

/** How one check is doing: its figures, its newest values, its trend and its distribution. */
export function CheckCharts({ quality: { statistics, newest } }: { quality: ProgramQuality }) {
  const [check] = statistics.checks;
  if (check === undefined) return <Empty title="No completed run of this time has this check." />;
  return (
    <>
      <Figures check={check} />
      {check.limits_changed && (
        <p class="card-body note">Nominal value or limits were not the same in all: read the capability with care.</p>
      )}
      {check.values === 0 ? (
        <Empty title="None of these checks has a value." />
      ) : (
        <>
          {newest.length > 0 && <ControlChart check={check} newest={newest} />}
          <TrendChart check={check} newest={newest} programId={statistics.program_id} />
          <Distribution check={check} />
        </>
      )}
    </>
  );
}

function Figures({ check }: { check: CheckStatistics }) {
  const text = numberTextOf(check);
  const unit = unitOf(isLength(check));
  const figures = (names: Readonly<Record<string, number | null>>, textOf = text) =>
    Object.entries(names).map(([name, value]) => [name, value === null ? "–" : `${textOf(value)} ${unit}`] as const);
  // A warning passes, in the outcome of a run too.
  const passed = check.passed + check.warning;
  const all = [
    ["Passed", `${percentText(check.count === 0 ? undefined : passed / check.count)} of ${whole(check.count)}`],
    ["Failed", whole(check.failed)],
    ["Without a verdict", whole(check.not_evaluated + check.error)],
    ["Cp", indexText(check.cp)],
    ["Cpk", indexText(check.cpk)],
    ["Pp", indexText(check.pp)],
    ["Ppk", indexText(check.ppk)],
    ...figures({ Mean: check.mean }),
    ...figures({ "Standard deviation": check.standard_deviation }, (spread) => spreadText(check, spread)),
    ...figures({
      Minimum: check.minimum,
      Maximum: check.maximum,
      Median: check.median,
      Nominal: check.nominal,
      "Lower limit (LSL)": check.lower_limit,
      "Upper limit (USL)": check.upper_limit,
    }),
  ] as const;
  return (
    <dl class="figures">
      {all.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface TrendChartProps {
  check: CheckStatistics;
  newest: readonly MeasuredCheck[];
  programId: string;
}

/** Successive values together. One value opens its run; several open the page of their time, which shows them one by one. */
function TrendChart({ check, newest, programId }: TrendChartProps) {
  const { trend } = check;
  const text = numberTextOf(check);
  const runs = new Map(newest.map(({ completed_at: at, run_id: id }) => [at, id]));
  const query = Object.fromEntries(place.value.query);
  const points = trend.map((bucket, at) => {
    const { from, to, count, mean, minimum, maximum, failed } = bucket;
    const after = trend.slice(at).find((later) => later.from > to)?.from;
    const run = from === to ? runs.get(from) : undefined;
    const range = { completed_since: from, ...(after !== undefined && { completed_until: after }) };
    return {
      ...{ value: mean, low: minimum, high: maximum, isFailed: failed > 0 },
      href: run === undefined ? pageHref("programs", programId, { ...query, ...range }) : pageHref("runs", run),
      text:
        `${localTime(from)} to ${localTime(to)}: ${whole(count, "value")}, mean ${mean === null ? "–" : text(mean)}, ` +
        `minimum ${text(minimum)}, maximum ${text(maximum)}, ${failed} failed`,
    };
  });
  return (
    <figure class="chart-figure">
      <figcaption>
        <h3>Trend</h3>
        <p class="note">
          {`Mean, minimum and maximum of ${whole(check.values, "value")} in ${whole(trend.length, "part")}. Red: some of the part failed.`}
        </p>
      </figcaption>
      <Chart
        label="Trend"
        points={points}
        lines={specificationLines(check)}
        numberText={text}
        ends={[<Time key="from" at={trend[0]?.from} />, <Time key="to" at={trend.at(-1)?.to} />]}
        hint="A click on a part, or Enter, shows its values. If it is one value, its run opens."
      />
      <ChartTable
        label="Trend as a table"
        columns={["From", "To", "Values", "Mean", "Minimum", "Maximum", "Failed"]}
        rows={trend.map(({ from, to, count, mean, minimum, maximum, failed }, at) => [
          <a key="link" href={points[at]?.href}>
            <Time at={from} />
          </a>,
          <Time key="to" at={to} />,
          whole(count),
          mean === null ? "–" : text(mean),
          text(minimum),
          text(maximum),
          whole(failed),
        ])}
      />
    </figure>
  );
}

function Distribution({ check }: { check: CheckStatistics }) {
  const { histogram, values } = check;
  if (histogram === null) return null;
  const text = numberTextOf(check);
  const lines = specificationLines(check);
  const limits = lines.map(({ name, value }) => `${name} ${text(value)}`).join(", ");
  const counts = `${whole(values, "value")} in ${whole(histogram.counts.length, "bin")}`;
  return (
    <figure class="chart-figure">
      <figcaption>
        <h3>Histogram</h3>
        <p class="note">{`${counts}. ${limits}`}</p>
      </figcaption>
      <Histogram label={`Histogram: ${counts}`} of={histogram} lines={lines} numberText={text} />
      <ChartTable
        label="Histogram as a table"
        columns={["From", "Until", "Values"]}
        rows={histogram.counts.map((count, at) => [
          text(histogram.edges[at] as number),
          text(histogram.edges[at + 1] as number),
          whole(count),
        ])}
      />
    </figure>
  );
}
