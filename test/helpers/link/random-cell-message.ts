import type { JsonObject } from "../../../core/json/json.js";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import type { Random } from "../../../core/random.js";
import type { Defect, QualityCheck } from "../../../core/run/quality.js";
import type { CellLinkModel } from "./cell-link-model.js";
import { frameBegin, idOf } from "./cell-messages.js";

/** Texts that readers and writers get wrong. */
export const TEXTS = [
  "",
  "µm",
  "\ufeffbyte order mark",
  `\ufeff${"long ".repeat(60)}`,
  "日本😀",
  "x".repeat(300),
  "\u0000\u2028",
];

export function randomObject(random: Random, depth = 0): JsonObject {
  const object: JsonObject = {};
  for (let n = random.integer(0, 4); n > 0; n--) {
    const key = random.pick([
      "a",
      "constructor",
      "toString",
      "",
      "\ufeffkey",
      `\ufeff${"k".repeat(250)}`,
      "frame",
      "0",
    ]);
    const value = random.integer(0, depth > 3 ? 4 : 6);
    if (value === 0) object[key] = random.pick([null, true, false]);
    else if (value <= 2)
      object[key] = random.pick([1.5, -1, 2 ** 53 - 1, -(2 ** 40), 1e300, 5e-324, random.normal(), 70_000]);
    else if (value <= 4) object[key] = random.pick(TEXTS);
    else object[key] = random.chance(0.5) ? [randomObject(random, depth + 1)] : randomObject(random, depth + 1);
  }
  return object;
}

function randomProgram(random: Random): CellMessage {
  const steps = Array.from({ length: 4 }, () => ({ type: "wait" as const, enabled: random.chance(0.8) }));
  const name = random.pick(["P", "Q", "\ufeffP"]);
  return { type: "program.put", program: { id: idOf(random.integer(1, 3)), name, status: "active", steps } };
}

function checksOf(random: Random): QualityCheck[] {
  return Array.from({ length: random.integer(0, 2) }, (_, n) => ({
    name: `c${n}`,
    status: random.pick(["passed", "failed", "error"]),
    value: random.normal(),
    metadata: randomObject(random),
  }));
}

function defectsOf(random: Random): Defect[] {
  return Array.from({ length: random.integer(0, 2) }, () => ({ type: "dent", confidence: random.next() }));
}

/** What a message is about: mostly what there is, so that something happens; sometimes what there is not. */
function pickSubject(random: Random, model: CellLinkModel) {
  const newest = [...model.runs.keys()].sort();
  if (newest.length === 0) newest.push(idOf(100));
  const active = newest.filter((id) => /pending|running|finalizing/.test(model.runs.get(id)?.status ?? ""));
  let runId = random.chance(0.5) ? (newest.at(-1) as string) : random.pick(newest);
  if (active.length > 0 && random.chance(0.9)) runId = random.pick(active.slice(-3));
  if (random.chance(0.03)) runId = idOf(random.integer(100, 140));
  const frames = [...(model.runs.get(runId)?.frames.keys() ?? [])];
  const frameId = frames.length > 0 && random.chance(0.8) ? random.pick(frames) : idOf(random.integer(200, 400));
  const jobId = idOf(random.integer(300, 304));
  const index = random.integer(1, 4);
  const frame = model.runs.get(model.frames.get(frameId) ?? "")?.frames.get(frameId);
  const count = random.integer(1, 3);
  const text = random.pick(TEXTS);
  const off = random.chance(0.05) ? random.pick([-1, 1, 9]) : 0;
  const name = random.pick(["a", "b", "ü 日本", "x/y", "step-1-cl_sweep.csv", `f${random.integer(0, 99)}`]);
  const steps = [{ type: "wait" as const, params: randomObject(random) }, { type: "gripper" as const }];
  const newRun = random.chance(0.9) ? 100 + model.runs.size * 2 : random.integer(98, 98 + model.runs.size * 2);
  const first_line = (frame?.lines ?? 0) + (random.chance(0.1) ? 1 : 0);
  return { runId, frameId, jobId, index, count, text, off, name, steps, newRun, first_line };
}

type Subject = ReturnType<typeof pickSubject>;
type Made = [CellMessage, payloadBytes: number];
type Maker = [weight: number, () => Made];

