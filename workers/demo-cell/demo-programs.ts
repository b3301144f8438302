import type { ProgramDocument, ProgramStep } from "../../core/run/program.js";
import { PART_KINDS } from "./part/demo-parts.js";
import { madeParts } from "./part/made-parts.js";
import { type PartSource, stableId } from "./part/part-source.js";
import { recordedParts } from "./part/recorded-parts.js";
import { openCollection, type ReadFile, type RecordedCapture } from "./replay.js";

export interface DemoProgram {
  document: ProgramDocument;
  parts: PartSource;
}

const LOAD = { group_id: "load", group_name: "Load and identify" };
const SCAN = { group_id: "scan", group_name: "Scan" };
const PARK = { group_id: "park", group_name: "Unload" };

const gate: ProgramStep = { type: "safety_gate", name: "Gate closed", params: { gate: "front" }, ...LOAD };
const readCode: ProgramStep = {
  type: "srl_read",
  name: "Read part code",
  params: { reader: "srl-1", attempts: 3 },
  ...LOAD,
};
const park: ProgramStep = { type: "move_robot", name: "Park", params: { robot_id: "r1", pose: "park" }, ...PARK };
const moveTo = (name: string, pose: string, robotId = "r1"): ProgramStep => ({
  type: "move_robot",
  name,
  params: { robot_id: robotId, pose, speed_mm_per_s: 250 },
  ...SCAN,
});
const grip = (name: string, widthMm: number, group = LOAD): ProgramStep => ({
  type: "gripper",
  name,
  params: { width_mm: widthMm, force_n: 40 },
  ...group,
});
const scanFace = (name: string): ProgramStep => ({
  type: "capture_frame",
  name,
  params: { sensor_id: "ljx-1", frame_type: "height_map" },
  ...SCAN,
});
const sweep = (name: string, channels: number, encoding: "f32" | "i32"): ProgramStep => ({
  type: "cl_sweep",
  name,
  params: { controller: "cl-1", channels, encoding, samples: 600, sample_period_us: 1000 },
  ...SCAN,
});
const camera = (name: string, programNumber: number): ProgramStep => ({
  type: "iv4_program",
  name,
  params: { camera: "iv4-1", program_number: programNumber, threshold: 70 },
  ...SCAN,
});

/** The programs of a demo cell. They use the height maps of a folder if it is given, and made parts otherwise. */
export async function demoPrograms(capturesDirectory: string | undefined, readFile: ReadFile): Promise<DemoProgram[]> {
  if (capturesDirectory === undefined) return madePrograms();
  return recordedPrograms(await openCollection(capturesDirectory, readFile));
}

/** Programs for made parts, as a cell for machined and moulded parts has them. */
function madePrograms(): DemoProgram[] {
  return [housingCover(), connectorTray(), weldedLid(), incomingLabel(), sealPlate()];
}

function program(
  key: string,
  parts: PartSource,
  fields: Omit<ProgramDocument, "id" | "status"> & { status?: ProgramDocument["status"] },
): DemoProgram {
  return { document: { id: stableId(key), status: "active", ...fields }, parts };
}

/** A machined part with a height map, a sweep and a camera check. */
function housingCover(): DemoProgram {
  return program("housing-cover", madeParts(PART_KINDS.housingCover), {
    name: "Housing cover, sealing face",
    description: "Boss and pockets of the machined cover, relative to the land around them; label and part code.",
    robot_ids: ["r1"],
    sensor_id: "ljx-1",
    co_processor: "surface-inspector",
    steps: [
      gate,
      grip("Clamp", 75),
      readCode,
      moveTo("Over the face", "face"),
      scanFace("Scan face"),
      sweep("Sweep over boss", 2, "f32"),
      camera("Label present", 3),
      { type: "wait", name: "Cool down", params: { seconds: 2 }, enabled: false, ...PARK },
      park,
    ],
    run_configs: [
      { name: "Series", metadata: { sampling: "every part" } },
      { name: "First article", metadata: { sampling: "all features", report: "full" } },
    ],
    metadata: { drawing: "HC-2044", drawing_revision: "D" },
  });
}

