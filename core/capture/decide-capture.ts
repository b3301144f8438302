import { LIMITS } from "../limits.js";
import type { CellMessageOf } from "../link/cell-message-schema.js";
import type { Change } from "../link/change.js";
import { notFound, tooMany } from "../link/decide-cell.js";
import type { DecisionContext, PayloadStore } from "../link/decision-context.js";
import { invalid, RefusedError } from "../link/refusal.js";
import { acceptingRun, illegalTransition, stepOfRun } from "../run/decide-run.js";
import { type FileType, fileNameFault } from "../run/manifest.js";
import { storedKindOf } from "../run/run-files.js";
import type { RunState } from "../run/run-state.js";
import { formatTimeUs, parseTimeUs, TIME_LIMIT_US } from "../timestamps.js";
import { type HeightDtype, itemBytes, lineBytes, type Planes, type SeriesDtype } from "./capture.js";

/** Roughly what an extent adds to its run's document. An estimate, because the check comes before the extent exists. */
const EXTENT_BYTES = 96;

/** Decides the messages that bring captured bytes, and those that open and close a frame. */
export function decideCapture(
  context: DecisionContext,
  message: CellMessageOf<"frame.begin" | "frame.lines" | "frame.end" | "series.append" | "file.put">,
  payload: PayloadStore,
): Change[] {
  switch (message.type) {
    case "frame.begin":
      return decideFrameBegin(context, message);
    case "frame.lines":
      return decideFrameLines(context, message, payload);
    case "frame.end":
      return decideFrameEnd(context, message);
    case "series.append":
      return decideSeriesAppend(context, message, payload);
    case "file.put":
      return decideFilePut(context, message, payload);
  }
}

function decideFrameBegin(context: DecisionContext, message: CellMessageOf<"frame.begin">): Change[] {
  const run = acceptingRun(context, "frame.begin", message.run_id, "/run_id");
  if (context.runOfFrame(message.id) !== undefined) {
    throw new RefusedError("already_exists", `frame ${message.id} already exists`, { path: "/id", value: message.id });
  }
  stepOfRun(run, message.step_index, "/step_index");
  if (run.frames.length >= LIMITS.framesPerRun) throw tooMany("frames of a run", "/id", LIMITS.framesPerRun);
  const { height, luminance } = message.planes;
  checkInvalidCodes(height.dtype, height.invalid, "/planes/height/invalid");
  if (luminance?.dtype === "u8" && luminance.bits !== 8) {
    throw invalid("/planes/luminance/bits", luminance.bits, 8);
  }
  const { x_origin_mm: xOriginMm, y_origin_mm: yOriginMm } = message;
  checkCoordinates("x", xOriginMm ?? 0, message.x_pitch_mm, message.width);
  checkCoordinates("y", yOriginMm ?? 0, message.y_pitch_mm, message.height === 0 ? LIMITS.frameLines : message.height);
  const planes: Planes = luminance === undefined || luminance === null ? { height } : { height, luminance };
  return [
    {
      kind: "frame_begun",
      runId: run.id,
      frame: {
        id: message.id,
        stepIndex: message.step_index,
        sessionId: message.session_id,
        frameType: message.frame_type,
        width: message.width,
        declaredLines: message.height,
        planes,
        xPitchMm: message.x_pitch_mm,
        yPitchMm: message.y_pitch_mm,
        xOriginMm: xOriginMm ?? 0,
        yOriginMm: yOriginMm ?? 0,
        sequenceNumber: message.sequence_number ?? run.frames.length + 1,
        sensorId: message.sensor_id ?? null,
        jointPositions: message.joint_positions ?? null,
        tcpPosition: message.tcp_position ?? null,
        captureTimestampUs: timeOf(message.capture_timestamp),
        metadata: message.metadata ?? null,
      },
    },
  ];
}

