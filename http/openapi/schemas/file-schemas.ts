import { HEIGHT_DTYPE_MEANINGS, LUMINANCE_DTYPE_MEANINGS } from "../../../core/capture/capture.js";
import {
  count,
  freeForm,
  integer,
  list,
  nullable,
  number,
  numbers,
  object,
  oneOf,
  ordinal,
  text,
  time,
  uuid,
} from "../../../core/json/described-schema.js";
import { OFFERED_FORMAT_MEANINGS } from "../../../core/run/manifest.js";
import { fileMetadata } from "../../../core/run/run-schema.js";
import { FRAME_GEOMETRY } from "../frame-millimetres.js";
import { listOf, ref } from "./component-reference.js";

const SESSION_ID = text("The sensor's session that the frame was captured in, as the cell calls it.");
const FORMAT = oneOf(
  OFFERED_FORMAT_MEANINGS,
  "A format, named as at the end of its URL: `file.<format>`, or `preview.png`.",
);

/** Files of runs, and captured frames. */
export const FILE_SCHEMAS = {
  Link: object(
    { href: text("URL, absolute in answers.") },
    { method: text("HTTP method to use, such as GET.") },
    "Where something is.",
  ),
  FileMetadata: fileMetadata(text("Where to download the file: an absolute URL.")),
  FileMetadataList: listOf("FileMetadata", "The files of a run, oldest first."),
  CapturedFrameResponse: object(
    {
      id: uuid("Id of the frame. The cell makes it."),
      session_id: SESSION_ID,
      sequence_number: integer(
        "Number of the frame in its session, as the cell counts. If the cell gave none, its place in the run, counted from 1.",
      ),
      frame_type: text("Kind of frame, as the cell calls it, such as height_map."),
      file_path: text(
        "URL path of the frame's NPY, relative to the base address. It answers 404 until the frame is complete.",
      ),
      file_size_bytes: nullable(count("Size of the NPY in bytes."), "while the frame is not complete"),
      width: nullable(count("Number of columns: points in a line.")),
      height: nullable(count("Number of lines."), "while it is not known"),
      joint_positions: nullable(
        numbers("Positions of the robot's joints at the capture, first joint first, in the unit that the cell uses."),
        "when the cell did not say",
      ),
      tcp_position: nullable(
        freeForm("Position of the robot's tool centre point at the capture, with the cell's own fields and units."),
        "when the cell did not say",
      ),
      capture_timestamp: time("When the sensor captured the frame, by the cell's own clock."),
      metadata: nullable(freeForm("Anything else that the cell says about the frame."), "when there is nothing"),
      created_at: time("When the frame was created, taken from its id, to the millisecond."),
      run_id: uuid("The run that the frame belongs to."),
      step_index: ordinal("The step that captured it, counted from 1."),
      sensor_id: nullable(text("The sensor that captured it."), "when the cell did not say"),
      geometry: ref("FrameGeometry", "How columns, lines and raw values become millimetres."),
    },
    { cell: text("Name of the cell that captured the frame. Only a hub says it.") },
    "One capture of a sensor: a grid of heights, with luminance if the sensor measures it.",
  ),
  FrameGeometry: object(
    {
      x_pitch_mm: number("Millimetres from one column to the next."),
      y_pitch_mm: number("Millimetres from one line to the next."),
      x_origin_mm: number("x of column 0 in mm; 0 if the cell did not say."),
      y_origin_mm: number("y of line 0 in mm; 0 if the cell did not say."),
      height: ref("FrameHeight", "How raw heights become z."),
      luminance: nullable(ref("FrameLuminance", "What the luminance values are."), "for a frame without luminance"),
    },
    {},
    FRAME_GEOMETRY,
  ),
  FrameHeight: object(
    {
      dtype: oneOf(HEIGHT_DTYPE_MEANINGS, "Type of the raw values, also in the NPY."),
      scale_mm: number("Millimetres for a raw step of 1."),
      offset_mm: number("z in mm of the raw value 0."),
      invalid: numbers("Raw values that mean no measurement. NaN always means that too."),
    },
    {},
    "The heights of a frame.",
  ),
  FrameLuminance: object(
    {
      dtype: oneOf(LUMINANCE_DTYPE_MEANINGS, "Type of the raw values."),
      bits: integer("How many of their lowest bits carry signal: 8, 10, 12 or 16."),
    },
    {},
    "The luminance of a frame.",
  ),
  FrameFormatFile: object(
    {
      href: text("Where to download the format: an absolute URL."),
      content_type: text(
        "MIME type of the bytes. Downloads have `application/octet-stream`, so that no browser opens them here.",
      ),
      size_in_bytes: nullable(count("Size of the file in bytes."), "when it is not known"),
    },
    {},
    "Where a format of a frame is.",
  ),
  FrameFileInfo: object(
    {
      frame_id: uuid("The frame."),
      session_id: SESSION_ID,
      available_formats: list(
        FORMAT,
        "Formats that can be downloaded now. They appear as processing completes. After retention removed the capture there are none.",
      ),
      files: {
        type: "object",
        description: "The same formats, each with its URL.",
        propertyNames: FORMAT,
        additionalProperties: { $ref: "#/components/schemas/FrameFormatFile" },
      },
    },
    {},
    "The formats of a frame.",
  ),
};
