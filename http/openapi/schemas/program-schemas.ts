import {
  count,
  flag,
  freeForm,
  list,
  nullable,
  object,
  oneOf,
  text,
  time,
  uuid,
} from "../../../core/json/described-schema.js";
import { PROGRAM_STATUS_MEANINGS, STEP_TYPE_MEANINGS } from "../../../core/run/program.js";
import { listOf, PAGE, ref } from "./component-reference.js";

/** An optional text that the cell sets. */
const said = (description: string) => nullable(text(description), "when there is none");

export const STEP_TYPE = oneOf(STEP_TYPE_MEANINGS, "What the step does.");

export const PROGRAM_SCHEMAS = {
  ProgramStep: object(
    { type: STEP_TYPE },
    {
      name: said("What people call the step."),
      params: freeForm("Parameters of the step. They depend on its type, and the cell alone interprets them."),
      enabled: flag(
        "Whether runs carry the step out. Absent means true. A disabled step is part of no run and is not counted there.",
      ),
      group_id: said("Id of the group that the step belongs to."),
      group_name: said("Name of that group, for people."),
      section_id: said("Id of the section that the step belongs to."),
      section_name: said("Name of that section, for people."),
    },
    "One step of a program. A field that the cell did not give is absent.",
  ),
  RunConfig: object(
    { name: text("Display name of the configuration.") },
    { metadata: freeForm("Anything that the cell says about the configuration.") },
    "A named way to run a program.",
  ),
  ProgramLinks: object(
    { self: ref("Link", "This program."), runs: ref("Link", "The program's runs.") },
    {},
    "Links of a program.",
  ),
  ProgramResponse: object(
    {
      id: uuid("Id of the program. The cell makes it."),
      name: text("What people call the program."),
      status: oneOf(PROGRAM_STATUS_MEANINGS, "Whether the program is in use."),
      steps: listOf("ProgramStep", "The program's steps in order, including disabled ones."),
      created_at: time(
        "When the program was created, taken from its id, to the millisecond. It never changes. Lists are sorted by it.",
      ),
      updated_at: time("When the cell last wrote the program, on the service's clock."),
    },
    {
      description: said("What the program inspects, for people."),
      robot_ids: list(
        { type: "string" },
        "Ids of the robots that the program drives, as the operator chose them. Events name the first as `robot_id`.",
      ),
      sensor_id: said("Id of the sensor that captures, as the operator chose it."),
      co_processor: said("The co-processor that processes the captures, as the cell calls it."),
      pre_hook: said("What the cell calls before a run. The service does not run it."),
      post_hook: said("What the cell calls after a run. The service does not run it."),
      run_configs: listOf("RunConfig", "Named ways to run the program."),
      run_count: count("Number of runs of the program so far, in any state."),
      cells: list(
        { type: "string" },
        "Names of the cells that have the program, which a hub shows as one. Only a hub says it.",
      ),
      metadata: nullable(freeForm("Anything else that the cell says about the program."), "when there is nothing"),
      links: nullable(ref("ProgramLinks", "Links of the program.")),
    },
    "An inspection definition. Optional fields, other than run_count and links, are absent if the cell did not give them.",
  ),
  ProgramListResponse: object(
    { programs: listOf("ProgramResponse", "The programs of the page, newest first."), ...PAGE },
    {},
    "A page of programs.",
  ),
};
