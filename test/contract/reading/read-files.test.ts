import t from "tap";
import {
  ACTIVE_RUN,
  at,
  BASE,
  BATCHES,
  CANCELLED_RUN,
  FILES,
  FRAME,
  filled,
  NPY_BODY,
  NPY_BYTES,
  ODD_NAME,
  OPEN_FRAME,
  REMOVED_FRAME,
  REMOVED_RUN,
  REPORT_BYTES,
  RUN,
  UNKNOWN,
} from "../../helpers/http/filled-cell.js";
import { listOf } from "../../helpers/list-of.js";

t.test("GET /runs/{run_id}/files: the manifest, removed entries among it", async (t) => {
  const { client } = await filled(t);
  t.strictSame(await client.get("/runs/{run_id}/files", { path: { run_id: RUN } }), FILES);
  t.match(
    await client.get("/runs/{run_id}/files", { path: { run_id: REMOVED_RUN } }),
    listOf({ name: `frame-${REMOVED_FRAME}.npy`, created_at: at(44), updated_at: at(46), deleted_at: at(46) }),
  );
  t.strictSame(await client.get("/runs/{run_id}/files", { path: { run_id: CANCELLED_RUN } }), []);
  t.strictSame(await client.get("/runs/{run_id}/files", { path: { run_id: ACTIVE_RUN } }), []);
});

