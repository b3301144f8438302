import t from "tap";
import { npyHeader } from "../../../../core/capture/npy-header.js";
import { sameStepFrame } from "../../../../http/console/frame/compare/same-step.js";
import { problemOf } from "../../../../http/console/frame/heights/frame-problem.js";
import { type Get, openFrame } from "../../../../http/console/frame/heights/frame-source.js";
import { DifferenceField, heightAt } from "../../../../http/console/frame/heights/height-field.js";
import { fit } from "../../../../http/console/frame/map/viewport.js";
import { wantedLines } from "../../../../http/console/frame/map/wanted-lines.js";

const ID = "019b76da-a800-7000-8000-000000000001";
const FRAME = {
  ...{ id: ID, run_id: "019b76da-a800-7000-8000-000000000002", step_index: 1 },
  geometry: {
    ...{ x_pitch_mm: 0.1, y_pitch_mm: 0.1, x_origin_mm: 0, y_origin_mm: 0, luminance: null },
    height: { dtype: "u16", scale_mm: 0.5, offset_mm: 0, invalid: [0] },
  },
};
const NPY = Buffer.concat([npyHeader("u16", 2, 2), Buffer.from(Uint16Array.of(1, 2, 0, 4).buffer)]);
const OVERVIEW = Buffer.concat([npyHeader("f32", 1, 1), Buffer.from(Float32Array.of(0.5).buffer)]);
const refused = (status: number, code: string, isRetryable = false, isDamage = false) =>
  Object.assign(new Error("no"), { status, code, isRetryable, isDamage });
const damaged = refused(500, "internal_error", false, true);

/** A service that answers these paths; any other is 404. Ranges of the NPY are served unless it `ignoresRanges`. */
function service(
  answers: Record<string, object | Error>,
  ignoresRanges = false,
  stride = "2",
): { get: Get; asked: string[] } {
  const asked: string[] = [];
  const get: Get = async (path, { headers }) => {
    const range = new Headers(headers).get("range");
    asked.push(range === null ? path : `${path} ${range}`);
    const answer = answers[path.replace(/\?.*/, "").replace(ID, "ID")] ?? refused(404, "route_not_found");
    if (answer instanceof Error) throw answer;
    if (!Buffer.isBuffer(answer)) return Response.json(answer);
    const [first, last] = (/=(\d+)-(\d+)$/.exec(range ?? "=0-999999")?.slice(1) ?? []).map(Number);
    const body = range === null || ignoresRanges ? answer : answer.subarray(first, (last as number) + 1);
    return new Response(new Uint8Array(body), { status: body === answer ? 200 : 206, headers: { "x-stride": stride } });
  };
  return { get, asked };
}

const open = (get: Get) => openFrame(get, ID, new AbortController().signal);
const FILES = {
  "/sensor/frames/ID": FRAME,
  "/sensor/frames/ID/file.npy": NPY,
  "/sensor/frames/ID/overview.npy": OVERVIEW,
};

t.test("a frame is opened by its overview; lines follow by ranges", async (t) => {
  const { get, asked } = service(FILES);
  const { field } = await open(get);
  t.equal(asked.length, 3);
  t.same(heightAt(field, 1, 1), { zMm: 0.5, isExact: false });
  await field.load(0, 2, new AbortController().signal);
  t.equal(asked[3], `/sensor/frames/${ID}/file.npy bytes=128-135`);
  t.same(heightAt(field, 1, 1), { zMm: 2, isExact: true });
  t.same(heightAt(field, 0, 1), { zMm: Number.NaN, isExact: true });
  const short = await open(service({ ...FILES, "/sensor/frames/ID/file.npy": NPY.subarray(0, -1) }).get);
  const load = short.field.load(0, 2, new AbortController().signal);
  await t.rejects(load, { name: "FrameProblem", message: /broke off/ });
});

