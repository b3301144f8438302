/** The state of runs, checks, steps and deliveries: a word, a sign and a colour, so that nobody needs the colour. */
import type { Check, Delivery, RunSummary, Step } from "../data/api.js";

type Tone = "pass" | "fail" | "doubt" | "busy" | "idle";

interface Shown {
  tone: Tone;
  sign: string;
  word: string;
}

const shown = (tone: Tone, sign: string, word: string): Shown => ({ tone, sign, word });

const QUALITY = {
  passed: shown("pass", "✓", "Passed"),
  failed: shown("fail", "✕", "Failed"),
  indeterminate: shown("doubt", "?", "Indeterminate"),
};
const RUN = {
  pending: shown("idle", "…", "Pending"),
  running: shown("busy", "▸", "Running"),
  finalizing: shown("busy", "▸", "Finalizing"),
  completed: shown("idle", "–", "No checks"),
  failed: shown("fail", "!", "Broke off"),
  cancelled: shown("idle", "⊘", "Cancelled"),
};
const CHECK: Record<Check["status"], Shown> = {
  failed: QUALITY.failed,
  error: shown("doubt", "!", "Error"),
  not_evaluated: shown("doubt", "?", "Not evaluated"),
  warning: shown("pass", "△", "Warning"),
  passed: QUALITY.passed,
};
const STEP: Record<Step["status"], Shown> = {
  pending: shown("idle", "…", "Pending"),
  running: shown("busy", "▸", "Running"),
  completed: shown("pass", "✓", "Completed"),
  failed: shown("fail", "✕", "Failed"),
  skipped: shown("idle", "»", "Skipped"),
  cancelled: shown("idle", "⊘", "Cancelled"),
};
const DELIVERY: Record<Delivery["status"], Shown> = {
  pending: shown("busy", "…", "Pending"),
  delivered: shown("pass", "✓", "Delivered"),
  failed: shown("fail", "✕", "Failed"),
  exhausted: shown("fail", "✕", "Exhausted"),
};
const COMPONENT = {
  healthy: shown("pass", "✓", "Healthy"),
  degraded: shown("doubt", "!", "Degraded"),
  down: shown("fail", "✕", "Down"),
  estopped: shown("fail", "■", "Stopped"),
};

/** What people who look for the part want to know: the outcome of its run, or its state while there is no outcome. */
export function runOutcome(run: Pick<RunSummary, "status" | "quality_status">): Shown {
  if (run.status === "completed" && run.quality_status !== null) return QUALITY[run.quality_status];
  return RUN[run.status];
}

export const checkOutcome = (status: Check["status"]): Shown => CHECK[status];
export const stepOutcome = (status: Step["status"]): Shown => STEP[status];
export const deliveryOutcome = (status: Delivery["status"]): Shown => DELIVERY[status];
export const componentState = (status: keyof typeof COMPONENT): Shown => COMPONENT[status];

export function Mark({ of, isBig = false }: { of: Shown; isBig?: boolean }) {
  return (
    <span class={`mark tone-${of.tone} ${isBig ? "mark-big" : ""}`}>
      <span aria-hidden="true">{of.sign}</span> {of.word}
    </span>
  );
}
