import {
  constant,
  flag,
  type JsonSchema,
  list,
  nullable,
  object,
  oneOf,
  type Properties,
  text,
  time,
  uuid,
} from "../json/described-schema.js";
import { UNIT_SYSTEM_MEANINGS } from "../link/change.js";
import {
  CHECK_REQUIRED,
  CHECK_TEXTS,
  checkNumbers,
  DEFECT_REGION_2D,
  defect,
  defects,
  fileMetadata,
  RUN_PROPERTIES,
  region3d,
} from "../run/run-schema.js";
import { EVENT_NAMES, type EventName } from "./webhook.js";
import { EVENT_SCHEMA_VERSION } from "./webhook-event.js";

/**
 * JSON Schemas (2020-12) of what receivers get, one for each event name. The OpenAPI document shows them, and receivers can generate readers
 * from them. Objects are open: fields may be added without a new schema_version.
 */
const { program_id, serial_number, revision, quality_status, created_at, started_at, completed_at, error_message } =
  RUN_PROPERTIES;

const RUN_DATA: Properties = {
  run_id: uuid("The run. Keep one record for each run, under this id."),
  program_id,
  program_name: nullable(text("The program's name when the run was created."), "when the program was deleted before"),
  robot_id: nullable(
    text("The first robot of the program when the run was created: the short id that the operator chose, not a UUID."),
    "for a program without robots",
  ),
  serial_number,
  revision,
  quality_status,
  created_at,
  updated_at: time(
    "The run's `updated_at` in the state that the event tells of, as its detail shows it. Keep the newest per run, and ignore an event whose " +
      "`updated_at` is older: it was delivered late.",
  ),
  started_at,
  completed_at,
};

const ended = time("When the run ended.");
const status = (value: string): JsonSchema => constant(value, `The run's status after the event: always \`${value}\`.`);

/** Each check names its unit, because events are in the cell's display units. All number fields are present, also when null. */
const UNIT_MEANINGS = { mm: "the numbers are millimetres.", in: "they are inches." };

const CHECK = object(
  {
    ...CHECK_REQUIRED,
    ...checkNumbers("`unit`"),
    unit: nullable(
      oneOf(UNIT_MEANINGS, "Unit of `value`, `nominal`, `delta` and `threshold`."),
      "they are in another unit, or in none, and stand as the producer gave them",
    ),
  },
  CHECK_TEXTS,
);

const LENGTH_UNIT_MEANINGS = { mm: "millimetres.", in: "inches, when the cell's `unit_system` is imperial." };

const REGION_3D = region3d("`unit`", { unit: oneOf(LENGTH_UNIT_MEANINGS, "Unit of `location` and `extents`.") });

const FILE = fileMetadata({
  ...text("Where to download the file: a path relative to the service's base address, with a leading slash."),
  pattern: "^/runs/",
});

const DATA: Record<EventName, JsonSchema> = {
  ProgramStarted: object({ ...RUN_DATA, status: status("running") }),
  ProgramCompleted: object(
    {
      ...RUN_DATA,
      status: status("completed"),
      completed_at: ended,
      passed: flag(
        "The outcome of the inspection: true only if the quality report passed. False if a check failed, if the report is indeterminate, " +
          "and if the run has no checks.",
      ),
      unit_system: oneOf(UNIT_SYSTEM_MEANINGS, "The cell's display units, which the lengths of this event are in."),
      qc_checks: list(
        CHECK,
        "Every check of the run, in the order they were reported; lengths are in the cell's display units.",
      ),
      defects: defects(defect(DEFECT_REGION_2D, REGION_3D)),
      files: list(
        FILE,
        "The run's files as they were when it ended, oldest first. Formats made later are in the run's own list.",
      ),
    },
    {
      truncated: constant(
        true,
        "The lists `qc_checks`, `defects` and `files` were too large for an event and are empty here: read them from the run. " +
          "Absent otherwise.",
      ),
    },
  ),
  ProgramFailed: object({ ...RUN_DATA, status: status("failed"), completed_at: ended, error_message }),
  ProgramCancelled: object({ ...RUN_DATA, status: status("cancelled"), completed_at: ended, error_message }),
  WebhookTest: object({
    webhook_id: uuid("The webhook that is tested."),
    webhook_name: text("Its name."),
    message: text("Says that this is a test, for people."),
  }),
};

export const EVENT_SCHEMAS = Object.fromEntries(
  EVENT_NAMES.map((eventName) => [
    eventName,
    object({
      event_id: uuid(
        "Names the event: the same in every attempt, every manual retry and at every receiver. Ignore an id that you had before.",
      ),
      event_name: constant(eventName, `Which event it is: always \`${eventName}\` here.`),
      timestamp: time("When the event was emitted, by the service's clock."),
      schema_version: constant(
        EVENT_SCHEMA_VERSION,
        "Version of the payload's shape. It moves only with changes that break readers.",
      ),
      service_version: text("Release of the service that emitted the event, as `GET /system/version` gives it."),
      kiosk_serial_number: nullable(
        text("Serial number of the unit that inspects, not of the part."),
        "until the unit is commissioned",
      ),
      data: { ...DATA[eventName], description: "What happened." },
    }),
  ]),
) as Record<EventName, JsonSchema>;