t.test("heights far from zero are those of the full lines, also where the overview has every point", async (t) => {
  const far = async (height: object) => {
    const raws = [1, 2, 0, 4];
    const { scale_mm, offset_mm } = { ...FRAME.geometry.height, ...height };
    const overview = Float32Array.from(raws, (raw) => (raw === 0 ? Number.NaN : raw * scale_mm + offset_mm));
    const answers = {
      ...FILES,
      "/sensor/frames/ID": {
        ...FRAME,
        geometry: { ...FRAME.geometry, height: { ...FRAME.geometry.height, ...height } },
      },
      "/sensor/frames/ID/overview.npy": Buffer.concat([npyHeader("f32", 2, 2), Buffer.from(overview.buffer)]),
    };
    const { field } = await open(service(answers, false, "1").get);
    const size = { width: 200, height: 200 };
    const wanted = wantedLines(size, fit(field.grid, size), field);
    return { field, wanted };
  };
  const near = await far({});
  t.equal(near.wanted, undefined);
  t.same(heightAt(near.field, 1, 0), { zMm: 1, isExact: true });
  const { field, wanted } = await far({ scale_mm: 0.01, offset_mm: 1e6 });
  t.same(wanted, { first: 0, end: 2 });
  t.same(heightAt(field, 1, 0), { zMm: Math.fround(1e6 + 0.02), isExact: false });
  await field.load(0, 2, new AbortController().signal);
  t.same(heightAt(field, 1, 0), { zMm: 0.02 + 1e6, isExact: true });
  const difference = new DifferenceField(near.field, (await far({ scale_mm: 0.01, offset_mm: 1e6 })).field);
  t.notOk(heightAt(difference, 1, 0).isExact);
});

t.test("retention that removes an open frame is named", async (t) => {
  const answers: Record<string, object | Error> = { ...FILES };
  const { field } = await open(service(answers).get);
  answers["/sensor/frames/ID/file.npy"] = refused(404, "format_not_available");
  const at = "2026-11-26T07:59:45.277000Z";
  answers[`/runs/${FRAME.run_id}/files`] = [{ frame_id: ID, type: "array", deleted_at: at }];
  const load = field.load(0, 2, new AbortController().signal);
  await t.rejects(load, { name: "FrameProblem", message: /^Retention removed this capture at / });
});

t.test("behind a proxy that knows no ranges, it is opened all the same", async (t) => {
  const { field } = await open(service(FILES, true).get);
  await field.load(0, 2, new AbortController().signal);
  t.same(heightAt(field, 1, 1), { zMm: 2, isExact: true });
});

t.test("why a frame cannot be opened is a sentence", async (t) => {
  const npy = "/sensor/frames/ID/file.npy";
  const overview = "/sensor/frames/ID/overview.npy";
  const removedAt = "2026-11-26T07:59:45.277000Z";
  const files = [{ frame_id: ID, type: "array", deleted_at: removedAt }];
  const cases: [Record<string, object | Error>, RegExp, boolean][] = [
    [{ "/sensor/frames/ID": refused(404, "frame_not_found") }, /no frame with this id/, false],
    [{ ...FILES, [npy]: refused(404, "format_not_available", true) }, /still making the heights/, true],
    [{ ...FILES, [npy]: refused(404, "format_not_available") }, /has no heights: it was not finished/, false],
    [{ ...FILES, [npy]: refused(404, "not_shipped", true) }, /^The hub cannot show the heights: no\.$/, false],
    [{ ...FILES, [npy]: damaged }, /stored data are damaged/, false],
    [{ ...FILES, [npy]: refused(500, "internal_error", true) }, /^The service did not give the heights: no\.$/, true],
    [{ ...FILES, [overview]: refused(404, "format_not_available") }, /has no heights: it was not finished/, false],
    [{ ...FILES, [overview]: damaged }, /stored data are damaged/, false],
    [{ ...FILES, [npy]: Buffer.alloc(600) }, /does not begin as an NPY array does/, false],
    [
      { ...FILES, [npy]: refused(404, "format_not_available"), [`/runs/${FRAME.run_id}/files`]: files },
      /Retention removed this capture at .* \(2026-11-26 07:59:45\.277000 UTC\)/,
      false,
    ],
  ];
  for (const [answers, message, isPassing] of cases) {
    await t.rejects(open(service(answers).get), { name: "FrameProblem", message, isPassing });
  }
  t.match(problemOf(new TypeError("network"), "the heights").message, /^The transfer of the heights broke off/);
});

t.test("the frame to compare with is of the same step, and the same one of its frames", async (t) => {
  const file = (id: string, step: number, deletedAt: string | null = null) => ({
    ...{ type: "array" as const, frame_id: id, step_index: step, deleted_at: deletedAt },
  });
  const here = [file("a2", 3), file("a1", 3), file("a0", 1)];
  const there = [file("b1", 3), file("b0", 1), file("b2", 3, "2026-01-01T00:00:00Z"), file("b3", 4)];
  t.equal(sameStepFrame({ id: "a1", step_index: 3 }, here, there), "b1");
  t.equal(sameStepFrame({ id: "a2", step_index: 3 }, here, there), undefined, "retention removed it");
  t.equal(sameStepFrame({ id: "a0", step_index: 1 }, here, there), "b0");
  t.equal(sameStepFrame({ id: "a0", step_index: 9 }, here, there), undefined);
});