function cellMakers(random: Random): Maker[] {
  return [
    [2, () => [randomProgram(random), 0]],
    [0.3, () => [{ type: "program.delete", id: idOf(random.integer(1, 3)) }, 0]],
    [1, () => [{ type: "component.put", key: random.pick(["log", "plc", "r1"]), status: "healthy" }, 0]],
    [1, () => [{ type: "component.delete", key: random.pick(["plc", "r1"]) }, 0]],
    [1, () => [{ type: "cell.put", kiosk_serial_number: random.pick([null, "K"]) }, 0]],
  ];
}

function runMakers(random: Random, { runId, newRun, index, text, steps }: Subject): Maker[] {
  return [
    [
      2,
      () => {
        const message = { type: "run.create" as const, id: idOf(newRun), program_id: idOf(random.integer(1, 3)) };
        const serial_number = random.pick([null, "A", "\ufeffA", "B"]);
        const metadata = random.chance(0.5) ? randomObject(random) : null;
        return [{ ...message, serial_number, metadata, ...(random.chance(0.3) ? { steps } : {}) }, 0];
      },
    ],
    [4, () => [{ type: "run.start", id: runId }, 0]],
    [4, () => [{ type: "step.start", run_id: runId, index }, 0]],
    [
      4,
      () => {
        const status = random.pick(["completed", "completed", "failed", "skipped"] as const);
        const result = {
          ...randomObject(random),
          checks: checksOf(random),
          defects: defectsOf(random),
        } as unknown as JsonObject;
        const more = { ...(random.chance(0.5) ? { result } : {}), ...(random.chance(0.3) ? { error: text } : {}) };
        return [{ type: "step.finish", run_id: runId, index, status, ...more }, 0];
      },
    ],
  ];
}

function captureMakers(random: Random, { runId, frameId, index, first_line, count, off }: Subject): Maker[] {
  return [
    [
      3,
      () => {
        const height = random.pick([0, 4]);
        const metadata = randomObject(random);
        return [frameBegin({ id: frameId, run_id: runId, step_index: index, height, metadata }), 0];
      },
    ],
    [8, () => [{ type: "frame.lines", id: frameId, first_line, line_count: count }, count * 9 + off]],
    [4, () => [{ type: "frame.end", id: frameId }, 0]],
    [
      4,
      () => {
        const samples = { first_timestamp: "2026-11-20T19:07:00Z", sample_period_us: 12.5, dtype: "f32" as const };
        const channels = random.chance(0.9) ? 2 : 3;
        return [{ type: "series.append", run_id: runId, step_index: index, channels, ...samples }, 24 + off];
      },
    ],
  ];
}

function resultMakers(random: Random, { runId, jobId, index, text, name }: Subject): Maker[] {
  return [
    [1, () => [{ type: "check.add", run_id: runId, check: { name: "c", status: "warning", nominal: null } }, 0]],
    [1, () => [{ type: "defect.add", run_id: runId, defect: { metadata: randomObject(random) } }, 0]],
    [2, () => [{ type: "job.start", run_id: runId, id: jobId, name: "j" }, 0]],
    [
      3,
      () => {
        const status = random.pick(["completed", "failed"] as const);
        return [
          {
            type: "job.finish",
            run_id: runId,
            id: jobId,
            status,
            checks: checksOf(random),
            defects: defectsOf(random),
          },
          0,
        ];
      },
    ],
    [
      2,
      () => {
        const message = { type: "file.put" as const, run_id: runId, name, content_type: "application/pdf" };
        const more = random.chance(0.3) ? { step_index: index, description: text } : {};
        return [{ ...message, ...more }, random.integer(0, 9)];
      },
    ],
    [2, () => [{ type: "event.add", run_id: runId, event_type: "e", data: randomObject(random) }, 0]],
    [0.6, () => [{ type: "run.finish", id: runId, summary: text, results: randomObject(random) }, 0]],
    [0.15, () => [{ type: "run.fail", id: runId, error_message: text }, 0]],
    [0.15, () => [{ type: "run.cancel", id: runId }, random.chance(0.1) ? 1 : 0]],
  ];
}

/** A message that is valid in itself. Mostly it has an effect on what there is, sometimes it has none. */
export function randomCellMessage(random: Random, model: CellLinkModel): Made {
  if (model.programs.size === 0) return [randomProgram(random), 0];
  const subject = pickSubject(random, model);
  const makers = [
    ...cellMakers(random),
    ...runMakers(random, subject),
    ...captureMakers(random, subject),
    ...resultMakers(random, subject),
  ];
  let at = random.next() * makers.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, make] of makers) {
    at -= weight;
    if (at < 0) return make();
  }
  return [randomProgram(random), 0];
}
