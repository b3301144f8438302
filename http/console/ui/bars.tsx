/** Small pictures of numbers: how far a value is from where it should be, how many runs ended how, a trend. */
import { deviationSpan } from "../../../core/run/deviation-span.js";
import type { Check } from "../data/api.js";

export function DeviationBar({ check }: { check: Check }) {
  const span = deviationSpan(check);
  if (span === undefined) return <>–</>;
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  return (
    <span class={`deviation tone-${barTone(check.status)}`} aria-hidden="true">
      <span class="deviation-zone" style={{ left: percent(span.low), right: percent(1 - span.high) }} />
      {span.nominal !== undefined && <span class="deviation-nominal" style={{ left: percent(span.nominal) }} />}
      <span class={`deviation-value ${span.isBeyond ? "beyond" : ""}`} style={{ left: percent(span.value) }} />
    </span>
  );
}

function barTone(status: Check["status"]): string {
  return status === "failed" ? "fail" : status === "passed" || status === "warning" ? "pass" : "doubt";
}

export interface OutcomeCounts {
  passed: number;
  failed: number;
  indeterminate: number;
}

/** The share of passed ones among the parts that have an outcome; undefined if there are none. */
export function yieldOf({ passed, failed, indeterminate }: OutcomeCounts): number | undefined {
  const all = passed + failed + indeterminate;
  return all === 0 ? undefined : passed / all;
}

/** Never 100 % while one part failed. */
export function percentText(share: number | undefined): string {
  if (share === undefined) return "–";
  const text = (share * 100).toFixed(1);
  return `${share < 1 && text === "100.0" ? "99.9" : share === 1 ? "100" : text} %`;
}

export function YieldBar({ counts }: { counts: OutcomeCounts }) {
  const all = counts.passed + counts.failed + counts.indeterminate;
  const text = `${counts.passed} passed, ${counts.failed} failed, ${counts.indeterminate} indeterminate`;
  return (
    <span class="yield-bar" role="img" aria-label={text} title={text}>
      {(["passed", "failed", "indeterminate"] as const).map((name) => (
        <span key={name} class={`yield-${name}`} style={{ flexGrow: all === 0 ? 0 : counts[name] / all }} />
      ))}
    </span>
  );
}
