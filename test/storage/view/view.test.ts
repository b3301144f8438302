import { setTimeout as pause } from "node:timers/promises";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { runSummaryResponse } from "../../../core/run/run-response.js";
import { isTerminal, summarizeRun } from "../../../core/run/run-state.js";
import { forEachRecord, type LogRecord, type RecordLocation } from "../../../storage/log/committed-batch.js";
import { RECORD_HEADER_BYTES, recordLength, writeRecordHeader } from "../../../storage/log/record-format.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import type { RecordReader, RunRecordsOptions } from "../../../storage/view/run-records.js";
import { View } from "../../../storage/view/view.js";
import { CellHistory, type HistoryRecord } from "../../helpers/link/cell-history.js";
import { differences, listRuns } from "../../helpers/store/view-comparison.js";
import { sized } from "../../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_707);
const BASE_URL = "http://cell:8000";
const UNKNOWN_ID = "01890a5d-ac96-774b-bcce-b302099a8057";

type Batch = Parameters<View["fold"]["applyBatch"]>[0];

/** A batch of one record, as the log encodes it. */
function batchOf({ type, timeUs, index, body }: HistoryRecord, sequence: number, segmentBase: number, offset: number) {
  const bytes = new Uint8Array(recordLength(index.length, body.length));
  bytes.set(index, RECORD_HEADER_BYTES);
  bytes.set(body, RECORD_HEADER_BYTES + index.length);
  const header = {
    type,
    flags: 1,
    sequence,
    durableUpTo: 0,
    timeUs,
    indexLength: index.length,
    bodyLength: body.length,
  };
  writeRecordHeader(bytes, new DataView(bytes.buffer), 0, header, 0, offset);
  return { bytes, segmentBase, offset, lastSequence: sequence };
}

/** A log as the view sees one: records with their places, 500 to a segment. */
class PlainLog {
  readonly batches: Batch[] = [];
  readonly #places = new Map<string, Batch>();
  reads = 0;
  #segmentBase = 1;
  #offset = 64;

