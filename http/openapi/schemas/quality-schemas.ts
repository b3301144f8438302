import { flag, nullable, object, oneOf, text, uuid } from "../../../core/json/described-schema.js";
import { CANONICAL_UNIT_MEANINGS, REPORT_STATUS_MEANINGS } from "../../../core/run/quality.js";
import {
  CHECK_REQUIRED,
  CHECK_TEXTS,
  checkNumbers,
  DEFECT_REGION_2D,
  DEFECT_REGION_3D,
  defect,
  defects,
} from "../../../core/run/run-schema.js";
import { listOf, ref } from "./component-reference.js";

const DEFECTS = defects({ $ref: "#/components/schemas/DefectModel" });

export const QUALITY_SCHEMAS = {
  QualityCheckModel: object(
    CHECK_REQUIRED,
    {
      ...checkNumbers("`canonical_units`"),
      canonical_units: oneOf(CANONICAL_UNIT_MEANINGS, "Unit of the numbers. Always present."),
      ...CHECK_TEXTS,
    },
    "One check of the part. A field that its producer did not give is absent.",
  ),
  DefectRegion2DModel: DEFECT_REGION_2D,
  DefectRegion3DModel: DEFECT_REGION_3D,
  DefectModel: defect(
    ref("DefectRegion2DModel", "Where the finding lies in a picture, in pixels."),
    ref("DefectRegion3DModel", "Where the finding lies in space, in mm."),
  ),
  QualityReportModel: object(
    {
      status: oneOf(REPORT_STATUS_MEANINGS, "Outcome of the inspection: whether the part is good."),
      final: flag(
        "False while the run can still add checks or fail. True once the run is completed: the report never changes again.",
      ),
      checks: listOf(
        "QualityCheckModel",
        "Every check so far, in the order in which they were reported; at least one. With `checks=not_passed`: those that did not pass.",
      ),
    },
    {
      defects: DEFECTS,
      summary: nullable(
        text("The outcome in words, for people."),
        "until the run is finalizing, and when the cell gave none",
      ),
    },
    "The quality report of a run.",
  ),
  QualityReportResponse: object(
    { run_id: uuid("The run that the report is about.") },
    {
      quality_report: nullable(
        ref(
          "QualityReportModel",
          "The report so far. It is final when the run is completed; until then checks may be added.",
        ),
        "until the first check, for a run without checks, and for one that failed or was cancelled",
      ),
    },
    "The quality report of a run, if it has one.",
  ),
  RunDefectsResponse: object(
    { run_id: uuid("The run that the defects were found in.") },
    { defects: DEFECTS },
    "The defects of a run.",
  ),
};
