import { useState } from "preact/hooks";
import type { Trend } from "../../data/trends.js";
import { lengthDecimals } from "../../data/units.js";
import { pageHref, place, setQuery } from "../../router.js";
import { Sparkline } from "../../ui/sparkline.js";
import { Empty } from "../../ui/states.js";
import { checkNumber, Text, unitOf } from "../../ui/values.js";

/** Trends that are drawn before somebody asks for more. */
const SHOWN = 60;

function failuresOf({ points }: Trend): number {
  return points.filter(({ check }) => check.status === "failed").length;
}

/** A small picture for each check, those that fail most first. */
export function TrendList({ trends }: { trends: readonly Trend[] }) {
  const [shown, setShown] = useState(SHOWN);
  if (trends.length === 0) return <Empty title="No completed run yet." />;
  const words = place.value.query.get("check") ?? "";
  const found = trends.filter(({ name }) => name.toLowerCase().includes(words.toLowerCase()));
  const sorted = [...found].sort((a, b) => failuresOf(b) - failuresOf(a));
  return (
    <>
      {trends.length > 12 && (
        <p class="card-body">
          <input
            type="search"
            aria-label="Find checks by name"
            placeholder="Find"
            value={words}
            onInput={(event) => setQuery({ check: event.currentTarget.value }, true)}
          />
        </p>
      )}
      <ul class="trends">
        {sorted.slice(0, shown).map((trend) => (
          <TrendTile key={trend.name} trend={trend} />
        ))}
      </ul>
      {sorted.length > shown && (
        <p class="card-body">
          <button
            type="button"
            onClick={() => setShown(shown + SHOWN)}
          >{`Show more of ${sorted.length} checks`}</button>
        </p>
      )}
    </>
  );
}

function TrendTile({ trend }: { trend: Trend }) {
  const { name, points } = trend;
  const failures = failuresOf(trend);
  const last = points.at(-1);
  const lastFailed = points.findLast(({ check }) => check.status === "failed");
  const isLength = last?.check.canonical_units === "mm";
  const number = (value: number | null | undefined) =>
    checkNumber(value, isLength, lengthDecimals(last?.check.threshold));
  const values = points.flatMap(({ check }) => check.value ?? []);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return (
    <li class="trend">
      <p class="trend-name">
        <Text of={name} />
      </p>
      <Sparkline
        checks={points.map(({ check }) => check)}
        label={`${name.slice(0, 200)}: ${points.length} values, ${failures} failed`}
      />
      <p class="trend-line">
        <span>
          <strong>{number(last?.check.value)}</strong> <span class="unit">{values.length > 0 && unitOf(isLength)}</span>
        </span>
        <span class="note">{values.length > 0 && `mean ${number(mean)}`}</span>
        {failures === 0 || lastFailed === undefined ? (
          <span class="note">none of {points.length} failed</span>
        ) : (
          <a class="trend-fail" href={pageHref("runs", lastFailed.runId)} title="The last run in which it failed">
            {failures} of {points.length} failed
          </a>
        )}
      </p>
    </li>
  );
}
