import { uuidV7TimeUs } from "../identifiers.js";
import { contentTypeOf, formatPath } from "../run/manifest.js";
import { availableFormats, formatBytes } from "../run/run-files.js";
import type { RunState } from "../run/run-state.js";
import { formatTimeUs } from "../timestamps.js";
import type { FrameState } from "./capture.js";

export function frameResponse(run: RunState, frame: FrameState) {
  const complete = frame.status === "complete";
  const knownLines = complete ? frame.lines : frame.declaredLines;
  return {
    id: frame.id,
    ...(run.cell !== undefined && { cell: run.cell }),
    session_id: frame.sessionId,
    sequence_number: frame.sequenceNumber,
    frame_type: frame.frameType,
    file_path: `/sensor/frames/${frame.id}/file.npy`,
    file_size_bytes: complete ? formatBytes(frame, "npy") : null,
    width: frame.width,
    height: complete || knownLines > 0 ? knownLines : null,
    joint_positions: frame.jointPositions,
    tcp_position: frame.tcpPosition,
    capture_timestamp: formatTimeUs(frame.captureTimestampUs),
    metadata: frame.metadata,
    created_at: formatTimeUs(uuidV7TimeUs(frame.id)),
    run_id: run.id,
    step_index: frame.stepIndex,
    sensor_id: frame.sensorId,
    geometry: geometryResponse(frame),
  };
}

function geometryResponse({ xPitchMm, yPitchMm, xOriginMm, yOriginMm, planes }: FrameState) {
  return {
    x_pitch_mm: xPitchMm,
    y_pitch_mm: yPitchMm,
    x_origin_mm: xOriginMm,
    y_origin_mm: yOriginMm,
    height: planes.height,
    luminance: planes.luminance ?? null,
  };
}

/** Lists the formats that are available now; more appear as processing completes. `baseUrl` as in `runResponse`. */
export function frameFilesResponse(run: RunState, frame: FrameState, baseUrl: string) {
  const formats = availableFormats(run, frame);
  const files = Object.fromEntries(
    formats.map((format) => [
      format,
      {
        href: `${baseUrl}/sensor/frames/${frame.id}/${formatPath(format)}`,
        content_type: contentTypeOf(format),
        size_in_bytes: formatBytes(frame, format),
      },
    ]),
  );
  return { frame_id: frame.id, session_id: frame.sessionId, available_formats: formats, files };
}
