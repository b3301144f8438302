/**
 * The report page of a run: one HTML page for paper that needs nothing else.
 *
 * The same run and the same captures give the same bytes. A picture or plot whose bytes are damaged or missing is
 * replaced by words that say so; `damages` then tells what was found.
 */
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { isProcessingOpen, pictureOf } from "../../../core/capture/artefact.js";
import { type Extent, type FrameState, itemBytes, lineBytes, type SeriesState } from "../../../core/capture/capture.js";
import { isTerminal, type RunState } from "../../../core/run/run-state.js";
import { FileSystemError, isShortage } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { decodeChanges } from "../../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { StorageError } from "../../../storage/storage-error.js";
import { frameSource } from "../frame/frame-source.js";
import { damagedCapture, readPart } from "../frame/stored-bytes.js";
import { encodeLuminancePreview } from "../picture/luminance-preview.js";
import type { ThreadMemory } from "../pool/thread-memory.js";
import { outlineSeries } from "../series/series-outline.js";
import { checkSection } from "./check-section.js";
import { PAGE_STYLE } from "./page-style.js";
import { escaped } from "./page-text.js";
import { defectSection, defectsByFrame, type PageFrame, type PagePicture, pictureSection } from "./picture-section.js";
import { REPORT_POLICY } from "./report-policy.js";
import { fileSection, headSection, outcomeOf } from "./run-sections.js";
import { type PageSeries, PLOT_BUCKETS, seriesSection } from "./series-section.js";

export interface ReportSource {
  /** The file of the run's captures; it need not exist. */
  path: string;
  /** The body of the run's consolidated record, or the JSON of its state. */
  run: { record: Uint8Array } | { json: Uint8Array };
  /** What the log may have lost of the run, for people. */
  loss?: string;
}

export interface ReportPage {
  /** UTF-8. */
  page: Uint8Array<ArrayBuffer>;
  /** Of the page, in base64url. */
  sha1: string;
  /** Captures that were found damaged or missing. */
  damages: string[];
}

/** A page of some ten sheets of pictures is still read; its size stays below about 20 MB. */
const MOST_FRAMES = 12;
const MOST_SERIES = 12;
/** Raw luminance and series that are read for one page, which takes a second or two. */
const MOST_READ_BYTES = 512 * 1024 * 1024;

export async function makeReport(
  fileSystem: FileSystem,
  memory: ThreadMemory,
  { path, run: source, loss }: ReportSource,
): Promise<ReportPage> {
  const run = "json" in source ? (JSON.parse(Buffer.from(source.json).toString()) as RunState) : runOf(source.record);
  const captures = new ReportCaptures(fileSystem, memory, path, run);
  const placed = defectsByFrame(run);
  const frames: PageFrame[] = [];
  for (const frame of framesToShow(run, placed)) frames.push(await captures.frame(frame));
  const series: PageSeries[] = [];
  for (const one of run.series.slice(0, MOST_SERIES)) series.push({ series: one, plot: captures.plot(one) });
  const notices = noticesOf(run, captures.damages.length);
  if (loss !== undefined) notices.push(`${loss[0]?.toUpperCase()}${loss.slice(1)}.`);
  const parts = [
    pageHead(run),
    ...headSection(run, notices),
    ...checkSection(run),
    ...defectSection(run),
    ...pictureSection(run, frames, placed, run.frames.length - frames.length),
    ...seriesSection(run, series, run.series.length - series.length),
    ...fileSection(run),
    "</main>\n</body>\n</html>\n",
  ];
  const page = new Uint8Array(new TextEncoder().encode(parts.join("")));
  return { page, sha1: createHash("sha1").update(page).digest("base64url"), damages: captures.damages };
}

function runOf(body: Uint8Array): RunState {
  const [change] = decodeChanges(RECORD_TYPE.runEnded, body);
  if (change?.kind !== "run_ended") throw new Error("the record that was read for a run's report is not its end");
  return change.run;
}

function pageHead(run: RunState): string {
  const title = `${run.serialNumber ?? run.id}: ${outcomeOf(run).word}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${REPORT_POLICY}">
<link rel="icon" href="data:,">
<title>${escaped(title)}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
`;
}

function noticesOf(run: RunState, damages: number): string[] {
  const notices: string[] = [];
  if (!isTerminal(run.status)) {
    notices.push(`This run has not ended (${run.status}). Its results can still change: this is no final report.`);
  }
  if (run.status === "failed" || run.status === "cancelled") {
    const how = run.status === "failed" ? "broke off" : "was cancelled";
    notices.push(`This run ${how}. What it found until then is below, but the part has no outcome.`);
  }
  if (run.capturesRemovedAtUs !== null) notices.push("Retention removed the captures of this run.");
  else if (isTerminal(run.status) && isProcessingOpen(run))
    notices.push("Some formats of captures are still being made.");
  if (damages > 0)
    notices.push("Stored captures of this run are damaged or missing. What they would show is left out.");
  return notices;
}