function decideFrameLines(
  context: DecisionContext,
  message: CellMessageOf<"frame.lines">,
  payload: PayloadStore,
): Change[] {
  const { run, frame } = openFrame(context, message);
  if (message.first_line !== frame.lines) {
    throw new RefusedError(
      "out_of_sequence",
      `first_line is ${message.first_line}, but the next line of frame ${frame.id} is ${frame.lines}`,
      {
        path: "/first_line",
        value: message.first_line,
        allowed: frame.lines,
      },
    );
  }
  const lines = frame.lines + message.line_count;
  const most = frame.declaredLines === 0 ? LIMITS.frameLines : frame.declaredLines;
  if (lines > most) {
    throw new RefusedError(
      "too_large",
      `frame ${frame.id} may have at most ${most} lines, but this batch would end at line ${lines}`,
      {
        path: "/line_count",
        value: message.line_count,
        allowed: most - frame.lines,
      },
    );
  }
  if (frame.batches.length >= LIMITS.batchesPerFrame)
    throw tooMany("batches of a frame", "/id", LIMITS.batchesPerFrame);
  const bytes = lineBytes(frame.planes, frame.width);
  checkPayload(payload, message.line_count * (bytes.height + bytes.luminance));
  checkDocumentBytes(run, EXTENT_BYTES);
  const heightCrc32 = payload.crc32(message.line_count * bytes.height, frame.batches.at(-1)?.heightCrc32 ?? 0);
  const extent = payload.store(run.id, "captures");
  return [
    {
      kind: "frame_lines_stored",
      runId: run.id,
      frameId: frame.id,
      batch: { ...extent, lineCount: message.line_count, heightCrc32 },
    },
  ];
}

function decideFrameEnd(context: DecisionContext, message: CellMessageOf<"frame.end">): Change[] {
  const { run, frame } = openFrame(context, message);
  if (frame.declaredLines !== 0 && frame.lines !== frame.declaredLines) {
    throw new RefusedError("size_mismatch", `frame ${frame.id} has ${frame.lines} of ${frame.declaredLines} lines`, {
      path: "lines",
      value: frame.lines,
      allowed: frame.declaredLines,
    });
  }
  return [{ kind: "frame_ended", runId: run.id, frameId: frame.id }];
}

/**
 * The open frame that a message names.
 *
 * @throws {RefusedError} not_found or illegal_transition
 */
function openFrame(context: DecisionContext, message: CellMessageOf<"frame.lines" | "frame.end">) {
  const runId = context.runOfFrame(message.id);
  if (runId === undefined) throw notFound("frame", "/id", message.id);
  const run = acceptingRun(context, message.type, runId, "/id");
  const frame = run.frames.findLast((one) => one.id === message.id);
  if (frame === undefined) throw notFound("frame", "/id", message.id);
  if (frame.status !== "open") throw illegalTransition(message.type, "/id", frame.id, frame.status, ["open"]);
  return { run, frame };
}

function decideSeriesAppend(
  context: DecisionContext,
  message: CellMessageOf<"series.append">,
  payload: PayloadStore,
): Change[] {
  const run = acceptingRun(context, "series.append", message.run_id, "/run_id");
  const index = message.step_index;
  const step = stepOfRun(run, index, "/step_index");
  if (step.status !== "pending" && step.status !== "running") {
    throw illegalTransition("series.append", "/step_index", index, step.status, ["pending", "running"]);
  }
  const series = run.series.find((one) => one.stepIndex === index);
  if (series !== undefined && series.channels !== message.channels) {
    throw new RefusedError(
      "size_mismatch",
      `the series of step ${index} has ${series.channels} channels, but this append has ${message.channels}`,
      {
        path: "/channels",
        value: message.channels,
        allowed: series.channels,
      },
    );
  }
  if ((series?.appends.length ?? 0) >= LIMITS.appendsPerSeries) {
    throw tooMany("appends of a series", "/step_index", LIMITS.appendsPerSeries);
  }
  const invalidCodes = message.invalid ?? [];
  checkInvalidCodes(message.dtype, invalidCodes, "/invalid");
  const rowBytes = message.channels * itemBytes(message.dtype);
  const rows = Math.floor(payload.lengthBytes / rowBytes);
  if (rows === 0 || payload.lengthBytes !== rows * rowBytes) {
    throw new RefusedError("size_mismatch", `the payload must be whole rows of ${rowBytes} bytes, at least one`, {
      path: "payload",
      value: payload.lengthBytes,
      allowed: `a multiple of ${rowBytes}`,
    });
  }
  const firstTimestampUs = timeOf(message.first_timestamp);
  if (firstTimestampUs + (rows - 1) * message.sample_period_us >= TIME_LIMIT_US) {
    const allowed = `a period with which all ${rows} rows are before ${formatTimeUs(TIME_LIMIT_US)}`;
    throw invalid("/sample_period_us", message.sample_period_us, allowed);
  }
  checkDocumentBytes(run, EXTENT_BYTES);
  const extent = payload.store(run.id, "captures");
  return [
    {
      kind: "series_appended",
      runId: run.id,
      stepIndex: index,
      channels: message.channels,
      append: {
        ...extent,
        rows,
        firstTimestampUs,
        samplePeriodUs: message.sample_period_us,
        dtype: message.dtype,
        valueScale: message.scale ?? null,
        valueOffset: message.offset ?? null,
        invalid: invalidCodes,
      },
    },
  ];
}

