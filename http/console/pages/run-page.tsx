/** One run: what came out, and everything that it produced. */
import { Fragment } from "preact";
import type { Defect, Report, Run } from "../data/api.js";
import { hasPreview } from "../data/previews.js";
import { useReloadOnChange } from "../data/reload-on-change.js";
import { PENDING_MS, useReloadWhileSeen } from "../data/reload-while-seen.js";
import { useResource } from "../data/resource.js";
import { duration, msBetween } from "../data/times.js";
import { Download } from "../downloads/download.js";
import { pageHref } from "../router.js";
import { Mark, runOutcome } from "../ui/outcome.js";
import { FramePreview } from "../ui/preview.js";
import { Loaded, sentence } from "../ui/states.js";
import { Facts, Section, Text, Time } from "../ui/values.js";
import { CheckName, ChecksTable } from "./run/checks-table.js";
import { checkHref, DefectsTable, surfaceHref } from "./run/defects-table.js";
import { DeliveriesTable } from "./run/deliveries-table.js";
import { EventLog } from "./run/event-log.js";
import { FilesTable } from "./run/files-table.js";
import { SeriesPlots } from "./run/series-plots.js";
import { StepsAxis, stepsOf } from "./run/steps-axis.js";

export function RunPage({ runId }: { runId: string }) {
  const path = `/runs/${encodeURIComponent(runId)}`;
  const run = useResource<Run>(path);
  const report = useResource<Report>(`${path}/quality-report`);
  const isThis = ({ id }: { id: string }) => id === runId.toLowerCase();
  useReloadOnChange(run, isThis);
  useReloadOnChange(report, isThis);
  const pending = run.data.value?.webhook_delivery?.pending ?? 0;
  // A change of a delivery is no change of the run, so the stream does not tell of it.
  useReloadWhileSeen(run, pending > 0 ? PENDING_MS : null);
  return (
    <Loaded of={run} isPage>
      {(data) => (
        <>
          <RunHead run={data} report={report.data.value} />
          <div class="columns">
            <div class="column-main">
              <Loaded of={report}>
                {({ quality_report: own }) => (
                  <ChecksTable checks={own?.checks ?? []} defects={own?.defects ?? []} run={data} />
                )}
              </Loaded>
              <SeriesPlots run={data} />
              <FilesTable run={data} />
            </div>
            <div class="column-side">
              <Frames run={data} />
              <DefectsTable run={data} defects={report.data.value?.quality_report?.defects} />
              <StepsAxis run={data} />
              <DeliveriesTable run={data} reload={() => run.reload()} />
              <EventLog entries={data.event_log ?? []} />
            </div>
          </div>
        </>
      )}
    </Loaded>
  );
}

function RunFacts({ run }: { run: Run }) {
  const took = msBetween(run.started_at, run.completed_at);
  const { completed_steps: done, total_steps: all } = run.progress;
  const program = useResource<{ name: string }>(`/programs/${run.program_id}`);
  return (
    <dl class="fact-list">
      <div>
        <dt>Program</dt>
        <dd>
          <a href={pageHref("programs", run.program_id)}>
            <Text of={program.data.value?.name ?? (program.error.value ? "deleted" : "…")} />
          </a>
        </dd>
      </div>
      {run.cell && <CellFact cell={run.cell} />}
      <div>
        <dt>Inspection of this part</dt>
        <dd>
          {run.revision ?? 1}
          {run.serial_number && (
            <>
              {" · "}
              <a href={pageHref("runs", undefined, { serial_number: run.serial_number })}>all of them</a>
            </>
          )}
        </dd>
      </div>
      <div>
        <dt>Began</dt>
        <dd>
          <Time at={run.started_at ?? run.created_at} />
        </dd>
      </div>
      <div>
        <dt>Took</dt>
        <dd>{took === undefined || !isOver(run) ? "–" : duration(took)}</dd>
      </div>
      <div>
        <dt>Steps</dt>
        <dd>
          {done} of {all}
        </dd>
      </div>
      <div>
        <dt>For print</dt>
        <dd>
          <Download path={`/runs/${run.id}/report.html`} name={`report-${run.id}.html`}>
            Report
          </Download>
        </dd>
      </div>
      <div>
        <dt>Id</dt>
        <dd class="mono">{run.id}</dd>
      </div>
      {run.trace_id && (
        <div>
          <dt>Trace id</dt>
          <dd class="mono">
            <Text of={run.trace_id} />
          </dd>
        </div>
      )}
    </dl>
  );
}

