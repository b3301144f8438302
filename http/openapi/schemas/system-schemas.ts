import { COMPONENT_STATUS_MEANINGS, OWN_COMPONENT_KEYS, SYSTEM_STATUS_MEANINGS } from "../../../core/health.js";
import { flag, nullable, object, oneOf, text } from "../../../core/json/described-schema.js";
import { ref } from "./component-reference.js";

const LIVENESS_MEANINGS = {
  alive: "it shows everything.",
  starting: "only at a hub: it is still being filled, and lists may be incomplete.",
} as const;

export const SYSTEM_SCHEMAS = {
  ComponentStatus: object(
    { status: oneOf(COMPONENT_STATUS_MEANINGS, "State of the component.") },
    {
      id: nullable(
        text("Which one it is, if there are several of a kind, such as robots and sensors."),
        "for a single one",
      ),
      detail: nullable(text("What is wrong with it, or another note for people."), "when there is none"),
      enabled: nullable(flag("For a robot: whether its motion is enabled."), "where that does not apply"),
    },
    "One component of the cell or of the service.",
  ),
  SystemStateResponse: object(
    {
      status: oneOf(SYSTEM_STATUS_MEANINGS, "State of the whole."),
      components: {
        type: "object",
        description:
          `Every component by its key. The service's own are ${OWN_COMPONENT_KEYS.join(", ")}, all of them required but plant; ` +
          "the others are what the cell reports.",
        additionalProperties: { $ref: "#/components/schemas/ComponentStatus" },
      },
    },
    {},
    "The health of the cell and of the service.",
  ),
  VersionResponse: object(
    { "service-version": text("Release tag of the running build, the same as `service_version` in every event.") },
    {},
    "The running release.",
  ),
  RootResponse: object(
    {
      links: object(
        {
          console: ref("Link", "The console: the page for people."),
          docs: ref("Link", "This interface for people."),
          openapi: ref("Link", "This interface for programs."),
          runs: ref("Link", "The runs, newest first."),
          health: ref("Link", "The health of the service and of the cell."),
        },
        {},
        "Where to begin.",
      ),
    },
    {},
    "Where to begin.",
  ),
  LivenessResponse: object({ status: oneOf(LIVENESS_MEANINGS, "How far the service is.") }, {}, "A sign of life."),
};
