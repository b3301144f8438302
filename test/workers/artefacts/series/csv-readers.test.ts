import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import t from "tap";
import { itemBytes, type SeriesDtype } from "../../../../core/capture/capture.js";
import { createRandom } from "../../../../core/random.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { csvHeader } from "../../../../workers/artefacts/series/csv-encoder.js";
import { indexSeries, writeRowBlock } from "../../../../workers/artefacts/series/series-source.js";
import { append, rowsOf, START_US } from "../../../helpers/captures/csv-rows.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";
import { hasSharedData } from "../../../helpers/shared-data.js";

/** What a CSV is to hold: the raw values, or the columns of the file that they came from. */
interface ReadSeries {
  name: string;
  dtype: SeriesDtype;
  scale: number;
  channels: number;
  /** Undefined for made ones. */
  source?: { file: string; separator: string; unitRows: number; columns: string[] };
}

const pandas = pythonWith("pandas", "numpy");
const PANDAS = `
import sys, json, numpy, pandas
TYPES = {"f32": "<f4", "f64": "<f8", "i32": "<i4"}
for one in json.loads(sys.argv[1]):
    name, dtype, channels = one["name"], TYPES[one["dtype"]], one["channels"]
    raw = numpy.fromfile(name + ".raw", dtype=dtype).reshape(-1, channels)
    frame = pandas.read_csv(name, float_precision="round_trip")
    names = [f"channel_{n + 1}" for n in range(channels)]
    assert list(frame.columns) == ["timestamp"] + names, frame.columns
    times = pandas.to_datetime(frame["timestamp"])
    values = frame[names].to_numpy()
    if "source" in one:
        said = one["source"]
        rows = pandas.read_csv(said["file"], sep=said["separator"], skiprows=range(1, 1 + said["unitRows"]), float_precision="round_trip")
        expected = rows[said["columns"]].to_numpy(dtype="f8")
        same = numpy.array_equal(values.astype("<f4"), expected.astype("<f4"), equal_nan=True) if dtype == "<f4" else numpy.array_equal(values, expected, equal_nan=True)
    elif dtype == "<f4":
        same = numpy.array_equal(values.astype("<f4"), raw, equal_nan=True)
    elif dtype == "<i4":
        same = numpy.array_equal(numpy.rint(values / one["scale"]).astype("<i4"), raw)
    else:
        same = numpy.array_equal(values, raw, equal_nan=True)
    text = numpy.genfromtxt(name, delimiter=",", skip_header=1, usecols=range(1, channels + 1), ndmin=2)
    same_text = numpy.array_equal(text.reshape(values.shape), values, equal_nan=True)
    print(name, bool(same and same_text and len(frame) == len(raw) and times.is_monotonic_increasing), len(frame))
`;

const SERIES = "../shared/data/series";
/** Invalid values of integers. */
const CODE = -2_147_483_648;

/** Columns of a real series; NaN where a cell is empty. */
function realColumns({ file, separator, unitRows, columns }: NonNullable<ReadSeries["source"]>): number[] {
  const [head = "", ...rows] = readFileSync(file, "utf8").trimEnd().split(/\r?\n/);
  const places = columns.map((column) => head.split(separator).indexOf(column));
  if (places.includes(-1)) throw new Error(`${file} has ${head}`);
  return rows.slice(unitRows).flatMap((row) => {
    const cells = row.split(separator);
    return places.map((place) => (cells[place] === "" ? Number.NaN : Number(cells[place])));
  });
}