  append(record: HistoryRecord): Batch {
    const sequence = this.batches.length + 1;
    if (sequence % 500 === 0) {
      this.#segmentBase = sequence;
      this.#offset = 64;
    }
    const batch = batchOf(record, sequence, this.#segmentBase, this.#offset);
    this.#offset += batch.bytes.length;
    this.batches.push(batch);
    this.#places.set(`${batch.segmentBase} ${batch.offset} ${batch.bytes.length}`, batch);
    return batch;
  }

  async read({ segmentBase, offset, length }: RecordLocation): Promise<LogRecord> {
    this.reads++;
    const batch = this.#places.get(`${segmentBase} ${offset} ${length}`);
    if (batch === undefined) throw new Error("a location that was never given out");
    return recordOf(batch);
  }

  async readMany(locations: readonly RecordLocation[]): Promise<LogRecord[]> {
    return Promise.all(locations.map((location) => this.read(location)));
  }

  /** A reader whose every record goes through `change`. */
  readerThat(change: (record: LogRecord) => LogRecord): RecordReader {
    const read = async (location: RecordLocation) => change(await this.read(location));
    return { read, readMany: (locations) => Promise.all(locations.map(read)) };
  }

  /** A view opened on the records for which `keep` holds, their bodies as `bodyOf` says. */
  open(
    options: Partial<RunRecordsOptions> = {},
    keep: (record: LogRecord) => boolean = () => true,
    bodyOf: (record: LogRecord) => Uint8Array = ({ body }) => body,
  ): View {
    const view = new View({ reader: this, ...options });
    for (const batch of this.batches) {
      const record = recordOf(batch);
      if (!keep(record)) continue;
      const body = bodyOf(record);
      view.fold.applyBatch(
        body === record.body
          ? batch
          : batchOf(
              { ...record, type: record.type as HistoryRecord["type"], body },
              record.sequence,
              batch.segmentBase,
              batch.offset,
            ),
      );
    }
    view.fold.finishOpening();
    return view;
  }
}

function recordOf(batch: Batch): LogRecord {
  const records: LogRecord[] = [];
  forEachRecord(batch, (record) => records.push(record));
  return records[0]!;
}

function grow(records: number): { history: CellHistory; log: PlainLog } {
  const history = new CellHistory(createRandom(seed));
  const log = new PlainLog();
  for (let i = 0; i < records; i++) log.append(history.next());
  return { history, log };
}

t.test(`answers as a plain model does while records come, and after opening anew, seed ${seed}`, async (t) => {
  const random = createRandom(seed + 1);
  const history = new CellHistory(createRandom(seed));
  const log = new PlainLog();
  const view = new View({ reader: log });
  view.fold.finishOpening();
  let queries = 0;
  for (let step = 0; step < 6_000; step++) {
    view.fold.applyBatch(log.append(history.next()));
    if (step % sized(25, 10) !== 0) continue;
    queries += 4;
    const found = await differences(view, history, random, 4);
    if (found.length > 0) t.fail(`after record ${step + 1}: ${found[0]}`) || t.bailout();
  }
  const ended = history.newestFirst.filter((run) => isTerminal(run.status)).length;
  t.comment(`${history.runs.size} runs, ${ended} ended, ${history.runOfFrame.size} frames, ${queries} list queries`);
  t.ok(history.runs.size > 300 && ended > 250 && ended < history.runs.size, "the history is worth comparing");
  t.equal(view.fold.appliedSequence, log.batches.length);

  const reopened = log.open();
  t.same(await differences(reopened, history, random, 500), [], "opened anew");
  t.equal(reopened.fold.appliedSequence, view.fold.appliedSequence);
  t.equal(reopened.runs.size, history.runs.size);
  const tiny = log.open({ summaryCacheBytes: 2_000, runCacheBytes: 20_000, readBytes: 1 });
  t.same(await differences(tiny, history, random, 200), [], "with caches too small and reads one by one");
});

t.test("what is unknown is told apart from what was deleted", async (t) => {
  const { history, log } = grow(2_000);
  const view = log.open();
  const deleted = [...history.programIdsEver].find((id) => !history.programs.has(id));
  t.ok(deleted, "the history deleted a program");
  t.equal(view.program(deleted!), undefined);
  t.equal(view.cell.programs.everExisted(deleted!), true);
  for (const id of [UNKNOWN_ID, "", "no id"]) {
    t.equal(await view.run(id), undefined);
    t.equal(view.runHead(id), undefined);
    t.equal(view.runOfFrame(id), undefined);
    t.equal(view.program(id), undefined);
    t.equal(view.cell.programs.everExisted(id), false);
  }
});

t.test("a list entry that is kept holds no memory beside its own", async (t) => {
  const view = grow(500).log.open();
  for (const kept of ["made", "kept"]) {
    const { runs } = await listRuns(view, { offset: 0, limit: 50 }, "");
    t.ok(runs.length > 20, `${runs.length} runs`);
    const others = runs.filter((json) => json.buffer.byteLength !== json.byteLength);
    t.equal(others.length, 0, `of ${runs.length} that were ${kept} these are parts of shared pieces`);
  }
});

t.test("opening decodes no body of a run that has ended, and lists need none either", async (t) => {
  const { history, log } = grow(3_000);
  const active = history.newestFirst.filter((run) => !isTerminal(run.status));
  t.ok(active.length > 0, "some runs have not ended");
  // 0xc1 is the one byte that MessagePack never uses: whoever decodes it throws.
  const spoiledBody = (record: LogRecord): Uint8Array => {
    const isNeeded =
      record.type === RECORD_TYPE.cellChanges || active.some((run) => Buffer.from(record.body).includes(run.id));
    return isNeeded ? record.body : new Uint8Array(record.body.length).fill(0xc1);
  };
  const reader = log.readerThat((record) => ({ ...record, body: spoiledBody(record) }));
  const view = log.open({ reader }, undefined, spoiledBody);
  const { total, runs } = await listRuns(view, { offset: 0, limit: 1000 }, BASE_URL);
  t.equal(total, history.runs.size);
  t.same(
    runs.map((json) => JSON.parse(Buffer.from(json).toString())),
    history.newestFirst.map((run) => JSON.parse(JSON.stringify(runSummaryResponse(summarizeRun(run), BASE_URL)))),
  );
  const ended = history.newestFirst.find((run) => isTerminal(run.status))!;
  await t.rejects(view.run(ended.id), "a run's own answer does decode its body");
});

t.test("nothing of a record is kept by reference: its bytes may be reused at once", async (t) => {
  const { history, log } = grow(1_000);
  for (const live of [false, true]) {
    const view = new View({ reader: log });
    if (live) view.fold.finishOpening();
    for (const batch of log.batches) {
      const bytes = batch.bytes.slice();
      view.fold.applyBatch({ ...batch, bytes });
      bytes.fill(0xff);
    }
    view.fold.finishOpening();
    t.same(await differences(view, history, createRandom(seed + 4), 200), [], live ? "live" : "at open");
  }
});

t.test("ended runs are whole from their consolidated records alone, in whatever order they ended", async (t) => {
  const { history, log } = grow(4_000);
  const consolidated = new Set(history.newestFirst.filter((run) => isTerminal(run.status)).map((run) => run.id));
  const view = log.open({}, ({ type }) => type === RECORD_TYPE.cellChanges || type === RECORD_TYPE.runEnded);
  for (const [id, run] of history.runs) if (!consolidated.has(run.id)) history.runs.delete(id);
  const endings = [...consolidated].map((id) => history.runs.get(id)!.completedAtUs!);
  t.ok(
    endings.some((timeUs, at) => at > 0 && timeUs > endings[at - 1]!),
    "some runs ended before older ones",
  );
  t.same(await differences(view, history, createRandom(seed + 2), 500), []);
});

t.test("a log that lost records anywhere opens, and shows every ended run whole", async (t) => {
  const { history, log } = grow(4_000);
  const random = createRandom(seed + 3);
  const view = log.open({}, ({ type }) => type === RECORD_TYPE.runEnded || random.chance(0.8));
  for (const run of history.newestFirst) if (isTerminal(run.status)) t.same(await view.run(run.id), run) || t.bailout();
  const { total, runs } = await listRuns(view, { offset: 0, limit: 1000 }, BASE_URL);
  t.equal(runs.length, total, "all that is listed can be read");
});

t.test("a second consolidated record of a run takes the first one's place, also in the caches", async (t) => {
  const { history, log } = grow(1_500);
  const view = log.open();
  const run = history.newestFirst.find((one) => one.status === "completed")!;
  await view.run(run.id);
  await listRuns(view, { offset: 0, limit: 1000 }, BASE_URL);
  const updatedAtUs = history.timeUs + 1;
  const changed = { ...run, capturesRemovedAtUs: updatedAtUs, updatedAtUs };
  const record = encodeChanges(null, [{ kind: "run_ended", runId: run.id, run: changed }], undefined);
  view.fold.applyBatch(log.append({ ...record, timeUs: updatedAtUs }));
  history.runs.set(run.id, changed);
  t.same(await differences(view, history, createRandom(seed), 200), []);
});

t.test("list entries of ended runs are read once while they fit the cache, per base address", async (t) => {
  const { log } = grow(1_500);
  const view = log.open();
  const query = { status: "completed", offset: 0, limit: 20 };
  const first = await listRuns(view, query, BASE_URL);
  t.equal(log.reads, first.runs.length);
  t.same(await listRuns(view, query, BASE_URL), first);
  t.equal(log.reads, first.runs.length, "the second time from the cache");
  const other = await listRuns(view, query, "");
  t.match(Buffer.from(other.runs[0]!).toString(), '"href":"/runs/');
});

t.test("list entries of runs that end are made then for who asks for lists, and are those of the log", async (t) => {
  const { history, log } = grow(500);
  const view = log.open();
  const page = { offset: 0, limit: 1000 };
  const bases = [BASE_URL, "http://cell.local"];
  for (const baseUrl of bases) await listRuns(view, page, baseUrl);
  const openedUs = history.timeUs;
  for (let i = 0; i < 1_000; i++) view.fold.applyBatch(log.append(history.next()));
  const ended = history.newestFirst.filter((run) => isTerminal(run.status) && run.updatedAtUs > openedUs);
  t.ok(ended.length > 20, `${ended.length} runs`);
  const since = { ...page, updatedSinceUs: openedUs };
  const before = log.reads;
  const pages = [];
  for (const baseUrl of bases) pages.push(await listRuns(view, since, baseUrl));
  t.equal(log.reads, before, "nothing was read");
  const anew = log.open();
  for (const [nth, baseUrl] of bases.entries()) t.same(await listRuns(anew, since, baseUrl), pages[nth]);
  t.ok(log.reads > before, "a view that was opened after them reads");
  // A third address takes the place of the one that was asked for least lately.
  await listRuns(view, page, BASE_URL);
  await listRuns(view, page, "http://other");
  const laterUs = history.timeUs;
  for (let i = 0; i < 300; i++) view.fold.applyBatch(log.append(history.next()));
  const later = { ...page, updatedSinceUs: laterUs };
  const readsOf = async (baseUrl: string): Promise<number> => {
    const reads = log.reads;
    await listRuns(view, later, baseUrl);
    return log.reads - reads;
  };
  t.same([await readsOf("http://other"), await readsOf(BASE_URL)], [0, 0]);
  t.ok((await readsOf("http://cell.local")) > 0);
});

t.test("a record that cannot be read fails the one answer, and the next try reads again", async (t) => {
  const { history, log } = grow(1_500);
  let failing = true;
  const reader = log.readerThat((record) => {
    if (failing) throw new Error("damaged");
    return record;
  });
  const view = log.open({ reader });
  const run = history.newestFirst.find((one) => isTerminal(one.status))!;
  await t.rejects(view.run(run.id), /damaged/);
  await t.rejects(listRuns(view, { status: run.status, offset: 0, limit: 5 }, BASE_URL), /damaged/);
  failing = false;
  t.same(await view.run(run.id), run);
  t.equal((await listRuns(view, { status: run.status, offset: 0, limit: 1 }, BASE_URL)).runs.length, 1);
});

function logOf(history: CellHistory, records: number): PlainLog {
  const log = new PlainLog();
  while (log.batches.length < records) log.append(history.next());
  return log;
}

/** All batches as one. */
function wholeOf({ batches }: PlainLog) {
  const [first, last] = [batches[0]!, batches.at(-1)!];
  const bytes = Buffer.concat(batches.map((batch) => batch.bytes));
  return { bytes, segmentBase: first.segmentBase, offset: first.offset, lastSequence: last.lastSequence };
}

t.test("a live batch taken in slices gives way within the batch, and ends as one taken in one go", async (t) => {
  const history = new CellHistory(createRandom(seed + 3));
  const records = 400;
  const log = logOf(history, records);
  const whole = wholeOf(log);

  const atOnce = new View({ reader: log });
  atOnce.fold.finishOpening();
  atOnce.fold.applyBatch(whole);
  const view = new View({ reader: log });
  view.fold.finishOpening();
  const seen: number[] = [];
  await view.fold.applyBatchInSlices(
    whole,
    async () => {
      seen.push(view.runs.size);
      t.equal(view.fold.appliedSequence, 0, "the batch is not said to be applied before all of it is");
    },
    0,
  );
  t.equal(seen.length, records, "after each record, when a slice has no time");
  t.ok(new Set(seen).size > 10, "between slices the view shows what came so far");
  t.equal(view.fold.appliedSequence, whole.lastSequence);
  t.same(await differences(view, history, createRandom(seed + 4), 100), []);
  t.same(await differences(atOnce, history, createRandom(seed + 4), 100), []);

  let turns = 0;
  const unhurried = new View({ reader: log });
  for (const batch of log.batches) {
    await unhurried.fold.applyBatchInSlices(batch, async () => void turns++, Number.POSITIVE_INFINITY);
  }
  // Nobody knows for how long the thread was kept before.
  t.equal(turns, 1, "at the first record, and not while there is time");
});

t.test("where other work keeps the thread for long, live batches have more of it", async (t) => {
  const view = new View({ reader: new PlainLog() });
  view.fold.finishOpening();
  let turns = 0;
  const longTurn = () => pause(50).then(() => void turns++);
  await view.fold.applyBatchInSlices(wholeOf(logOf(new CellHistory(createRandom(seed + 6)), 400)), longTurn, 0.05);
  t.ok(turns < 200, `${turns} turns for 400 records; slices that do not grow take one for each record`);
});

t.test("small live batches that follow one another at once give way together as a large one does", async (t) => {
  const history = new CellHistory(createRandom(seed + 5));
  const log = new PlainLog();
  const view = new View({ reader: log });
  view.fold.finishOpening();
  const sliceMs = 20;
  let turns = 0;
  const startMs = performance.now();
  // A batch takes some microseconds, a thousandth of a slice: one alone never fills it.
  while (turns < 4 && performance.now() - startMs < 50 * sliceMs) {
    await view.fold.applyBatchInSlices(log.append(history.next()), async () => void turns++, sliceMs);
  }
  t.equal(turns, 4);
});
