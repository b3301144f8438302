import { LIMITS } from "../limits.js";
import type { CellIdentity } from "../link/change.js";
import type { Defect, QualityCheck } from "../run/quality.js";
import { manifestResponse } from "../run/run-response.js";
import { qualityStatusOf, type RunState } from "../run/run-state.js";
import { formatTimeUs } from "../timestamps.js";
import type { EventName, RunEventName } from "./webhook.js";

/** It changes only when a change breaks readers. Added fields do not change it. */
export const EVENT_SCHEMA_VERSION = 3;

const MM_PER_INCH = 25.4;

/** The cell and the service that emit an event. */
export interface EventSource {
  serviceVersion: string;
  cell: CellIdentity;
}

/**
 * The payload of a run's event, as JSON text that is stored once and posted as it is.
 *
 * @param run as it is right after the transition at `timeUs`
 * @param programExists false when the program was deleted
 */
export function runEventPayload(
  source: EventSource,
  eventId: string,
  eventName: RunEventName,
  run: RunState,
  programExists: boolean,
  timeUs: number,
): string {
  const envelope = (data: object): string => JSON.stringify(envelopeOf(source, eventId, eventName, data, timeUs));
  const common = runEventData(run, programExists);
  switch (eventName) {
    case "ProgramStarted":
      return envelope(common);
    case "ProgramFailed":
    case "ProgramCancelled":
      return envelope({ ...common, error_message: run.errorMessage });
    case "ProgramCompleted": {
      const whole = envelope(completedData(source.cell, common, run));
      if (whole.length * MOST_BYTES_OF_A_UNIT <= LIMITS.eventPayloadBytes) return whole;
      if (Buffer.byteLength(whole) <= LIMITS.eventPayloadBytes) return whole;
      // The run's own routes have them.
      const emptied = { qc_checks: [], defects: [], files: [], truncated: true };
      return envelope({ ...completedData(source.cell, common, run), ...emptied });
    }
  }
}

/** The most UTF-8 bytes that one UTF-16 unit of a string can become. */
const MOST_BYTES_OF_A_UNIT = 3;

export function testEventPayload(
  source: EventSource,
  eventId: string,
  webhook: { id: string; name: string },
  timeUs: number,
): string {
  const message = "a test event: no run stands behind it";
  const data = { webhook_id: webhook.id, webhook_name: webhook.name, message };
  return JSON.stringify(envelopeOf(source, eventId, "WebhookTest", data, timeUs));
}

/** What every receiver of an event gets. It is the same, byte for byte, in every attempt. */
function envelopeOf(
  { serviceVersion, cell }: EventSource,
  eventId: string,
  eventName: EventName,
  data: object,
  timeUs: number,
) {
  return {
    event_id: eventId,
    event_name: eventName,
    timestamp: formatTimeUs(timeUs),
    schema_version: EVENT_SCHEMA_VERSION,
    service_version: serviceVersion,
    kiosk_serial_number: cell.kioskSerialNumber,
    data,
  };
}

/** Data that every event of a run has. */
function runEventData(run: RunState, programExists: boolean) {
  return {
    run_id: run.id,
    program_id: run.programId,
    program_name: programExists ? run.programName : null,
    robot_id: run.robotId,
    serial_number: run.serialNumber,
    revision: run.revision,
    status: run.status,
    quality_status: qualityStatusOf(run),
    created_at: formatTimeUs(run.createdAtUs),
    updated_at: formatTimeUs(run.updatedAtUs),
    started_at: run.startedAtUs === null ? null : formatTimeUs(run.startedAtUs),
    completed_at: run.completedAtUs === null ? null : formatTimeUs(run.completedAtUs),
  };
}

function completedData(cell: CellIdentity, common: ReturnType<typeof runEventData>, run: RunState) {
  return {
    ...common,
    passed: common.quality_status === "passed",
    unit_system: cell.unitSystem,
    qc_checks: run.checks.map((check) => eventCheck(check, cell.unitSystem)),
    defects: run.defects.map((defect) => eventDefect(defect, cell.unitSystem)),
    files: manifestResponse(run, ""),
  };
}

/** A defect in display units. Pixels, orientation and texts stay as they are. */
function eventDefect({ region_3d: region, ...rest }: Defect, unitSystem: CellIdentity["unitSystem"]) {
  if (region === undefined || region === null) return { ...rest, ...(region === null && { region_3d: null }) };
  if (unitSystem === "metric") return { ...rest, region_3d: { ...region, unit: "mm" } };
  const { location, extents } = region;
  const inches = (lengthsMm: readonly number[]): number[] => lengthsMm.map((mm) => mm / MM_PER_INCH);
  return {
    ...rest,
    region_3d: {
      ...region,
      ...(location && { location: inches(location) }),
      ...(extents && { extents: inches(extents) }),
      unit: "in",
    },
  };
}

/** A check in display units. If its unit is unspecified, `unit` is null and numbers stay as they are. 1 in is exactly 25.4 mm. Nothing is rounded. */
function eventCheck(
  { canonical_units = "mm", value, nominal, delta, threshold, ...rest }: QualityCheck,
  unitSystem: CellIdentity["unitSystem"],
) {
  const isInches = canonical_units === "mm" && unitSystem === "imperial";
  const converted = (mm: number | null | undefined): number | null => {
    if (mm === null || mm === undefined) return null;
    return isInches ? mm / MM_PER_INCH : mm;
  };
  return {
    ...rest,
    value: converted(value),
    nominal: converted(nominal),
    delta: converted(delta),
    threshold: converted(threshold),
    unit: canonical_units === "unspecified" ? null : isInches ? "in" : "mm",
  };
}