/** A moulded part, handled by two robots. */
function connectorTray(): DemoProgram {
  return program("connector-tray", madeParts(PART_KINDS.connectorTray), {
    name: "Connector tray, cells",
    description: "Depth of the three cells in the moulded tray, relative to the land around them.",
    robot_ids: ["r1", "r2"],
    sensor_id: "ljx-1",
    co_processor: "surface-inspector",
    steps: [
      gate,
      readCode,
      moveTo("Present tray", "tray", "r2"),
      scanFace("Scan cells"),
      camera("Contacts straight", 7),
      camera("Colour", 8),
      sweep("Sweep across cells", 4, "i32"),
      grip("Release", 40, PARK),
    ],
    run_configs: [{ name: "Series" }],
    metadata: { drawing: "CT-118", material: "PBT GF30" },
  });
}

/** A weld seam with 3,200 points a line. */
function weldedLid(): DemoProgram {
  return program("welded-lid", madeParts(PART_KINDS.weldedLid), {
    name: "Battery lid, weld seam",
    description: "Height of the seam at three places, relative to the case beside it; 3,200 points a line.",
    robot_ids: ["r2"],
    sensor_id: "ljx-1",
    co_processor: "seam-inspector",
    pre_hook: "suction on",
    post_hook: "suction off",
    steps: [
      gate,
      readCode,
      { type: "move_motor", name: "Slide to start", params: { axis: "x1", position_mm: 0 }, ...SCAN },
      { type: "ljx_stream_start", name: "Stream on", params: { sensor_id: "ljx-1" }, ...SCAN },
      scanFace("Scan seam"),
      { type: "ljx_stream_stop", name: "Stream off", params: { sensor_id: "ljx-1" }, ...SCAN },
      sweep("Sweep along seam", 2, "i32"),
      { type: "wait", name: "Settle", params: { seconds: 0.3 }, ...PARK },
      { ...park, params: { robot_id: "r2", pose: "park" } },
    ],
    run_configs: [{ name: "Series" }, { name: "After tip change", metadata: { parts: 5 } }],
    metadata: { seam: "laser, 2.2 kW" },
  });
}

/** Only camera checks: its runs have no captures. */
function incomingLabel(): DemoProgram {
  return program(
    "incoming-label",
    { serialPrefix: "IN", inspect: async () => undefined },
    {
      name: "Incoming goods, label check",
      description: "Code and label by camera only; no scan.",
      robot_ids: [],
      sensor_id: null,
      steps: [gate, readCode, camera("Label position", 11), camera("Print quality", 12)],
    },
  );
}

/** A turned part, scanned by a head that measures no luminance. */
function sealPlate(): DemoProgram {
  return program("seal-plate", madeParts(PART_KINDS.sealPlate), {
    name: "Seal plate, O-ring groove",
    description: "Depth of the groove and height of the land within it, relative to the land outside; no luminance.",
    robot_ids: ["r1"],
    sensor_id: "ljx-1",
    co_processor: "surface-inspector",
    steps: [
      gate,
      readCode,
      moveTo("Over the groove", "groove"),
      scanFace("Scan groove"),
      sweep("Sweep across groove", 3, "f32"),
      park,
    ],
    run_configs: [{ name: "Series" }],
    metadata: { drawing: "SP-3071", drawing_revision: "B", o_ring: "18 x 2" },
  });
}

/** One program for each recorded capture. */
function recordedPrograms(captures: readonly RecordedCapture[]): DemoProgram[] {
  return captures.map((capture) => ({
    document: {
      id: stableId(`recorded-${capture.name}`),
      name: `Recorded part: ${capture.name}`,
      description: capture.note,
      robot_ids: ["r1"],
      sensor_id: "recorded",
      co_processor: "surface-inspector",
      status: "active",
      steps: [
        gate,
        readCode,
        moveTo("Over the part", "face"),
        scanFace("Replay capture"),
        sweep("Profile", 2, "f32"),
        park,
      ],
      run_configs: [{ name: "Replay" }],
      metadata: { capture: capture.name, sensor: capture.sensor },
    },
    parts: recordedParts(capture),
  }));
}