function CellFact({ cell }: { cell: string }) {
  return (
    <div>
      <dt>Cell</dt>
      <dd>
        <a href={pageHref("runs", undefined, { cell })}>
          <Text of={cell} />
        </a>
      </dd>
    </div>
  );
}

function isOver(run: Run): boolean {
  return run.completed_at !== null && run.completed_at !== undefined;
}

function RunHead({ run, report }: { run: Run; report: Report | undefined }) {
  const outcome = runOutcome(run);
  const { frame_ids: _frames, ...results } = run.results ?? {};
  const facts = { ...run.metadata, ...results };
  return (
    <header class={`run-head edge-${outcome.tone}`}>
      <div class="run-title">
        <Mark of={outcome} isBig />
        <h1>
          <Text of={run.serial_number} none="No serial number" />
        </h1>
        {run.quality_status !== null && !isOver(run) && <p class="note">so far: {run.quality_status}</p>}
      </div>
      {run.error_message && <p class="run-error">{<Text of={sentence(run.error_message)} />}</p>}
      {report?.quality_report?.summary && <p>{<Text of={sentence(report.quality_report.summary)} />}</p>}
      {report?.quality_report && <FailedChecks report={report.quality_report} run={run} />}
      <FoundDefects run={run} defects={report?.quality_report?.defects ?? []} />
      {(run.files ?? []).some(({ deleted_at: at }) => at) && <p>Retention removed captures of this run.</p>}
      <RunFacts run={run} />
      {Object.keys(facts).length > 0 && <Facts of={facts} />}
    </header>
  );
}

const NAMED_CHECKS = 3;

interface FailedChecksProps {
  report: NonNullable<Report["quality_report"]>;
  run: Run;
}

/** Which checks failed, with their places and steps if the producer names them: their table may be far below. */
function FailedChecks({ report: { checks, defects = [] }, run }: FailedChecksProps) {
  const failed = checks.filter(({ status }) => status === "failed");
  if (failed.length === 0) return null;
  const more = failed.length - NAMED_CHECKS;
  return (
    <p>
      Failed:{" "}
      {failed.slice(0, NAMED_CHECKS).map((check, at) => (
        <Fragment key={at}>
          {at > 0 && ", "}
          <CheckName check={check} href={checkHref(run, check, defects)} />
          {typeof check.metadata?.step === "string" && (
            <>
              {" (step "}
              <Text of={check.metadata.step} />)
            </>
          )}
        </Fragment>
      ))}
      {more > 0 && ` and ${more} more`}.
    </p>
  );
}

/** How many defects there are, with a way to the surface: their list may be far below. */
function FoundDefects({ run, defects }: { run: Run; defects: readonly Defect[] }) {
  if (defects.length === 0) return null;
  const href = defects.map((defect, at) => surfaceHref(run, defect, at)).find(Boolean);
  return (
    <p>
      {defects.length === 1 ? "1 defect was found." : `${defects.length} defects were found.`}{" "}
      {href !== undefined && <a href={href}>Show on the surface</a>}
    </p>
  );
}

function Frames({ run }: { run: Run }) {
  const frames = run.results?.frame_ids ?? [];
  if (frames.length === 0) return null;
  const steps = stepsOf(run);
  const stepOf = (frameId: string) => steps.find(({ result }) => result?.frame_id === frameId);
  const files = run.files ?? [];
  const isRemoved = (frameId: string): boolean => {
    const own = files.filter((file) => file.frame_id === frameId);
    return own.length > 0 && own.every(({ deleted_at: at }) => at !== null && at !== undefined);
  };
  return (
    <Section title="Frames" aside={<span class="count">{frames.length}</span>}>
      <ul class="frame-list">
        {frames.map((frameId, at) => {
          const name = stepOf(frameId)?.name ?? `Frame ${at + 1}`;
          return (
            <li key={frameId}>
              <a href={pageHref("frames", frameId)}>
                {isRemoved(frameId) ? (
                  <span class="preview">Removed by retention</span>
                ) : hasPreview(files, frameId) ? (
                  <FramePreview frameId={frameId} />
                ) : (
                  <span class="preview" />
                )}
                <Text of={name} />
              </a>
            </li>
          );
        })}
      </ul>
    </Section>
  );
}
