import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import t, { type Test } from "tap";
import { createRandom } from "../../../../core/random.js";
import type { QualityCheck } from "../../../../core/run/quality.js";
import { formatTimeUs } from "../../../../core/timestamps.js";
import { nodeFileSystem } from "../../../../storage/disk/file-system.js";
import { FindingsReader } from "../../../../storage/findings/segment-findings.js";
import {
  type ChecksFormat,
  EXPORT_BEGINS,
  type ExportPlace,
  exportPiece,
} from "../../../../workers/artefacts/findings/checks-export.js";
import { programStatistics } from "../../../../workers/artefacts/findings/program-statistics.js";
import { pythonWith, runPython, skipWithout } from "../../../helpers/captures/python-checker.js";
import { readAqdef } from "../../../helpers/statistics/aqdef-reader.js";
import { exportPieces, exportStart } from "../../../helpers/statistics/made-exports.js";
import { MEASURED_PROGRAM, MeasuredStore, type StoredMeasuredRun } from "../../../helpers/statistics/measured-store.js";
import { differenceOf, matchingRunsOf } from "../../../helpers/statistics/statistics-model.js";

const pandas = pythonWith("pandas", "numpy");

async function textOf(store: MeasuredStore, format: ChecksFormat, query = store.query()): Promise<string> {
  return Buffer.concat(await exportPieces(new FindingsReader(nodeFileSystem), format, query)).toString();
}

/** The rows that an export should have. */
function rowsOf(store: MeasuredStore) {
  const completed = matchingRunsOf(store.runs, { programId: MEASURED_PROGRAM }).filter(
    ({ status }) => status === "completed",
  );
  return completed.flatMap((run) => run.checks.map((check) => rowOf(run, check)));
}

function rowOf(run: StoredMeasuredRun, check: QualityCheck) {
  const { name, status, value = null, nominal = null, delta = null, threshold = null, message = null } = check;
  return {
    ...{ run_id: run.id, serial_number: run.serialNumber, revision: run.revision },
    ...{ completed_at: formatTimeUs(run.completedAtUs), name, status, value, nominal, delta, threshold },
    ...{ units: check.canonical_units ?? "mm", message },
  };
}

async function filledStore(t: Test, seed: number): Promise<MeasuredStore> {
  const store = await MeasuredStore.createFor(t);
  await store.fill(createRandom(seed), 200);
  return store;
}

t.test("NDJSON read line by line while it comes has every check, in order", async (t) => {
  const store = await filledStore(t, 21);
  const rows: unknown[] = [];
  const lines = createInterface({
    input: Readable.from(
      await exportPieces(new FindingsReader(nodeFileSystem), "ndjson", store.query(), { mostBytes: 5_000 }),
    ),
  });
  for await (const line of lines) rows.push(JSON.parse(line));
  t.strictSame(rows, rowsOf(store));
});

t.test("pieces of any size make the same text", async (t) => {
  const store = await filledStore(t, 22);
  for (const format of ["csv", "ndjson", "dfq"] as const) {
    const whole = await textOf(store, format);
    for (const most of [0, 1, 300, 40_000]) {
      const pieces = await exportPieces(new FindingsReader(nodeFileSystem), format, store.query(), { mostBytes: most });
      t.equal(Buffer.concat(pieces).toString(), whole, `${format}, pieces of ${most}`);
      t.ok(most > 300 || pieces.length > 50, `${pieces.length} pieces`);
    }
  }
});

t.test("a piece ends with its segment when its time is over, also where nothing matches", async (t) => {
  const store = await filledStore(t, 28);
  const segments = readdirSync(`${store.directory}/meta`).length;
  t.ok(segments > 4, `${segments} segments`);
  const none = await exportPieces(
    new FindingsReader(nodeFileSystem),
    "ndjson",
    store.query({ serialNumber: "nobody" }),
    { mostMs: 0 },
  );
  t.equal(none.length, segments + 2, "the head, a piece for each segment, and the end");
  t.equal(Buffer.concat(none).length, 0);
  for (const format of ["csv", "ndjson", "dfq"] as const) {
    const pieces = await exportPieces(new FindingsReader(nodeFileSystem), format, store.query(), { mostMs: 0 });
    t.equal(Buffer.concat(pieces).toString(), await textOf(store, format), format);
  }
});

