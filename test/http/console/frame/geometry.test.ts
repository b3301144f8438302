import t from "tap";
import { BOX_EDGES, boxCorners, boxFootprint, distance, turned } from "../../../../core/run/oriented-box.js";
import type { Defect, RunFile } from "../../../../http/console/frame/answers.js";
import { cloudColours } from "../../../../http/console/frame/cloud/cloud-colours.js";
import { pickPoint } from "../../../../http/console/frame/cloud/pick-point.js";
import { type Cloud, drawnPoints, readCloud, removedPoints } from "../../../../http/console/frame/cloud/ply-cloud.js";
import { type FrameGrid, gridDifference, originDifference } from "../../../../http/console/frame/heights/frame-grid.js";
import { clamped, fit, panned, toMap, toScreen, zoomed } from "../../../../http/console/frame/map/viewport.js";
import { diverging, MARKS, viridis } from "../../../../http/console/frame/measure/colour-map.js";
import {
  boxOverPixels,
  defectAt,
  defectBounds,
  footprintInPixels,
  frameDefects,
} from "../../../../http/console/frame/measure/frame-defects.js";

const GRID: FrameGrid = { width: 200, lines: 100, xPitchMm: 0.1, yPitchMm: 0.2, xOriginMm: -10, yOriginMm: 1 };
const rounded = (values: readonly number[]): number[] => values.map((value) => Number(value.toFixed(9)) + 0);

t.test("a box is turned by its quaternion; its footprint is the hull of its corners", async (t) => {
  const half = Math.SQRT1_2;
  t.same(rounded(turned([1, 0, 0], [0, 0, half, half])), [0, 1, 0], "a quarter turn about z");
  t.same(rounded(turned([0, 1, 0], [half, 0, 0, half])), [0, 0, 1], "about x");
  const box = { centre: [5, 6, 7], extents: [4, 2, 1], orientation: [0, 0, half, half] } as const;
  const corners = boxCorners(box);
  t.same(rounded(corners.map(([x]) => x).sort((a, b) => a - b)), [4, 4, 4, 4, 6, 6, 6, 6]);
  t.equal(BOX_EDGES.length, 12);
  const lengths = BOX_EDGES.map(([a, b]) => distance(corners[a] as never, corners[b] as never));
  t.same(rounded(lengths).sort(), [1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]);
  const footprint = boxFootprint(box).map(rounded).sort();
  t.same(footprint, [
    [4, 4],
    [4, 8],
    [6, 4],
    [6, 8],
  ]);
});