t.test("numpy and pandas read the same numbers, of every real series too", async (t) => {
  const folder = t.testdir();
  const random = createRandom(4);
  const made: ReadSeries[] = [];
  const put = async (one: Omit<ReadSeries, "name">, values: number[]): Promise<void> => {
    const name = join(folder, `${made.length}.csv`);
    const { csv, totalBytes, reference } = await writeCsv(name, one, values);
    t.ok(csv.equals(reference), `${one.dtype} ${one.source?.file}: as the reference writes it`);
    t.equal(csv.length, totalBytes);
    writeFileSync(name, csv);
    made.push({ name, ...one });
  };
  const normal = Array.from({ length: 8 * 5000 }, () => (random.chance(0.01) ? Number.NaN : random.normal() * 100));
  await put({ dtype: "f32", scale: 1, channels: 8 }, normal);
  await put({ dtype: "f64", scale: 1, channels: 8 }, normal);
  const whole = normal.map(() => random.integer(-9_000_000, 9_000_000));
  await put({ dtype: "i32", scale: 1e-4, channels: 8 }, whole);
  const numbered = (prefix: string, suffix: string, of: readonly number[]) => of.map((n) => `${prefix}${n}${suffix}`);
  const real: [file: string, columns: string[], dtypes: SeriesDtype[], separator?: string, unitRows?: number][] = [
    ["confocal_chip_8tracks.csv", numbered("OUT", "_um", [1, 2, 3, 4, 5, 6, 7, 8]), ["f32", "f64", "i32"]],
    ["confocal_chip_lines.csv", ["t_s", "x_mm", "y_mm", "distance_um"], ["f32", "f64", "i32"]],
    ["confocal_chip_lines.csv", ["line", "sample", "intensity", "valid"], ["f32", "f64", "i32"]],
    ["ldv_10MHz_9runs.csv", numbered("V", "", [10, 25, 50, 75, 100, 125, 150, 175, 200]), ["f32", "f64"]],
    ["profile_trace_with_valid_flag.csv", ["X", "Y"], ["f32", "f64", "i32"], ";", 1],
  ];
  const isThere = hasSharedData(t, SERIES);
  const read = new Set<string>();
  for (const [name, columns, dtypes, separator = ",", unitRows = 0] of isThere ? real : []) {
    const source = { file: join(SERIES, name), separator, unitRows, columns };
    const values = realColumns(source);
    read.add(name);
    for (const dtype of dtypes) {
      // Integers with a decimal scale give back every digit of the source: no file has more than six after the point.
      const raw = values.map((value) => (Number.isNaN(value) ? CODE : Math.round(value * 1e6)));
      const channels = columns.length;
      if (dtype !== "i32") await put({ dtype, scale: 1, channels, source }, values);
      else await put({ dtype, scale: 1e-6, channels, source }, raw);
    }
  }
  if (isThere) {
    const all = readdirSync(SERIES).filter((name) => name.endsWith(".csv"));
    t.same([...read].sort(), all.sort(), "every real series that there is");
  }
  t.test("numpy and pandas", { skip: skipWithout(pandas, "pandas") }, async (t) => {
    const answers = runPython(pandas as string, PANDAS, JSON.stringify(made))
      .trim()
      .split("\n");
    t.equal(answers.length, made.length);
    t.same(
      answers.filter((answer) => !answer.includes("True")),
      [],
    );
    t.comment(`${made.length} series, of ${read.size} real files, read to the same numbers by numpy and pandas`);
  });
});

/** The CSV that the tasks make of it, stored as two appends, and what the reference makes. */
async function writeCsv(name: string, one: Omit<ReadSeries, "name">, values: number[]) {
  const { dtype, channels, scale } = one;
  const typed = { f32: Float32Array, f64: Float64Array, i32: Int32Array }[dtype].from(values);
  const bytes = new Uint8Array(typed.buffer);
  writeFileSync(`${name}.raw`, bytes);
  const rows = values.length / channels;
  const what = append(dtype, { valueScale: scale === 1 ? null : scale, samplePeriodUs: 250, invalid: [CODE] });
  const appends = [
    [0, Math.floor(rows / 3)],
    [Math.floor(rows / 3), rows],
  ].map(([first = 0, end = 0]) => {
    const [offset, to] = [first, end].map((row) => row * channels * itemBytes(dtype)) as [number, number];
    const extent = { offset, lengthBytes: to - offset, crc32: crc32(bytes.subarray(offset, to)) };
    return { ...what, ...extent, rows: end - first, firstTimestampUs: START_US + 250 * first };
  });
  const source = { path: `${name}.raw`, channels, appends };
  const { offsets, totalBytes } = await indexSeries(nodeFileSystem, source);
  const parts = [csvHeader(channels)];
  for (let nth = 0; nth < offsets.length - 1; nth++) {
    parts.push(await writeRowBlock(nodeFileSystem, source, nth));
  }
  const csv = Buffer.concat(parts);
  const reference = Buffer.from(csvHeader(channels)).toString() + rowsOf(what, channels, values);
  return { csv, totalBytes, reference: Buffer.from(reference) };
}
