import {
  count,
  flag,
  freeForm,
  integer,
  list,
  nullable,
  object,
  oneOf,
  ordinal,
  text,
  time,
  uuid,
} from "../../../core/json/described-schema.js";
import { RUN_PROPERTIES } from "../../../core/run/run-schema.js";
import { RUN_STATUS_MEANINGS, STEP_STATUS_MEANINGS } from "../../../core/run/run-state.js";
import { listOf, PAGE, ref } from "./component-reference.js";
import { STEP_TYPE } from "./program-schemas.js";

const { program_id, quality_status, created_at, ...optional } = RUN_PROPERTIES;

/** Fields that details and list entries have in common. */
const REQUIRED = {
  id: uuid("Id of the run. Ids sort by creation."),
  program_id,
  status: oneOf(
    RUN_STATUS_MEANINGS,
    "State of the run; `completed`, `failed` and `cancelled` are final. It says nothing about the part.",
  ),
  quality_status,
  progress: ref("RunProgressResponse", "How far the run has come."),
  created_at,
  updated_at: time(
    "When the run last changed: its state, results, files or event log, but not its deliveries. No two runs have the same time. " +
      "Use it as the mark for `updated_since`.",
  ),
};

const OPTIONAL = {
  cell: text("Name of the cell that made the run. Only a hub says it."),
  ...optional,
  metadata: freeForm("Anything that the cell said about the run when it created it. Empty if it said nothing."),
  links: nullable(ref("RunLinks", "Links of the run.")),
};

export const RUN_SCHEMAS = {
  RunProgressResponse: object(
    {
      total_steps: count("Number of steps of the run."),
      completed_steps: count("Number of steps that are over: completed, failed and skipped ones."),
    },
    {
      current_step: nullable(
        integer("Number of the running step, counted from 1; if several run, the first of them."),
        "when none runs",
      ),
    },
    "How far a run has come.",
  ),
  StepStatusResponse: object(
    {
      index: ordinal("Place of the step in the run, counted from 1."),
      type: STEP_TYPE,
      status: oneOf(STEP_STATUS_MEANINGS, "State of the step."),
    },
    {
      name: nullable(text("What people call the step."), "when there is none"),
      started_at: nullable(time("When the step began."), "before it began, and for a step that never did"),
      completed_at: nullable(time("When the step ended."), "before it ended, and for a step that never began"),
      result: nullable(
        freeForm("Result of the step. A capture_frame step has the id of its frame in `frame_id`."),
        "when there is none",
      ),
      error: nullable(text("Why the step failed, for people."), "for every other step, and where no reason was given"),
    },
    "One step of a run.",
  ),
  StepsDetailResponse: object(
    {
      completed: listOf("StepStatusResponse", "Steps that are over: completed, failed and skipped ones, in order."),
      pending: listOf(
        "StepStatusResponse",
        "All other steps, in order: those still to come, those cancelled with their run, and any step that runs beside the first.",
      ),
    },
    {
      in_progress: nullable(
        ref("StepStatusResponse", "The running step; if several run, the first of them."),
        "when none runs",
      ),
    },
    "The steps of a run, each in one of three places.",
  ),
  RunEventLogEntry: object(
    {
      timestamp: time("When it happened, as the cell says; or else when the service recorded it."),
      event_type: text(
        "What happened. The service itself writes `finalize_timeout`, `orphan_timeout`, `artefact_failed` and `webhook_delivery_failed`; " +
          "the cell writes its own types.",
      ),
      data: freeForm("Details, which depend on the event type."),
    },
    {},
    "One line of a run's event log.",
  ),
  RunLinks: object(
    { self: ref("Link", "This run."), program: ref("Link", "The run's program. 404 once it is deleted.") },
    {
      cancel: nullable(ref("Link", "Where to cancel the run."), "always: this interface only observes runs"),
      websocket: nullable(ref("Link", "The WebSocket that tells the run's changes."), "once the run has ended"),
    },
    "Links of a run.",
  ),
  ProgramRunResponse: object(
    REQUIRED,
    {
      trace_id: nullable(
        text("Trace id that the cell gave the run, to find it in the cell's own logs."),
        "when there is none",
      ),
      ...OPTIONAL,
      steps: nullable(ref("StepsDetailResponse", "The steps of the run.")),
      results: {
        type: ["object", "null"],
        description:
          "Results of the run besides its report: free-form, except for `frame_ids`. Never null in this release.",
        properties: {
          frame_ids: list(
            uuid("Id of a frame."),
            "Every captured frame, in the order in which they were completed. Frames that were still open when the run ended come last.",
          ),
        },
        additionalProperties: true,
      },
      event_log: nullable(listOf("RunEventLogEntry", "What happened in the run, in the order it was recorded.")),
      webhook_deliveries: nullable(
        listOf(
          "WebhookDeliverySummary",
          "Deliveries of the run's events to webhooks, in the order in which they began.",
        ),
      ),
      webhook_delivery: nullable(ref("WebhookDeliveryRollup", "Outcome of these deliveries, counted.")),
      files: nullable(
        listOf("FileMetadata", "The run's files, oldest first, including those whose bytes retention removed."),
      ),
    },
    "One run in full.",
  ),
  ProgramRunSummaryResponse: object(
    { ...REQUIRED, program_name: text("The program's name when the run was created.") },
    OPTIONAL,
    "One run as lists show it. `GET /runs/{run_id}` has the rest.",
  ),
  ProgramRunSummaryListResponse: object(
    { runs: listOf("ProgramRunSummaryResponse", "The runs of the page, newest first."), ...PAGE },
    {},
    "A page of runs.",
  ),
  ActiveRunResponse: object(
    { active: flag("Whether a run is running or finalizing.") },
    { run: nullable(ref("ProgramRunResponse", "The newest such run."), "when there is none") },
    "The active run, if any.",
  ),
};
