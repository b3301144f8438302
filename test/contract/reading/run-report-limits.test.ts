import { crc32 } from "node:zlib";
import t, { type Test } from "tap";
import type { Change } from "../../../core/link/change.js";
import type { Defect } from "../../../core/run/quality.js";
import { RecordedCell } from "../../helpers/captures/recorded-cell.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { id, PROGRAM, us } from "../../helpers/http/filled-cell.js";

const PICTURE = { xPitchMm: 0.1, yPitchMm: 0.2, xOriginMm: 0, yOriginMm: 0, declaredLines: 1, width: 1 };
const ABOUT = { frameType: "heightmap", sensorId: null, jointPositions: null, tcpPosition: null, metadata: null };
const SERIES_BYTES = 8;
const REMOVED_US = us(90);

/** The page of a completed run that captured so many frames, of one point each, and so many series, of two samples each. */
async function pageOf(
  t: Test,
  captured: { frames?: number; series?: number },
  { defects = [], isRemoved = false }: { defects?: Defect[]; isRemoved?: boolean } = {},
): Promise<string> {
  const { frames = 0, series = 0 } = captured;
  const cell = new RecordedCell();
  const client = new ContractClient(t, await cell.listenFor(t));
  const runId = id(1);
  const steps = Array.from({ length: series + 1 }, (_, at) => ({ type: "wait" as const, name: `step ${at + 1}` }));
  const head = { programId: PROGRAM, robotId: null, serialNumber: "SN-1", revision: 1, metadata: null, traceId: null };
  const changes: Change[] = [
    { kind: "run_created", runId, programName: "Top", ...head, steps },
    { kind: "run_started", runId },
  ];
  for (let nth = 0; nth < frames; nth++) {
    const frameId = frame(nth);
    const planes = { height: { dtype: "u16" as const, scale_mm: 1, offset_mm: 0, invalid: [0] } };
    const batch = { offset: 0, lengthBytes: 2, crc32: 0, lineCount: 1, heightCrc32: 0 };
    const begun = { ...PICTURE, ...ABOUT, id: frameId, stepIndex: 1, planes, sessionId: "s", sequenceNumber: nth };
    changes.push({ kind: "frame_begun", runId, frame: { ...begun, captureTimestampUs: us(1) } });
    changes.push({ kind: "frame_lines_stored", runId, frameId, batch }, { kind: "frame_ended", runId, frameId });
  }
  const stored = new Uint8Array(Float32Array.of(1, 2).buffer);
  cell.files.set(`${runId}/capture`, stored);
  for (let nth = 0; nth < series; nth++) {
    const times = { firstTimestampUs: us(2), samplePeriodUs: 1000, rows: 2, dtype: "f32" as const };
    const extent = { offset: 0, lengthBytes: SERIES_BYTES, crc32: crc32(stored) };
    const append = { ...extent, ...times, valueScale: null, valueOffset: null, invalid: [] };
    changes.push({ kind: "series_appended", runId, stepIndex: nth + 2, channels: 1, append });
    const finished = { status: "completed", result: null, error: null } as const;
    changes.push({ kind: "step_finished", runId, index: nth + 2, ...finished });
  }
  for (const defect of defects) changes.push({ kind: "defect_added", runId, defect });
  for (const [at, change] of changes.entries()) cell.apply(us(1) + at, change);
  const fields = isRemoved ? { capturesRemovedAtUs: REMOVED_US, updatedAtUs: REMOVED_US } : {};
  cell.end(us(60), runId, { status: "completed", errorMessage: null, notes: [] }, fields);
  const { status, body } = await client.raw("GET", `/runs/${runId}/report.html`);
  t.equal(status, 200);
  return body.toString();
}

const frame = (nth: number): string => id(100 + nth, 1);
const count = (html: string, words: string): number => html.split(words).length - 1;
const LEFT_OUT = /<p>[^<]* not shown here\.<\/p>/g;

t.test("12 frames and 12 series: all of them", async (t) => {
  const html = await pageOf(t, { frames: 12, series: 12 });
  t.equal(count(html, '<section class="frame">'), 12);
  t.equal(count(html, "Height map: not made yet"), 12);
  t.equal(count(html, '<figure class="series">'), 12);
  t.equal(count(html, '<svg class="plot"'), 12, "each with its plot");
  t.same(html.match(LEFT_OUT), null);
});

t.test("more frames and series: the first 12, and how many are left out", async (t) => {
  const one = await pageOf(t, { frames: 13, series: 13 });
  t.same(one.match(LEFT_OUT), ["<p>1 more frame is not shown here.</p>", "<p>1 more series are not shown here.</p>"]);
  const html = await pageOf(t, { frames: 40, series: 15 });
  t.equal(count(html, '<section class="frame">'), 12);
  t.equal(count(html, '<figure class="series">'), 12);
  t.same(html.match(LEFT_OUT), [
    "<p>28 more frames are not shown here.</p>",
    "<p>3 more series are not shown here.</p>",
  ]);
  t.ok(html.includes(`frame ${frame(0)}<`) && !html.includes(`frame ${frame(12)}<`), "in the order of capture");
  t.ok(html.includes("step 13<") && !html.includes("step 14<"), "series too");
});

t.test("frames with defects come first", async (t) => {
  const region = (nth: number) => ({ file: `frame-${frame(nth)}.png`, bbox: [0, 0, 1, 1] });
  const defects = [39, 20].map((nth) => ({ type: "dent", region_2d: region(nth) }));
  const html = await pageOf(t, { frames: 40 }, { defects });
  const shown = [...html.matchAll(/<section class="frame">.*frame ([0-9a-f-]{36})</g)].map(([, frameId]) => frameId);
  t.same(shown, [20, 39, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(frame));
});

t.test("no capture: the page says so, and has no series", async (t) => {
  const html = await pageOf(t, {});
  t.equal(count(html, "<p>This run captured no frame.</p>"), 1);
  t.equal(count(html, "<h2>Series</h2>"), 0);
  t.equal(count(html, "<p>This run has no files.</p>"), 1);
  t.same(html.match(LEFT_OUT), null);
});

t.test("removed captures: words in the place of each picture and plot, and in the list of files", async (t) => {
  const html = await pageOf(t, { frames: 14, series: 13 }, { isRemoved: true });
  t.equal(count(html, "Retention removed the captures of this run."), 1);
  t.equal(count(html, "Height map: removed by retention"), 12);
  t.equal(count(html, "Removed by retention."), 12);
  t.equal(count(html, "<img") + count(html, '<svg class="plot"'), 0);
  const files = count(html.slice(html.indexOf("<h2>Files</h2>")), '<th scope="row">');
  t.ok(files >= 13, `${files} files`);
  t.equal(count(html, ">removed 2026-01-31"), files, "each file");
  t.same(html.match(LEFT_OUT), [
    "<p>2 more frames are not shown here.</p>",
    "<p>1 more series are not shown here.</p>",
  ]);
});