t.test("AQDEF exports of different checks whose pieces take turns keep their numbers", async (t) => {
  const store = await filledStore(t, 29);
  const reader = new FindingsReader(nodeFileSystem);
  const names = [...new Set(rowsOf(store).map(({ name }) => name))].slice(0, 2);
  const queries = [store.query(), ...names.map((check) => store.query({ check }))];
  const exports = await Promise.all(
    queries.map(async (query) => {
      const { namesJson } = await exportStart(reader, "dfq", query);
      return { query, namesJson, from: EXPORT_BEGINS as ExportPlace | null, text: "" };
    }),
  );
  while (exports.some(({ from }) => from !== null)) {
    for (const one of exports) {
      const { query, namesJson, from } = one;
      if (from === null) continue;
      const task = { query, namesJson, from, format: "dfq" as const };
      const { bytes, next } = await exportPiece(reader, task, { mostBytes: 2_000 });
      one.text += Buffer.from(bytes).toString();
      one.from = next;
    }
  }
  for (const { query, text } of exports) t.ok((await textOf(store, "dfq", query)).endsWith(text) && text !== "");
});

t.test("a run with 10,000 checks is cut into pieces", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const checks = Array.from({ length: 10_000 }, (_, at) => ({
    name: `check ${at}`,
    status: "passed" as const,
    value: at,
  }));
  await store.add({ checks });
  const pieces = await exportPieces(new FindingsReader(nodeFileSystem), "csv", store.query());
  t.ok(pieces.length > 2 && pieces.every(({ length }) => length < 1_000_000), `${pieces.length} pieces`);
  t.equal(Buffer.concat(pieces).toString().split("\n").length, 10_002);
});

t.test("exports know the same filters as statistics", async (t) => {
  const store = await filledStore(t, 23);
  const rows = rowsOf(store);
  const { serial_number: serialNumber, name: check } = rows.find(
    (row) => row.serial_number !== null && row.value !== null,
  )!;
  const read = (text: string) =>
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as unknown);
  t.strictSame(
    read(await textOf(store, "ndjson", store.query({ serialNumber }))),
    rows.filter((row) => row.serial_number === serialNumber),
  );
  t.strictSame(
    read(await textOf(store, "ndjson", store.query({ check }))),
    rows.filter((row) => row.name === check),
  );
  t.equal(
    await textOf(store, "csv", store.query({ check: "none" })),
    `${(await textOf(store, "csv")).split("\n")[0]}\n`,
  );
  const dfq = readAqdef(await textOf(store, "dfq", store.query({ check })));
  t.same(
    dfq.characteristics.map(({ fields }) => fields.description),
    [check],
  );
});

t.test("CSV keeps texts as they are, and formulas as text", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const names = [
    "=1+1",
    "+SUM(A1)",
    "-2+3",
    "@x",
    "\tx",
    "\rx",
    "-12",
    "+1.5e3",
    "-.5",
    "- 1",
    "a=1",
    'say "x", y\nz',
    "ä",
    "a\0b",
    "",
  ];
  const written = ["'=1+1", "'+SUM(A1)", "'-2+3", "'@x", "'\tx", '"\'\rx"', "-12", "+1.5e3", "-.5", "'- 1", "a=1"];
  written.push('"say ""x"", y\nz"', "ä", "a\uFFFDb", "");
  await store.add({
    serialNumber: "=HYPERLINK(1)",
    checks: names.map((name) => ({ name, status: "passed" as const, value: -1.5, message: name })),
  });
  const text = await textOf(store, "csv");
  const { id, completedAtUs } = store.runs[0]!;
  const expected = written.map(
    (cell) => `${id},'=HYPERLINK(1),1,${formatTimeUs(completedAtUs)},${cell},passed,-1.5,,,,mm,${cell}\n`,
  );
  t.equal(text.slice(text.indexOf("\n") + 1), expected.join(""));
});

