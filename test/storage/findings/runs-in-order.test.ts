/** Runs by the time when they ended, whatever their order in the log, against a plain sort. */
import t from "tap";
import { readUuid } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import type { FindingQuery } from "../../../storage/findings/finding-query.js";
import { runsInOrder } from "../../../storage/findings/runs-in-order.js";
import { FindingsReader } from "../../../storage/findings/segment-findings.js";
import { MeasuredStore } from "../../helpers/statistics/measured-store.js";
import { plantStore } from "../../helpers/statistics/plant-runs.js";
import { matchingRunsOf } from "../../helpers/statistics/statistics-model.js";

/** The ids of all runs, each with the values and the texts that belong to it. */
async function found(reader: FindingsReader, query: FindingQuery, needsDetails = true): Promise<string[]> {
  const runs: string[] = [];
  let lastEndUs = 0;
  for await (const { segment, runs: places, endUs } of runsInOrder(reader, query, { needsDetails })) {
    const { figures, details } = segment;
    for (const run of places) {
      const timeUs = figures.completedAtUs[run] as number;
      if (timeUs < lastEndUs || timeUs >= endUs) throw new Error(`${timeUs} is not from ${lastEndUs} to ${endUs}`);
      const [start, end] = [run === 0 ? 0 : (figures.checkEnds[run - 1] as number), figures.checkEnds[run]];
      const id = details === null ? "" : readUuid(details.runIds, 16 * run);
      runs.push(`${id} ${figures.sequences[run]} ${timeUs} ${figures.values.subarray(start, end).join()}`);
    }
    lastEndUs = endUs;
  }
  return runs;
}

function expected(store: MeasuredStore, query: FindingQuery): string[] {
  return matchingRunsOf(store.runs, query).map(({ id, sequence, completedAtUs, status, checks }) => {
    const values = status === "completed" ? checks.map(({ value }) => value ?? Number.NaN) : [];
    return `${id} ${sequence} ${completedAtUs} ${values.join()}`;
  });
}

t.test("the runs of several cells are in the order of their times, in any part of it", async (t) => {
  for (const [seed, options] of [
    [41, {}],
    [42, { cells: 2 }],
    [43, { cells: 12, oneAfterAnother: true }],
    [44, { cells: 25, oneAfterAnother: true }],
  ] as const) {
    const random = createRandom(seed);
    const store = await plantStore(t, random, 400, options);
    const reader = new FindingsReader(nodeFileSystem);
    const times = store.runs.map(({ completedAtUs }) => completedAtUs);
    t.not(times.join(), times.toSorted((a, b) => a - b).join(), "the log is not in order");
    t.strictSame(await found(reader, store.query()), expected(store, store.query()), `seed ${seed}`);
    for (let nth = 0; nth < 40; nth++) {
      const [a, b] = [random.pick(times) + random.integer(-1, 1), random.pick(times) + random.integer(-1, 1)];
      const query = store.query({
        sinceUs: random.chance(0.8) ? Math.min(a, b) : null,
        untilUs: random.chance(0.8) ? Math.max(a, b) : null,
        ...(random.chance(0.2) && { untilSequence: random.integer(1, store.sequence) }),
        ...(random.chance(0.2) && { serialNumber: random.pick(store.runs).serialNumber }),
      });
      t.strictSame(await found(reader, query), expected(store, query), `seed ${seed}, ${JSON.stringify(query)}`);
    }
    t.strictSame(await found(reader, store.query({ sinceUs: 5, untilUs: 5 })), []);
    t.strictSame(await found(reader, store.query({ sinceUs: times[9] as number, untilUs: 5 })), []);
  }
});

t.test(
  "what is put in order at a time does not grow with the store, though all segments are of one time",
  async (t) => {
    const store = await plantStore(t, createRandom(46), 1_000, { cells: 25, oneAfterAnother: true });
    const reader = new FindingsReader(nodeFileSystem);
    const { length } = await reader.spans(store.directory, store.sequence);
    t.ok(length > 20, `${length} segments`);
    let largest = 0;
    for await (const { runs } of runsInOrder(reader, store.query())) largest = Math.max(largest, runs.length);
    t.ok(largest < (8 * store.runs.length) / length, `at most ${largest} of ${store.runs.length} runs`);
  },
);

t.test("only segments with runs of the time are read; times come from the heads of the files", async (t) => {
  const store = await MeasuredStore.createFor(t);
  await store.fill(createRandom(45), 300);
  while (await new FindingsReader(nodeFileSystem).makeMissing(store.directory));
  const reader = new FindingsReader(nodeFileSystem);
  const spans = await reader.spans(store.directory, store.sequence);
  t.ok(spans.length > 5, `${spans.length} segments`);
  for (const [at, { lowUs, highUs, base }] of spans.entries()) {
    const next = spans[at + 1]?.base ?? Number.POSITIVE_INFINITY;
    const times = store.runs.flatMap(({ sequence, completedAtUs }) =>
      sequence >= base && sequence < next ? completedAtUs : [],
    );
    t.same([lowUs, highUs], [Math.min(...times), Math.max(...times)]);
  }
  const bases: number[] = [];
  const { read } = reader;
  reader.read = (...asked) => {
    bases.push(asked[1].base);
    return read.apply(reader, asked);
  };
  const { lowUs, highUs, base } = spans[2]!;
  const within = store.query({ sinceUs: lowUs, untilUs: highUs + 1 });
  t.strictSame(await found(reader, within), expected(store, within));
  t.strictSame(bases.splice(0), [base]);
  const last = store.query({ sinceUs: spans.at(-1)!.highUs });
  t.equal((await found(reader, { ...last, programId: store.runs.at(-1)!.programId })).length, 1);
  t.strictSame(bases.splice(0), [spans.at(-1)!.base], "the newest segment is known without a file");
  t.strictSame(await found(reader, store.query({ sinceUs: spans.at(-1)!.highUs + 1 })), []);
  t.strictSame(bases.splice(0), []);
});

t.test("a segment without runs has no times", async (t) => {
  const store = await MeasuredStore.createFor(t);
  const reader = new FindingsReader(nodeFileSystem);
  const spans = await reader.spans(store.directory, store.sequence);
  t.strictSame(spans, [{ base: 1, nextBase: null, lowUs: Infinity, highUs: -Infinity }]);
  t.strictSame(await found(reader, store.query()), []);
});