/** Those with defects first, then in the order in which they were captured. */
function framesToShow({ frames }: RunState, placed: ReadonlyMap<string, unknown>): FrameState[] {
  const withDefects = frames.filter(({ id }) => placed.has(id));
  const others = frames.filter(({ id }) => !placed.has(id));
  return [...withDefects, ...others].slice(0, MOST_FRAMES);
}

/** Reads what the page shows of the run's captures. */
class ReportCaptures {
  readonly damages: string[] = [];
  readonly #fileSystem: FileSystem;
  readonly #memory: ThreadMemory;
  readonly #path: string;
  readonly #run: RunState;
  #readBytes = 0;

  constructor(fileSystem: FileSystem, memory: ThreadMemory, path: string, run: RunState) {
    this.#fileSystem = fileSystem;
    this.#memory = memory;
    this.#path = path;
    this.#run = run;
  }

  async frame(frame: FrameState): Promise<PageFrame> {
    const isLit = frame.planes.luminance !== undefined;
    const why = this.#whyNoFrame(frame);
    if (why !== undefined) return { frame, heights: { why }, luminance: isLit ? { why } : undefined };
    const heights = await this.#heights(frame);
    return { frame, heights, luminance: isLit ? await this.#luminance(frame) : undefined };
  }

  plot(series: SeriesState): PageSeries["plot"] {
    if (this.#run.capturesRemovedAtUs !== null) return { why: "Removed by retention." };
    if (series.completedAtUs === null) return { why: "Not complete yet." };
    const { channels, appends } = series;
    const bytes = appends.reduce((sum, { rows, dtype }) => sum + rows * channels * itemBytes(dtype), 0);
    if (!this.#mayRead(bytes)) return { why: "Too large for this page: see the CSV." };
    try {
      return outlineSeries(this.#fileSystem, { path: this.#path, channels, appends }, PLOT_BUCKETS);
    } catch (error) {
      return { why: this.#whyNotRead(error) };
    }
  }

  #whyNoFrame({ status, lines }: FrameState): string | undefined {
    if (this.#run.capturesRemovedAtUs !== null) return "removed by retention";
    if (status === "open") return "not complete yet";
    if (status === "incomplete") return "incomplete: the run ended before the frame did";
    return lines === 0 ? "the frame has no lines" : undefined;
  }

  async #heights(frame: FrameState): Promise<PagePicture> {
    const made = frame.artefacts?.png;
    const preview = pictureOf(frame, "png")?.preview;
    if (preview !== undefined) return this.#picture(() => this.#stored(preview));
    if (made === undefined) return { why: "not made yet" };
    return { why: made.kind === "failed" ? `could not be made: ${made.message}` : "this release has no preview of it" };
  }

  async #luminance(frame: FrameState): Promise<PagePicture> {
    const { luminance } = frame.planes;
    if (luminance === undefined) return { why: "none" };
    if (!this.#mayRead(frame.lines * lineBytes(frame.planes, frame.width).luminance))
      return { why: "too large for this page: see luminance.png" };
    return this.#picture(() =>
      this.#memory.withFrame(frameSource(frame, this.#path), (kernels, lines) =>
        encodeLuminancePreview(kernels, luminance, frame, lines.luminance),
      ),
    );
  }

  async #stored({ offset, lengthBytes, crc32: expected }: Extent): Promise<Uint8Array> {
    const bytes = await readPart(this.#fileSystem, this.#path, offset, lengthBytes);
    if (crc32(bytes) !== expected) throw damagedCapture(this.#path, offset, "the bytes do not match their CRC");
    return bytes;
  }

  async #picture(make: () => Promise<Uint8Array>): Promise<PagePicture> {
    try {
      return { png: await make() };
    } catch (error) {
      return { why: this.#whyNotRead(error) };
    }
  }

  #mayRead(bytes: number): boolean {
    if (this.#readBytes + bytes > MOST_READ_BYTES) return false;
    this.#readBytes += bytes;
    return true;
  }

  /** @throws any error that is not about these bytes, such as a lack of memory */
  #whyNotRead(error: unknown): string {
    const isOfBytes = error instanceof StorageError || (error instanceof FileSystemError && !isShortage(error));
    if (!isOfBytes) throw error;
    this.damages.push(error.message);
    return error instanceof StorageError && error.code === "capture_missing"
      ? "the stored bytes are missing"
      : "the stored bytes are damaged";
  }
}