t.test("AQDEF: characteristics with limits, and each value with attribute, time and part", async (t) => {
  const store = await filledStore(t, 24);
  const file = readAqdef(await textOf(store, "dfq"));
  const rows = rowsOf(store).filter(({ value }) => value !== null);
  const names = [...new Set(rows.map(({ name }) => name))].sort();
  const number = MEASURED_PROGRAM.slice(0, 30);
  t.same(file.part, { number, description: "Cover  2", remark: MEASURED_PROGRAM });
  t.same(
    file.characteristics.map(({ fields }) => fields.description),
    names,
  );
  for (const [at, { fields, values }] of file.characteristics.entries()) {
    const own = rows.filter(({ name }) => name === names[at]);
    const limited = own.findLast(({ threshold }) => threshold !== null)!;
    const [nominal, threshold] = [limited.nominal, limited.threshold as number];
    t.strictSame(fields, {
      ...{ number: String(at + 1), description: names[at] },
      ...(nominal !== null && { nominal }),
      lowerLimit: nominal === null ? threshold : nominal - threshold,
      ...(nominal !== null && { upperLimit: nominal + threshold }),
      ...(own.at(-1)?.units === "mm" && { unit: "mm" }),
    });
    t.strictSame(
      values,
      own.map(({ value, status, completed_at: time, serial_number: serial }) => ({
        value,
        attribute: status === "error" || status === "not_evaluated" ? "invalid" : "valid",
        time: Math.floor(Date.parse(time) / 1000) * 1000,
        ...(serial !== null && { partIdentification: serial }),
      })),
    );
  }
});

t.test("the reader of AQDEF reads both forms of values alike, and refuses what the format does not have", async (t) => {
  const head = ["K0100 2", "K1001/1 4711", "K2001/1 1", "K2002/1 Bore", "K2001/2 2", "K2101/2 1.5"];
  const read = (...lines: string[]) => readAqdef([...head, ...lines, ""].join("\r\n"));
  const withKeys = read(
    ...["K0001/1 1.25", "K0002/1 0", "K0004/1 29.02.2024/23:59:58", "K0001/2 -3E-2", "K0002/2 129"],
    ...["K0004/2 29.02.2024/23:59:58", "K0001/1 2", "K0002/1 255", "K0001/2 4", "K0006/2 #17"],
  );
  const withoutKeys = read(
    "1.25\u00140\u001429.02.2024/23:59:58\u000f-0.03\u0014129\u001429.02.2024/23:59:58",
    "2\u0014255\u000f4\u0014\u0014\u0014\u0014#17",
  );
  t.same(withKeys, withoutKeys);
  const time = Date.UTC(2024, 1, 29, 23, 59, 58);
  t.same(withKeys.characteristics[1], {
    fields: { number: "2", nominal: 1.5 },
    values: [
      { value: -0.03, attribute: "invalid", time },
      { value: 4, batch: "#17" },
    ],
  });
  for (const line of [
    ...["K0003/1 1", "K0001/3 1", "K0001/1 1,5", "K0001/1 NaN", "K0001/1 ", "K0002/1 7", "K0001", "K2002/1 Bore"],
    ...["K0004/1 2024-02-29T23:59:58Z", "K0004/1 30.02.2024/00:00:00", `K1001/1 ${"4".repeat(31)}`, "1\u000f2\u000f3"],
  ])
    t.throws(() => read(line), /line 7/, line);
  t.throws(() => readAqdef("K1001/1 1\r\n"), /count/);
  t.throws(() => readAqdef("K0100 0"), /no end/);
});

