import { useSignal } from "@preact/signals";
import { getJson, type Run, type RunList, type RunSummary } from "../../data/api.js";
import { useReloadOnChange } from "../../data/reload-on-change.js";
import { useResource } from "../../data/resource.js";
import { localTime } from "../../data/times.js";
import { pageHref } from "../../router.js";
import type { FrameModel } from "../frame-model.js";
import { problemOf } from "../heights/frame-problem.js";
import { sameStepFrame } from "./same-step.js";

const LISTED_RUNS = 100;

/** Chooses the frame to compare with: of the same program and step, in another run. */
export function ComparePanel({ model, run }: { model: FrameModel; run: Run | undefined }) {
  const { view, other } = model.state.value;
  const note = useSignal<string | undefined>(undefined);
  const list = useResource<RunList>(run ? `/programs/${run.program_id}/runs?limit=${LISTED_RUNS}` : null);
  useReloadOnChange(list, (one) => one.program_id === run?.program_id && one.status === "completed");
  const others = (list.data.value?.runs ?? []).filter(({ id, status }) => id !== run?.id && status === "completed");
  const otherFrame = model.other.value.value?.frame;
  const isListed = list.data.value === undefined || others.some(({ id }) => id === otherFrame?.run_id);
  const older = isListed ? undefined : otherFrame?.run_id;
  const olderRun = useResource<Run>(older === undefined ? null : `/runs/${older}`);
  const choose = async (id: string): Promise<void> => {
    note.value = undefined;
    const frame = model.here.value.value?.frame;
    if (frame === undefined || run === undefined || id === "") return;
    try {
      const chosen = await getJson<Run>(`/runs/${id}`);
      const frameId = sameStepFrame(frame, run.files ?? [], chosen.files ?? []);
      if (frameId === undefined) note.value = "That run has no frame of this step, or retention removed it.";
      else model.change({ other: frameId, range: undefined }, true);
    } catch (error) {
      note.value = problemOf(error, "that run").message;
    }
  };
  return (
    <section class="panel" aria-label="Comparison">
      <h2>Compare with</h2>
      <label>
        Another run of the program
        <select value={otherFrame?.run_id ?? ""} onChange={(event) => void choose(event.currentTarget.value)}>
          <option value="">Choose a run …</option>
          {others.map((one) => (
            <option key={one.id} value={one.id}>
              {runName(one)}
            </option>
          ))}
          {older !== undefined && (
            <option value={older}>{olderRun.data.value === undefined ? older : runName(olderRun.data.value)}</option>
          )}
        </select>
      </label>
      {list.data.value === undefined && list.error.value !== undefined && (
        <p role="alert">{problemOf(list.error.value, "the runs").message}</p>
      )}
      {(list.data.value?.total ?? 0) > LISTED_RUNS && <p class="note">The newest {LISTED_RUNS} runs are listed.</p>}
      {others.length === 0 && list.data.value !== undefined && (
        <p class="note">No other run of this program is completed.</p>
      )}
      {note.value !== undefined && <p role="alert">{note.value}</p>}
      {view === "difference" && <p class="note">Heights of that run minus those of this one.</p>}
      {other !== undefined && <OtherState model={model} />}
    </section>
  );
}

function runName({ serial_number: serial, revision, created_at: at, quality_status: found }: Run | RunSummary): string {
  const part = serial === null || serial === undefined ? "no serial number" : `${serial}, inspection ${revision}`;
  return `${part} · ${localTime(at)} · ${found ?? "no report"}`;
}

function OtherState({ model }: { model: FrameModel }) {
  const { value } = model.other.value;
  const problem = model.otherProblem.value;
  if (problem !== undefined) return <p role="alert">{problem}</p>;
  if (value === undefined) return <p class="note">Reading the other frame …</p>;
  const { note } = model.comparison.value;
  return (
    <>
      <p class="note">
        <a href={pageHref("frames", value.frame.id)}>Open that frame</a>
      </p>
      {note !== undefined && <p role={model.comparison.value.field === undefined ? "alert" : "note"}>{note}</p>}
    </>
  );
}
