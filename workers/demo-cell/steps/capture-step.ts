import type { JsonObject } from "../../../core/json/json.js";
import type { ProgramStep } from "../../../core/run/program.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { batchPayload } from "./capture.js";
import type { RunContext } from "./run-context.js";

/** A batch has about this many bytes: some hundred milliseconds of a capture head. */
const BATCH_BYTES = 512 * 1024;
/** Lines that the modelled head takes per second. */
const LINE_RATE = 1_000;

/** Streams the part's capture as a head does, then lets the co-processor judge it in a job. */
export async function captureFrame(run: RunContext, step: ProgramStep, index: number): Promise<JsonObject> {
  const inspection = await run.inspect();
  if (inspection === undefined) return {};
  const { capture, checks } = inspection;
  const frameId = run.newId();
  await run.say({
    type: "frame.begin",
    id: frameId,
    run_id: run.runId,
    step_index: index,
    session_id: run.runId,
    frame_type: String(step.params?.frame_type ?? "height_map"),
    width: capture.width,
    height: capture.lines,
    planes: capture.planes,
    x_pitch_mm: capture.xPitchMm,
    y_pitch_mm: capture.yPitchMm,
    x_origin_mm: capture.xOriginMm,
    y_origin_mm: capture.yOriginMm,
    sensor_id: String(step.params?.sensor_id ?? "ljx-1"),
    joint_positions: [12, -78, 96, -18, 88, 4],
    tcp_position: { x_mm: 412.5, y_mm: -80.25, z_mm: 310, rx_deg: 180, ry_deg: 0, rz_deg: 90 },
    capture_timestamp: formatTimeUs(Date.now() * 1000),
    metadata: { ...capture.metadata, line_rate_hz: LINE_RATE },
  });
  const lineBytes = (capture.height.length + (capture.luminance?.length ?? 0)) / capture.lines;
  const batchLines = Math.max(1, Math.floor(BATCH_BYTES / lineBytes));
  for (let first = 0; first < capture.lines; first += batchLines) {
    const count = Math.min(batchLines, capture.lines - first);
    await run.pace.work((count / LINE_RATE) * 1000);
    await run.say(
      { type: "frame.lines", id: frameId, first_line: first, line_count: count },
      batchPayload(capture, first, count),
    );
  }
  await run.say({ type: "frame.end", id: frameId });

  const jobId = run.newId();
  const defects = inspection.defects(frameId);
  await run.say({ type: "job.start", run_id: run.runId, id: jobId, name: "surface inspection" });
  await run.pace.work(200);
  await run.say({ type: "job.finish", run_id: run.runId, id: jobId, status: "completed", checks, defects });
  run.checks.push(...checks);
  run.defects.push(...defects);
  return { frame_id: frameId, lines: capture.lines, points: capture.width * capture.lines };
}