const PANDAS = `
import sys, json, numpy, pandas
table = pandas.read_csv(sys.argv[1], dtype={"serial_number": str, "name": str, "message": str, "run_id": str},
                        float_precision="round_trip", keep_default_na=False, na_values={c: [""] for c in
                        ["serial_number", "value", "nominal", "delta", "threshold", "message"]})
def number(x):
    return None if x is None or not numpy.isfinite(x) else float(x)
checks = []
for name, rows in table.groupby("name", sort=False):
    measured = rows[rows.value.notna()]
    v = measured.value
    n = len(v)
    limited = measured[measured.threshold.notna()]
    nominal = limited.nominal.iloc[-1]
    low = nominal - limited.threshold.iloc[-1] if numpy.isfinite(nominal) else limited.threshold.iloc[-1]
    high = nominal + limited.threshold.iloc[-1]
    m, s, short = v.mean(), v.std(ddof=1), v.diff().abs().mean() / 1.128
    q1, q3 = numpy.percentile(v, [25, 75])
    bins = int(min(50, max(5, numpy.ceil((v.max() - v.min()) / (2 * (q3 - q1) / n ** (1 / 3))))))
    counts, edges = numpy.histogram(v, bins=bins)
    centred = lambda d: numpy.nanmin([(high - m) / (3 * d), (m - low) / (3 * d)])
    size = 1
    while n > 200 * size: size *= 2
    parts = [measured.iloc[at:at + size] for at in range(0, n, size)]
    trend = [{"from": p.completed_at.iloc[0], "to": p.completed_at.iloc[-1], "count": len(p), "mean": number(p.value.mean()),
        "minimum": number(p.value.min()), "maximum": number(p.value.max()), "failed": int((p.status == "failed").sum())} for p in parts]
    statuses = {s: int((rows.status == s).sum()) for s in ["passed", "failed", "warning", "not_evaluated", "error"]}
    changed = len(measured[["nominal", "threshold"]].drop_duplicates()) > 1
    checks.append(dict(**statuses, name=name, count=len(rows), values=n, canonical_units=rows.units.iloc[-1], trend=trend,
        nominal=number(nominal), limits_changed=changed,
        mean=number(m), standard_deviation=number(s), minimum=number(v.min()), maximum=number(v.max()), median=number(v.median()),
        lower_limit=number(low), upper_limit=number(high), cp=number((high - low) / (6 * short)) if numpy.isfinite(high) else None,
        cpk=number(centred(short)), pp=number((high - low) / (6 * s)) if numpy.isfinite(high) else None, ppk=number(centred(s)),
        histogram=dict(edges=[float(e) for e in edges], counts=[int(c) for c in counts])))
print(json.dumps(dict(rows=len(table), texts=sorted(set(table.message.dropna())), serials=int(table.serial_number.notna().sum()), checks=checks)))
`;

t.test(
  "pandas reads the CSV, and numpy and pandas compute the same figures",
  { skip: skipWithout(pandas, "pandas") },
  async (t) => {
    for (const seed of [25, 26, 27]) {
      const store = await filledStore(t, seed);
      const file = join(t.testdir(), "checks.csv");
      writeFileSync(file, await textOf(store, "csv"));
      const found = JSON.parse(runPython(pandas as string, PANDAS, file)) as Record<string, unknown> & {
        checks: { name: string }[];
      };
      const rows = rowsOf(store);
      t.equal(found.rows, rows.length, "every row");
      t.equal(found.serials, rows.filter(({ serial_number }) => serial_number !== null).length);
      t.same(found.texts, [...new Set(rows.flatMap(({ message }) => message ?? []))].sort());
      const answer = await programStatistics(new FindingsReader(nodeFileSystem), store.query());
      const { checks } = JSON.parse(Buffer.from(answer.json as Uint8Array).toString()) as {
        checks: Record<string, unknown>[];
      };
      t.equal(checks.length, found.checks.length);
      for (const expected of found.checks) {
        const own = checks.find(({ name }) => name === expected.name)!;
        const same = Object.fromEntries(Object.keys(expected).map((key) => [key, own[key]]));
        t.equal(differenceOf(same, expected), undefined, `seed ${seed}, ${expected.name}`);
        t.same(
          Object.keys(own).filter((key) => !(key in expected)),
          [],
          "every figure",
        );
      }
    }
  },
);
