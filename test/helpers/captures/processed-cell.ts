import { crc32 } from "node:zlib";
import t, { type Test } from "tap";
import type {
  Extent,
  LineBatch,
  ProcessedFormat,
  SeriesAppend,
  StoredArtefact,
} from "../../../core/capture/capture.js";
import type { RunChange } from "../../../core/link/change.js";
import type { FileSystem, StoreFile } from "../../../storage/disk/file-system-interface.js";
import { frameSource } from "../../../workers/artefacts/frame/frame-source.js";
import { artefactTasks } from "../../../workers/artefacts/pool/artefact-tasks.js";
import { memoryFile } from "../disk/memory-file.js";
import { ContractClient } from "../http/contract-client.js";
import { someFronts } from "../http/fronts-here.js";
import { frameOf, type MadeFrame, surfaceFrame } from "./made-frames.js";
import { RecordedCell } from "./recorded-cell.js";

const T0_US = Date.UTC(2026, 0, 31, 12) * 1000;
const id = (nth: number): string => `019c13ec-cce0-7000-8000-${nth.toString(16).padStart(12, "0")}`;

export const PROCESSED_RUN = id(1);
export const PROCESSED_PROGRAM = id(2);
export const SERIES_CHANNELS = 3;
const SERIES_STEP = 2;

export const SURFACE = id(10);
/** Without luminance. */
export const DARK = id(11);
/** Without a point. */
export const BLIND = id(12);

export interface ProcessedCell {
  cell: RecordedCell;
  frames: Map<string, MadeFrame>;
  /** Every value of the series, row-major; and where each append begins. */
  series: Float32Array;
  appends: SeriesAppend[];
}