t.test("GET /runs/{run_id}/files/{name}: the bytes under each href, and nothing else", async (t) => {
  const { client, cell } = await filled(t);
  const expected = [undefined, REPORT_BYTES, Buffer.alloc(0)];
  for (const [at, bytes] of expected.entries()) {
    const file = FILES[at] as (typeof FILES)[number];
    const response = await client.raw("GET", file.href.slice(BASE.length));
    t.equal(response.status, 200);
    t.equal(response.headers["content-type"], "application/octet-stream");
    t.equal(response.headers["content-length"], String(file.size_in_bytes));
    t.match(response.headers["content-disposition"], /^attachment; filename="/);
    if (bytes !== undefined) t.ok(response.body.equals(bytes), file.name);
  }
  t.equal(
    (await client.raw("GET", `/runs/${RUN}/files/${encodeURIComponent(ODD_NAME)}`)).headers["content-disposition"],
    "attachment; filename=\"Messprotokoll 100_ (_).pdf\"; filename*=UTF-8''Messprotokoll%20100%25%20%28%C3%A9%29.pdf",
  );
  const names = [
    "x",
    "..",
    "%2e%2e",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "empty.txt%00",
    "empty.txt%20",
    "EMPTY.TXT",
    "%zz",
    "%C0%AE",
    `frame-${FRAME}.ply`,
    `frame-${REMOVED_FRAME}.npy`,
    "__proto__",
  ];
  for (const name of names) {
    t.match((await client.rawRefusal(`/runs/${RUN}/files/${name}`, 404, "file_not_found")).params, {
      field: "name",
      in: "path",
    });
  }
  const gone = await client.rawRefusal(`/runs/${REMOVED_RUN}/files/frame-${REMOVED_FRAME}.npy`, 410, "file_removed");
  t.match(gone.params, { value: `frame-${REMOVED_FRAME}.npy` });
  const damaged = await client.rawRefusal(`/runs/${RUN}/files/damaged.bin`, 500, "internal_error");
  t.match(damaged.params, { cause: "capture_damaged" }, "bytes that are not what was stored are never sent");
  t.equal(damaged.retryable, false, "they do not heal");
  t.equal(cell.openFiles, 0, "every file is closed again");
});

t.test("GET /sensor/frames/{frame_id}: every field", async (t) => {
  const { client } = await filled(t);
  t.strictSame(await client.get("/sensor/frames/{frame_id}", { path: { frame_id: FRAME } }), {
    id: FRAME,
    session_id: "session-1",
    sequence_number: 1,
    frame_type: "heightmap",
    file_path: `/sensor/frames/${FRAME}/file.npy`,
    file_size_bytes: NPY_BYTES,
    width: 5,
    height: 60_004,
    joint_positions: [0, 1.5, -2],
    tcp_position: { x: 1 },
    capture_timestamp: "2026-01-31T12:00:11.123456Z",
    metadata: { gain: 2 },
    created_at: at(11),
    run_id: RUN,
    step_index: 2,
    sensor_id: "ljx",
    geometry: {
      ...{ x_pitch_mm: 0.1, y_pitch_mm: 0.2, x_origin_mm: 0, y_origin_mm: 0 },
      height: { dtype: "u16", scale_mm: 0.01, offset_mm: -5, invalid: [0] },
      luminance: { dtype: "u8", bits: 8 },
    },
  });
  t.match(await client.get("/sensor/frames/{frame_id}", { path: { frame_id: OPEN_FRAME } }), {
    file_size_bytes: null,
    height: null,
    joint_positions: null,
    tcp_position: null,
    metadata: null,
  });
  for (const frame of [UNKNOWN, "x", "%zz", RUN]) {
    for (const path of ["", "/files", "/file.npy"])
      await client.rawRefusal(`/sensor/frames/${frame}${path}`, 404, "frame_not_found");
  }
});

t.test("GET /sensor/frames/{frame_id}/files and file.npy", async (t) => {
  const { client, cell } = await filled(t);
  t.strictSame(await client.get("/sensor/frames/{frame_id}/files", { path: { frame_id: FRAME } }), {
    frame_id: FRAME,
    session_id: "session-1",
    available_formats: ["npy"],
    files: {
      npy: {
        href: `${BASE}/sensor/frames/${FRAME}/file.npy`,
        content_type: "application/octet-stream",
        size_in_bytes: NPY_BYTES,
      },
    },
  });
  const npy = await client.raw("GET", `/sensor/frames/${FRAME}/file.npy`);
  t.equal(npy.headers["content-type"], "application/octet-stream");
  t.equal(npy.headers["content-disposition"], `attachment; filename="frame-${FRAME}.npy"`);
  t.equal(
    npy.body.subarray(0, 128).toString("latin1"),
    `${`\x93NUMPY\x01\0\x76\0{'descr': '<u2', 'fortran_order': False, 'shape': (60004, 5), }`.padEnd(127)}\n`,
  );
  t.ok(npy.body.subarray(128).equals(NPY_BODY), "height rows only, in order, untouched");
  t.ok(
    npy.body.equals((await client.raw("GET", `/runs/${RUN}/files/frame-${FRAME}.npy`)).body),
    "the manifest's file is the same",
  );
  const captures = cell.files.get(`${RUN}/capture`) as Uint8Array;
  // The last height row but one; the batch that it lies in begins with the first bytes that are read.
  const at = 64 + (BATCHES[0]?.stored.length ?? 0) + 8 + (BATCHES[1]?.stored.length ?? 0) + 8 + 59_998 * 10;
  captures[at] = (captures[at] ?? 0) ^ 1;
  const damaged = await client.refusal("get", "/sensor/frames/{frame_id}/file.npy", 500, "internal_error", {
    path: { frame_id: FRAME },
  });
  t.match(damaged.params, { cause: "capture_damaged" }, "nothing of a damaged batch is sent");
  captures[at] = (captures[at] ?? 0) ^ 1;
  t.equal((await client.raw("GET", `/sensor/frames/${FRAME}/file.npy`)).body.length, NPY_BYTES);
  for (const frame of [OPEN_FRAME, REMOVED_FRAME]) {
    const listed = await client.get("/sensor/frames/{frame_id}/files", { path: { frame_id: frame } });
    t.strictSame([listed.available_formats, listed.files], [[], {}]);
    const { params, retryable } = await client.refusal(
      "get",
      "/sensor/frames/{frame_id}/file.npy",
      404,
      "format_not_available",
      { path: { frame_id: frame } },
    );
    t.strictSame(params, { frame_id: frame, format: "npy", available_formats: [] });
    t.equal(retryable, frame === OPEN_FRAME, "what was removed does not come back");
  }
  await client.rawRefusal(`/sensor/frames/${FRAME}/file.stl`, 404, "format_not_available");
  await client.rawRefusal(`/sensor/frames/${FRAME}/stl`, 404, "route_not_found");
  t.equal(cell.openFiles, 0);
});