function decideFilePut(context: DecisionContext, message: CellMessageOf<"file.put">, payload: PayloadStore): Change[] {
  const run = acceptingRun(context, "file.put", message.run_id, "/run_id");
  const { name } = message;
  const fault = fileNameFault(name);
  if (fault !== undefined) {
    // The names that the service gives to captures count as taken; any other fault makes the name invalid for every file.
    const code = fault.startsWith("not a name") ? "name_taken" : "invalid_message";
    throw new RefusedError(code, `/name must be: ${fault}`, {
      path: "/name",
      value: name.slice(0, 300).toWellFormed(),
      allowed: fault,
    });
  }
  if (run.files.some((file) => file.name === name)) {
    throw new RefusedError("name_taken", `run ${run.id} already has a file ${name}`, { path: "/name", value: name });
  }
  if (message.step_index !== undefined && message.step_index !== null) {
    stepOfRun(run, message.step_index, "/step_index");
  }
  if (run.files.length >= LIMITS.filesPerRun) throw tooMany("files of a run", "/name", LIMITS.filesPerRun);
  checkDocumentBytes(run, EXTENT_BYTES);
  const type = message.file_type ?? fileTypeOf(message.content_type);
  const kind = storedKindOf(type);
  const extent = payload.store(run.id, kind);
  return [
    {
      kind: "file_stored",
      runId: run.id,
      file: {
        ...extent,
        ...(kind === "captures" && { storedIn: kind }),
        name,
        type,
        contentType: message.content_type,
        description: message.description ?? null,
        stepIndex: message.step_index ?? null,
        frameId: message.frame_id ?? null,
      },
    },
  ];
}

function fileTypeOf(contentType: string): FileType {
  if (contentType.startsWith("image/")) return "image";
  if (contentType.startsWith("text/csv")) return "measurement";
  return contentType.startsWith("application/x-ply") ? "pointcloud" : "report";
}

/** @throws {RefusedError} too_large when the run's document would grow over its limit */
export function checkDocumentBytes(run: RunState, growthBytes: number): void {
  const bytes = run.documentBytes + growthBytes;
  if (growthBytes === 0 || bytes <= LIMITS.runDocumentBytes) return;
  throw new RefusedError(
    "too_large",
    `the document of run ${run.id} would be larger than ${LIMITS.runDocumentBytes} bytes`,
    {
      path: "",
      value: bytes,
      allowed: LIMITS.runDocumentBytes,
    },
  );
}

function timeOf(text: string): number {
  const timeUs = parseTimeUs(text);
  if (timeUs === undefined) throw new Error(`unchecked time ${text}`);
  return timeUs;
}

function checkPayload(payload: PayloadStore, expectedBytes: number): void {
  if (payload.lengthBytes !== expectedBytes) {
    throw new RefusedError(
      "size_mismatch",
      `the payload must be ${expectedBytes} bytes, but ${payload.lengthBytes} came`,
      {
        path: "payload",
        value: payload.lengthBytes,
        allowed: expectedBytes,
      },
    );
  }
}

/** Points are f32 in all formats. A coordinate that does not fit would be infinite there, and the filter could not compute with it. */
function checkCoordinates(axis: "x" | "y", originMm: number, pitchMm: number, count: number): void {
  const isFinite32 = (mm: number): boolean => Number.isFinite(Math.fround(mm));
  if (isFinite32(originMm) && isFinite32(originMm + (count - 1) * pitchMm)) return;
  const [path, value] = isFinite32(originMm) ? [`/${axis}_pitch_mm`, pitchMm] : [`/${axis}_origin_mm`, originMm];
  throw invalid(path, value, `a value with which all ${count} coordinates are finite as f32`);
}

const INTEGER_RANGE: Partial<Record<HeightDtype | SeriesDtype, [minimum: number, maximum: number]>> = {
  u16: [0, 0xffff],
  i16: [-0x8000, 0x7fff],
  i32: [-0x8000_0000, 0x7fff_ffff],
};

/** A raw code that the dtype cannot hold would never match. It is a mistake of the producer, so it is refused at once. */
function checkInvalidCodes(dtype: HeightDtype | SeriesDtype, codes: readonly number[], path: string): void {
  const range = INTEGER_RANGE[dtype];
  if (range === undefined) return;
  for (const [at, code] of codes.entries()) {
    if (Number.isInteger(code) && code >= range[0] && code <= range[1]) continue;
    throw invalid(`${path}/${at}`, code, `an integer from ${range[0]} to ${range[1]}`);
  }
}