t.test("a box on a slant has the corners of its rotation matrix", async (t) => {
  const [x, y, z, w] = [0.1, -0.5, 0.3, Math.sqrt(0.65)] as const;
  const matrix = [
    [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
    [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
    [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
  ];
  const [centre, extents] = [[5, -6, 7] as const, [4, 2, 1] as const];
  const expected = [0, 1, 2, 3, 4, 5, 6, 7].map((corner) => {
    const half = extents.map((extent, axis) => ((corner >> (2 - axis)) & 1 ? extent : -extent) / 2);
    return matrix.map((row, at) =>
      row.reduce((sum, cell, axis) => sum + cell * (half[axis] as number), centre[at] ?? 0),
    );
  });
  const corners = boxCorners({ centre, extents, orientation: [x, y, z, w] });
  t.same(corners.map(rounded), expected.map(rounded));
});

t.test("a turned box has its true shape on a map whose points are twice as far apart in y as in x", async (t) => {
  // 30 degrees about z. Its corners are at +-2 and +-1 along its own axes.
  const [cos, sin] = [Math.sqrt(3) / 2, 0.5];
  const orientation = [0, 0, Math.sin(Math.PI / 12), Math.cos(Math.PI / 12)] as const;
  const pixels = footprintInPixels({ centre: [0, 10, 3], extents: [4, 2, 0.5], orientation }, GRID);
  const expected = [-2, 2].flatMap((a) =>
    [-1, 1].map((b) => [(a * cos - b * sin + 10) / 0.1 + 0.5, (10 + a * sin + b * cos - 1) / 0.2 + 0.5]),
  );
  t.same(pixels.map(rounded).sort(), expected.map(rounded).sort());
});

t.test("what is drawn over a surface stands out from every colour of it", async (t) => {
  const bytes = (packed: number): number[] => [packed & 255, (packed >> 8) & 255, (packed >> 16) & 255];
  const hex = (colour: string): number[] => bytes(Number.parseInt(colour.slice(1), 16)).reverse();
  const greys = Array.from({ length: 256 }, (_, grey) => [grey, grey, grey]);
  const alpha = Number(/\/ (\d+)%/.exec(MARKS.edge)?.[1]) / 100;
  // WCAG 2.2: contrast of a colour to the dark edge that surrounds it. The brightest edge is the worst one.
  const luminance = (colour: number[]): number => {
    const [red = 0, green = 0, blue = 0] = colour.map((byte) =>
      byte <= 10 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const surface = [...[...viridis, ...diverging].map(bytes), ...greys];
  const brightest = Math.max(...surface.map((colour) => luminance(colour.map((byte) => byte * (1 - alpha)))));
  const { line, chosen, cursors, axes } = MARKS;
  const contrast = (colour: string): number => (luminance(hex(colour)) + 0.05) / (brightest + 0.05);
  for (const text of [line, chosen, ...axes]) t.ok(contrast(text) >= 4.5, `${text}: ${contrast(text)}`);
  for (const dot of cursors) t.ok(contrast(dot) >= 3, `${dot}: ${contrast(dot)}`);
});

const FRAME = "019b76da-a800-7000-8000-000000000001";
const OTHER = "019b76da-a800-7000-8000-000000000002";

t.test("defects are drawn where they lie: in the frame whose file they name, and only if they are boxes", async (t) => {
  const files = [{ name: "top.png", frame_id: FRAME }] as RunFile[];
  const solid = { location: [0, 5, 1], extents: [2, 1, 0.5], orientation: [0, 0, 0, 2] };
  const defects: Defect[] = [
    {
      region_2d: { file: `frame-${FRAME}.png`, bbox: [90, 15, 110, 25] },
      region_3d: { file: `frame-${FRAME}.ply`, ...solid },
    },
    { region_2d: { file: `frame-${OTHER}.png`, bbox: [1, 1, 2, 2] } },
    { region_2d: { file: "top.png", bbox: [1, 1, 2, 2] } },
    { region_2d: { bbox: [1, 1, 2, 2] } },
    {
      region_2d: { file: "top.png", bbox: [2, 1, 1, 2] },
      region_3d: { file: "top.png", location: [1], extents: [1, 2, 3] },
    },
    { type: "dust" },
  ];
  const two = frameDefects(defects, FRAME, files, [FRAME, OTHER]);
  t.same(
    two.map(({ box2d, box3d }) => [box2d !== undefined, box3d !== undefined]),
    [
      [true, true],
      [false, false],
      [true, false],
      [false, false],
      [false, false],
      [false, false],
    ],
  );
  t.ok(frameDefects(defects, FRAME, files, [FRAME])[3]?.box2d, "without a file, in a run of one frame");
  t.same(two[0]?.box3d?.orientation, [0, 0, 0, 1], "a unit quaternion");
  const bounds = defectBounds(two[0] as never, GRID);
  t.same(
    rounded(Object.values(bounds ?? {})),
    [90, 15, 110.5, 25],
    "around both boxes: x 1 mm is the middle of column 110",
  );
  t.equal(defectBounds(two[5] as never, GRID), undefined);
});

t.test("a click means the smallest of the defects that lie there", async (t) => {
  const boxes = [
    [0, 0, 200, 100],
    [90, 40, 110, 60],
    [80, 30, 120, 70],
  ];
  const defects = frameDefects(
    boxes.map((bbox) => ({ region_2d: { bbox } })),
    FRAME,
    [],
    [FRAME],
  );
  const places = [
    [100, 50],
    [85, 50],
    [50, 50],
    [250, 50],
  ] as const;
  t.same(
    places.map((place) => defectAt(defects, GRID, place)?.index),
    [1, 2, 0, undefined],
  );
});

t.test("a box in the picture becomes a box in space, as high as the surface in it", async (t) => {
  const overview = {
    zMm: new Float32Array(200 * 100),
    width: 200,
    lines: 100,
    stride: 1,
    firstColumn: 0,
    firstLine: 0,
  };
  overview.zMm[20 * 200 + 95] = 3;
  const box = boxOverPixels({ left: 90, top: 15, right: 110, bottom: 25 }, GRID, overview);
  t.same(rounded([...(box?.centre ?? []), ...(box?.extents ?? [])]), [-0.05, 4.9, 1.5, 2, 2, 3]);
  const huge = boxOverPixels({ left: -1e15, top: -1e15, right: 1e15, bottom: 1e15 }, GRID, overview);
  t.equal(huge?.extents[2], 3, "only the frame is looked at");
});

t.test("a viewport shows millimetres equally long in x and y, and zooms about a place", async (t) => {
  const size = { width: 424, height: 324 };
  const whole = fit(GRID, size);
  t.same([whole.centre, whole.pixelsPerMm], [[100, 50], 15], "300 pixels for 20 mm");
  t.same(toScreen(whole, GRID, size, [0, 0]), [62, 12]);
  t.same(rounded(toMap(whole, GRID, size, [62, 12])), [0, 0]);
  const at = [100, 200] as const;
  const closer = zoomed(whole, GRID, size, 3, at);
  t.same(rounded(toMap(closer, GRID, size, at)), rounded(toMap(whole, GRID, size, at)));
  t.equal(closer.pixelsPerMm, 45);
  t.equal(zoomed(whole, GRID, size, 1e9, at).pixelsPerMm, 640, "64 pixels a point at most");
  t.same(panned(whole, GRID, size, 15, -30).centre, [90, 60]);
  t.same(panned(whole, GRID, size, 1e6, 0).centre, [0, 50], "the frame stays in sight");
  t.same(clamped({ centre: [-1e300, 1e300], pixelsPerMm: 1e-110 }, GRID, size), {
    ...{ centre: [0, 100], pixelsPerMm: 8.1 },
  });
});

t.test("grids that differ are told in a sentence", async (t) => {
  t.equal(gridDifference(GRID, { ...GRID, xOriginMm: 0, xPitchMm: 0.1 + 1e-9 }), undefined);
  t.equal(
    gridDifference(GRID, { ...GRID, lines: 90, yPitchMm: 0.21 }),
    "No difference can be shown: this frame has 100 lines, the other 90; the pitch in y is 0.2 mm here and 0.21 mm there.",
  );
  t.equal(originDifference(GRID, GRID), undefined);
  t.match(originDifference(GRID, { ...GRID, xOriginMm: -9 }), /differ by 1, 0 mm/);
});

function ply(points: readonly (readonly [number, number, number, number])[]): Buffer {
  const body = Buffer.alloc(13 * points.length);
  for (const [at, [x, y, z, intensity]] of points.entries()) {
    for (const [axis, value] of [x, y, z].entries()) body.writeFloatLE(value, 13 * at + 4 * axis);
    body.writeUInt8(intensity, 13 * at + 12);
  }
  const header = [
    ...["ply", "format binary_little_endian 1.0", "comment x", `element vertex ${points.length}`],
    ...["x", "y", "z"].map((axis) => `property float ${axis}`),
    ...["property uchar intensity", "end_header\n"],
  ];
  return Buffer.concat([Buffer.from(header.join("\n")), body]);
}

t.test("a cloud is read, and what the filter removed is what the filtered one lacks", async (t) => {
  const points = [
    [0, 0, 1, 9],
    [1, 0, 2, 8],
    [2, 0, 9, 7],
    [3, 0, 1, 6],
  ] as const;
  const raw = readCloud(ply(points));
  t.same([...raw.positions.slice(0, 6), ...(raw.intensity ?? [])], [0, 0, 1, 1, 0, 2, 9, 8, 7, 6]);
  t.same([...removedPoints(raw, readCloud(ply([points[0], points[1], points[3]])))], [0, 0, 1, 0]);
  t.throws(() => removedPoints(raw, readCloud(ply([[5, 5, 5, 5]]))), /not a part/);
  t.throws(() => readCloud(ply(points).subarray(0, -1)), /has 51 bytes of vertices, not 52/);
  t.same([...drawnPoints(4, 2, Uint8Array.of(0, 1, 0, 0))], [0, 1, 2]);
  t.same([...drawnPoints(3, 3)], [0, 1, 2]);
});

t.test("the point under the pointer: the front one of those near, else the nearest", async (t) => {
  // Clip space is the space of the points: x and y from -1 to 1 across 200 x 100 pixels, z is the depth.
  const matrix = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
  const place = { matrix, width: 200, height: 100 };
  const positions = Float32Array.of(0, 0, 0.5, 0.01, 0, 0.2, 0.5, 0.5, 0, 0, 0, -3);
  t.equal(pickPoint(positions, { ...place, x: 100, y: 50 }), 1, "the front one");
  t.equal(pickPoint(positions, { ...place, x: 157, y: 25 }), 2);
  t.equal(pickPoint(positions, { ...place, x: 20, y: 90 }), -1);
});

t.test("points are coloured by height, by luminance, or by whether the filter removed them", async (t) => {
  const cloud = {
    ...{ count: 3, positions: Float32Array.of(0, 0, 1, 0, 0, 2, 0, 0, 3), intensity: Uint8Array.of(10, 20, 30) },
  };
  const [removed, range] = [Uint8Array.of(0, 1, 0), { low: 1, high: 3 }];
  const colours = (colour: "height" | "luminance" | "removed", places: number[], of: Cloud = cloud) =>
    cloudColours(of, Uint32Array.from(places), { colour, range, removed });
  t.same([...colours("height", [0, 2])], [68, 1, 84, 253, 231, 37], "the ends of viridis");
  t.same([...colours("luminance", [2, 0])], [30, 30, 30, 10, 10, 10]);
  t.same([...colours("luminance", [0], { ...cloud, intensity: undefined })], [200, 200, 200], "one grey without it");
  t.same([...colours("removed", [1, 0])], [255, 96, 64, 112, 124, 134]);
});
