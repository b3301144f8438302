import {
  count,
  freeForm,
  type JsonSchema,
  list,
  nullable,
  number,
  numbers,
  object,
  oneOf,
  ordinal,
  type Properties,
  text,
  time,
  uuid,
} from "../json/described-schema.js";
import { FILE_TYPE_MEANINGS } from "./manifest.js";
import { CHECK_STATUS_MEANINGS, REPORT_STATUS_MEANINGS } from "./quality.js";

/** Fields that a run's answers and its events have in common. */
export const RUN_PROPERTIES = {
  program_id: uuid("The program that the run executes."),
  serial_number: nullable(text("Serial number of the inspected part."), "for a part without one"),
  revision: ordinal(
    "Counts the inspections of this serial number, from 1: above 1, the part is being inspected again. 1 for a part without serial number.",
  ),
  quality_status: nullable(
    oneOf(REPORT_STATUS_MEANINGS, "Outcome of the inspection: the status of the run's quality report as it stands."),
    "without a report: before the first check, for a run without checks, and for one that failed or was cancelled",
  ),
  created_at: time("When the service recorded the run. It never changes, and lists are ordered by it."),
  started_at: nullable(time("When the run began."), "while it is pending, and for one that ended before it began"),
  completed_at: nullable(time("When the run ended, in whatever way: completed, failed or cancelled."), "until then"),
  error_message: nullable(
    text("Why the run failed or was cancelled, for people."),
    "for every other run, and where no reason was given",
  ),
} as const satisfies Properties;

/** @param href the schema of the link, which is absolute in answers and relative in events */
export function fileMetadata(href: JsonSchema): JsonSchema {
  return object(
    {
      name: text("File name, unique within the run."),
      type: oneOf(FILE_TYPE_MEANINGS, "What kind of file it is."),
      content_type: text("MIME type of the bytes."),
      href,
      created_at: time("When the file was uploaded, or made from a capture."),
      updated_at: time("When the entry last changed: at its creation, or when retention removed the bytes."),
    },
    {
      size_in_bytes: nullable(count("Size of the file in bytes."), "when it is not known"),
      description: nullable(text("What the file shows, for people, as its producer wrote it."), "when there is none"),
      step_index: nullable(ordinal("The step that made the file, counted from 1."), "for a file of no step"),
      frame_id: nullable(text("The captured frame that the file belongs to."), "for a file of no frame"),
      deleted_at: nullable(
        time("When retention removed the bytes. The entry stays listed, and its download answers 410."),
        "while the bytes are there",
      ),
    },
    "One file of a run. What is made of a frame or a sweep is listed beside the files that producers upload.",
  );
}

/** A check as answers and events show it. Each adds its own field for the unit. */
export const CHECK_REQUIRED = {
  name: text("Name of the check, as its producer chose it. The same check has the same name in every run."),
  status: oneOf(
    CHECK_STATUS_MEANINGS,
    "Outcome of the check. The producer decides it; the service does not compute it from the numbers.",
  ),
} as const satisfies Properties;

/** @param unit the field that names the unit of the numbers, such as `unit` */
export function checkNumbers(unit: string) {
  return {
    value: nullable(number(`What was measured, in ${unit}.`), "if the producer sent null"),
    nominal: nullable(number(`What the value should be, in ${unit}.`), "if the producer sent null"),
    delta: nullable(
      number(`\`value\` - \`nominal\`, in ${unit}: positive when the value is above the nominal one.`),
      "if the producer sent null",
    ),
    threshold: nullable(
      number(
        `Where the limits are, in ${unit}. With a \`nominal\`, the deviation that is allowed to either side: the limits are ` +
          "`nominal` - `threshold` and `nominal` + `threshold`. Without a `nominal`, it is the least `value` that passes. Without a " +
          "`threshold`, the check has no limits.",
      ),
      "if the producer sent null",
    ),
  } as const satisfies Properties;
}

export const CHECK_TEXTS = {
  message: nullable(text("Explains the outcome, for people."), "if the producer sent null"),
  metadata: freeForm(
    "Whatever else the producer says of the check. The console reads two entries: `defect_id` is the `id` of the defect that marks where the " +
      "check was measured, and `step` is the name of the step that made it.",
  ),
} as const satisfies Properties;

const REGION_FILE = "The file that shows it: a `name` in the run's manifest.";

/** Where a defect lies in a picture. */
export const DEFECT_REGION_2D = object(
  {},
  {
    file: nullable(text(REGION_FILE), "if the producer sent null"),
    bbox: nullable(
      numbers(
        "[x_min, y_min, x_max, y_max] in pixels of the picture that `file` names. x counts columns and y counts lines, both from 0 at the " +
          "top left. The box covers the pixels from x_min up to, but not including, x_max; the same goes for y. So x_max - x_min is its width.",
      ),
      "if the producer sent null",
    ),
  },
  "An upright box in a picture. The numbers are the producer's: the service does not check them. " +
    "A field that the producer did not give is absent.",
);

export const DEFECT_REGION_3D = region3d("mm");

/**
 * @param unit of lengths
 * @param required further fields that are always there
 */
export function region3d(unit: string, required: Properties = {}): JsonSchema {
  return object(
    required,
    {
      file: nullable(text(REGION_FILE), "if the producer sent null"),
      location: nullable(
        numbers(`Centre of the box: [x, y, z] in ${unit}, in scan space.`),
        "if the producer sent null",
      ),
      extents: nullable(
        numbers(
          `Full edge lengths of the box in ${unit}, along its own x, y and z axes: [dx, dy, dz]. Half of each lies to either side of the centre.`,
        ),
        "if the producer sent null",
      ),
      orientation: nullable(
        numbers(
          "Unit quaternion [x, y, z, w] that turns the box's own axes into those of scan space; [0, 0, 0, 1] is a box along the axes.",
        ),
        "if the producer sent null",
      ),
      frame: nullable(
        text("Name of the coordinate frame that location and orientation are given in, as the producer calls it."),
        "if the producer sent null",
      ),
    },
    "An oriented box in scan space, the space of the point cloud. The numbers are the producer's: the service does not check them. " +
      "A field that the producer did not give is absent.",
  );
}

/** @param region2d the schema of the region in a picture, or a reference to it; `region3d` likewise of the region in space */
export function defect(region2d: JsonSchema, region3d: JsonSchema): JsonSchema {
  return object(
    {},
    {
      id: nullable(text("The producer's own id of this finding."), "when it has no name"),
      type: text("Kind of finding, as the producer calls it: dent, scratch, contamination and so on."),
      description: nullable(text("The finding in words, for people."), "when there is none"),
      region_2d: nullable(region2d, "if the producer sent null"),
      region_3d: nullable(region3d, "if the producer sent null"),
      confidence: nullable(
        number(
          "How sure the producer is of the finding, as a rule from 0 (not at all) to 1 (fully). The service does not check it.",
        ),
        "if the producer sent null",
      ),
      severity: nullable(
        text("How serious it is, in the producer's own words, such as minor or major."),
        "if the producer sent null",
      ),
      metadata: freeForm("Whatever else the producer says of the finding."),
    },
    "An informational finding, such as a dent or a scratch. It never changes the QC outcome: a run can pass with defects. " +
      "A field that the producer did not give is absent.",
  );
}

export function defects(items: JsonSchema): JsonSchema {
  return list(items, "Informational findings, in the order they were reported. Empty when there are none.");
}
