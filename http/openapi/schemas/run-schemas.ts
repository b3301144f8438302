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

/** What details and list entries have in common. */
const REQUIRED = {
  id: uuid("Id of the run. Ids sort as the runs were created."),
  program_id,
  status: oneOf(
    RUN_STATUS_MEANINGS,
    "State of the run: `completed`, `failed` and `cancelled` are terminal. It says nothing about the part.",
  ),
  quality_status,
  progress: ref("RunProgressResponse", "How far the run has come."),
  created_at,
  updated_at: time(
    "When the run last changed: its state, results, files or event log, but not its deliveries. No two runs ever have the same time. " +
      "It is the mark for `updated_since`.",
  ),
};

const OPTIONAL = {
  ...optional,
  metadata: freeForm("Whatever the cell said of the run when it created it. Empty when it said nothing."),
  links: nullable(ref("RunLinks", "Where its own things are.")),
};

export const RUN_SCHEMAS = {
  RunProgressResponse: object(
    {
      total_steps: count("Steps of the run."),
      completed_steps: count("Steps that are over: completed, failed and skipped ones."),
    },
    { current_step: nullable(integer("The step that runs, counted from 1; of several, the first."), "when none runs") },
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
        freeForm("What the step brought; a capture_frame step has the id of its frame in `frame_id`."),
        "when it brought nothing",
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
        "All other steps, in order: those that are to come, those cancelled with their run, and any step that runs beside the first.",
      ),
    },
    {
      in_progress: nullable(ref("StepStatusResponse", "The step that runs; of several, the first."), "when none runs"),
    },
    "The steps of a run, each in one of three places.",
  ),
  RunEventLogEntry: object(
    {
      timestamp: time("When it happened: as the cell says, or else when the service recorded it."),
      event_type: text(
        "What happened. The service itself writes `finalize_timeout`, `orphan_timeout`, `artefact_failed` and `webhook_delivery_failed`; " +
          "the cell writes what it likes.",
      ),
      data: freeForm("Details, which depend on the event type."),
    },
    {},
    "One line of a run's event log.",
  ),
  RunLinks: object(
    { self: ref("Link", "This run."), program: ref("Link", "The run's program. 404 once it is deleted.") },
    {
      cancel: nullable(ref("Link", "Where the run can be cancelled."), "always: this interface only observes runs"),
      websocket: nullable(ref("Link", "Where the run's progress can be followed live."), "in this release"),
    },
    "Where a run's own things are.",
  ),
  ProgramRunResponse: object(
    REQUIRED,
    {
      trace_id: nullable(
        text("Trace id that the cell gave the run, for finding it in the cell's own logs."),
        "when there is none",
      ),
      ...OPTIONAL,
      steps: nullable(ref("StepsDetailResponse", "The steps of the run.")),
      results: {
        type: ["object", "null"],
        description:
          "What the run brought, beside its report: free-form, but for `frame_ids`. Never null in this release.",
        properties: {
          frame_ids: list(
            uuid("Id of a frame."),
            "Every captured frame, in the order in which they became whole. Frames that were still open when the run ended come last.",
          ),
        },
        additionalProperties: true,
      },
      event_log: nullable(listOf("RunEventLogEntry", "What happened in the run, in the order it was recorded.")),
      webhook_deliveries: nullable(
        listOf("WebhookDeliverySummary", "Deliveries of the run's events to webhooks, in the order they began."),
      ),
      webhook_delivery: nullable(ref("WebhookDeliveryRollup", "What became of these deliveries, counted.")),
      files: nullable(
        listOf("FileMetadata", "The run's files, oldest first, also those whose bytes retention removed."),
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
    "The run that is being carried out, if any.",
  ),
};