/** A cell with one run, all of whose captures have been processed by the tasks themselves: three frames and a series. */
export async function processedCell(): Promise<ProcessedCell> {
  const cell = new RecordedCell();
  const file = new GrowingFile();
  let second = 1;
  const apply = (change: RunChange) => cell.apply(T0_US + second++ * 1_000_000, change);
  const steps = [{ type: "capture_frame" as const }, { type: "cl_sweep" as const }, { type: "wait" as const }];
  cell.apply(T0_US, {
    kind: "program_put",
    program: { id: PROCESSED_PROGRAM, name: "Top", status: "active", steps },
  });
  const runId = PROCESSED_RUN;
  const head = { programId: PROCESSED_PROGRAM, programName: "Top", robotId: null, serialNumber: null, revision: 1 };
  apply({ kind: "run_created", runId, ...head, metadata: null, traceId: null, steps });
  apply({ kind: "run_started", runId });
  const frames = new Map([
    [SURFACE, surfaceFrame(4, 400, 420)],
    [DARK, { ...surfaceFrame(5, 70, 40), luminance: null }],
    [BLIND, frameOf("blind", "u16", { width: 30, lines: 20 }, new Uint16Array(600), { invalid: [0] })],
  ]);
  const dark = frames.get(DARK) as MadeFrame;
  dark.planes = { height: dark.planes.height };
  for (const [frameId, frame] of frames) {
    const { width, lines: declaredLines, ...pitches } = frame.geometry;
    const fields = { sessionId: "s", frameType: "heightmap", sequenceNumber: 1, sensorId: null, jointPositions: null };
    const about = { tcpPosition: null, captureTimestampUs: T0_US, metadata: null, stepIndex: 1 };
    const begun = { id: frameId, width, declaredLines, planes: frame.planes, ...pitches, ...fields, ...about };
    apply({ kind: "frame_begun", runId, frame: begun });
    for (const batch of storeLines(file, frame)) apply({ kind: "frame_lines_stored", runId, frameId, batch });
    apply({ kind: "frame_ended", runId, frameId });
  }
  const series = Float32Array.from({ length: 10_000 * SERIES_CHANNELS }, (_, at) =>
    at % 97 === 0 ? Number.NaN : at / 8,
  );
  for (const [first, end] of [
    [0, 3000],
    [3000, 10_000],
  ] as const) {
    const values = series.subarray(first * SERIES_CHANNELS, end * SERIES_CHANNELS);
    const times = { firstTimestampUs: T0_US + first * 1000, samplePeriodUs: 1000 };
    const scale = { valueScale: null, valueOffset: null, invalid: [] };
    const extent = file.add(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    const append: SeriesAppend = { ...extent, rows: end - first, ...times, dtype: "f32", ...scale };
    apply({ kind: "series_appended", runId, stepIndex: SERIES_STEP, channels: SERIES_CHANNELS, append });
  }
  apply({ kind: "step_finished", runId, index: SERIES_STEP, status: "completed", result: null, error: null });
  await process(cell, file, apply);
  cell.files.set(`${runId}/capture`, file.bytes());
  return { cell, frames, series, appends: cell.state(runId).series[0]?.appends ?? [] };
}

/** What the recorder has made of captures, here by the tasks themselves. */
async function process(cell: RecordedCell, file: GrowingFile, apply: (change: RunChange) => void): Promise<void> {
  const tasks = artefactTasks({ open: async () => file.open(), openSync: () => file.open() } as unknown as FileSystem);
  const run = cell.state(PROCESSED_RUN);
  for (const frame of run.frames) {
    const source = frameSource(frame, "capture");
    const stored = (format: ProcessedFormat, artefact: StoredArtefact) =>
      apply({ kind: "artefact_stored", runId: run.id, of: { frameId: frame.id, format }, artefact });
    const cloud = (format: "ply" | "raw.ply", counts: Uint32Array<ArrayBuffer>, mask: Extent | null) => {
      const points = counts.reduce((sum, count) => sum + count, 0);
      stored(format, { kind: "cloud", points, lineCounts: file.add(new Uint8Array(counts.buffer)), mask });
    };
    cloud("raw.ply", await tasks.countPoints(source), null);
    const heightMap = file.add(await tasks.heightMap(source));
    stored("png", { kind: "picture", file: heightMap, preview: file.add(await tasks.preview(source)) });
    if (frame.planes.luminance !== undefined) {
      stored("luminance.png", { kind: "picture", file: file.add(await tasks.luminance(source)) });
    }
    const { bits, lineCounts } = await tasks.filter(source);
    cloud("ply", lineCounts, file.add(bits));
  }
  for (const { stepIndex, channels, appends } of run.series) {
    const { totalBytes, offsets } = await tasks.indexSeries({ path: "capture", channels, appends });
    const artefact = { kind: "csv", totalBytes, offsets: file.add(new Uint8Array(offsets.buffer)) } as const;
    apply({ kind: "artefact_stored", runId: run.id, of: { stepIndex }, artefact });
  }
}

/** A frame's lines in batches of different sizes, as the recorder stores them. */
function* storeLines(file: GrowingFile, { geometry, planes, height, luminance }: MadeFrame): Generator<LineBatch> {
  const { width, lines } = geometry;
  const heightBytes = planes.height.dtype === "f32" ? 4 * width : 2 * width;
  let heightCrc32 = 0;
  for (let line = 0, size = 30; line < lines; line += size, size += 7) {
    const lineCount = Math.min(size, lines - line);
    const heights = height.subarray(line * heightBytes, (line + lineCount) * heightBytes);
    const light = luminance?.subarray(line * width, (line + lineCount) * width) ?? new Uint8Array(0);
    heightCrc32 = crc32(heights, heightCrc32);
    yield { ...file.add(Buffer.concat([heights, light])), lineCount, heightCrc32 };
  }
}

class GrowingFile {
  readonly #parts: Uint8Array[] = [Buffer.from("before it")];
  #length = 9;

  /** On a multiple of 8, as in capture files. */
  add(bytes: Uint8Array): Extent {
    const padding = (8 - (this.#length % 8)) % 8;
    const offset = this.#length + padding;
    this.#parts.push(new Uint8Array(padding), bytes);
    this.#length = offset + bytes.length;
    return { offset, lengthBytes: bytes.length, crc32: crc32(bytes) };
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  open(): StoreFile {
    return memoryFile(this.bytes());
  }
}

let shared: Promise<ProcessedCell> | undefined;

/** The one of all tests of a file. */
export function sharedProcessedCell(): Promise<ProcessedCell> {
  if (shared === undefined) {
    shared = processedCell();
    t.teardown(async () => (await shared)?.cell.close());
  }
  return shared;
}

/** A test over the shared cell, in full size on every front. */
export function overProcessedCell(
  name: string,
  run: (t: Test, client: ContractClient, cell: ProcessedCell) => Promise<void>,
): void {
  for (const here of someFronts(t)) {
    t.test(`${name} (${here.name})`, async (t) => {
      const cell = await sharedProcessedCell();
      await run(t, new ContractClient(t, await cell.cell.listen(here)), cell);
    });
  }
}
