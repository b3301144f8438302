/** Reads that compaction overtakes where the file that took the segment's name has another whole record, as long, at the old place. */
import t, { type Test } from "tap";
import { endRun } from "../../../core/run/run-end.js";
import { runSummaryResponse } from "../../../core/run/run-response.js";
import { type RunState, summarizeRun } from "../../../core/run/run-state.js";
import type { Delivery } from "../../../core/webhook/delivery.js";
import { droppedRecordBytes } from "../../../storage/compaction/dropped-record.js";
import { rewriteSegment } from "../../../storage/compaction/rewrite-segment.js";
import { MovesCollector } from "../../../storage/compaction/segment-moves.js";
import { type CommittedBatch, forEachRecord, type RecordLocation } from "../../../storage/log/log-batch.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { MisplacedRecordError } from "../../../storage/log/misplaced-record.js";
import { isReadDamage } from "../../../storage/log/read-damage.js";
import { RECORD_HEADER_BYTES } from "../../../storage/log/record-format.js";
import { segmentName } from "../../../storage/log/segment.js";
import { type EncodedRecord, encodeChanges } from "../../../storage/records/change-record.js";
import { decodeEndedSummary, isKnownRecordType } from "../../../storage/records/record-index.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import type { RecordReader } from "../../../storage/view/run-records.js";
import { View } from "../../../storage/view/view.js";
import { GatedReader } from "../../helpers/disk/gated-reader.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { idOf, RUN_ID, worldWithRun } from "../../helpers/link/cell-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { createDisk, META, openLog, until } from "../../helpers/store/log-harness.js";
import { ATTEMPT, failedDelivery, WEBHOOK_ID } from "../../helpers/webhooks/webhook-fixtures.js";

const BASE_URL = "http://cell";
const FIRST = `${META}/${segmentName(1)}`;
const TIME_US = 1_795_200_000_000_000;
/** What the first two leave behind is as long as one of them: each record behind them moves to where the one before it was. */
const COUNT = 8;
const GONE = 2;
/** The last one's old place has no record any more. */
const FOLLOWED = COUNT - 1;
/** Newest first: those whose old places have the record of the next one. */
const PAGE = { offset: COUNT - FOLLOWED, limit: FOLLOWED - GONE };

const { runs, deliveries } = fixtures();

function fixtures(): { runs: RunState[]; deliveries: Delivery[] } {
  const run = worldWithRun("running").runs.get(RUN_ID) as RunState;
  const ended = endRun(run, { status: "completed", errorMessage: null, notes: [] }, TIME_US);
  const nths = Array.from({ length: COUNT }, (_, nth) => nth);
  return {
    runs: nths.map((nth) => ({ ...ended, id: idOf(100 + nth) })),
    deliveries: nths.map((nth) => ({ ...failedDelivery(null), id: idOf(200 + nth), createdAtUs: TIME_US + nth })),
  };
}

const endOf = (run: RunState): EncodedRecord =>
  encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined);
const recordOfDelivery = (delivery: Delivery): EncodedRecord =>
  encodeWebhookChange({ kind: "delivery_put", delivery, history: [ATTEMPT], payload: "{}" }) as EncodedRecord;

/** A segment of these records, which views have read, and the file that is to take its name. */
class OvertakenSegment {
  /** Of the records in the segment, in their order. */
  readonly places: RecordLocation[] = [];
  readonly reader: LogReader;
  readonly failures: unknown[] = [];
  readonly #gate: GatedReader;
  readonly #disk: SimulatedDisk;
  readonly #moves = new MovesCollector();

  private constructor(t: Test, disk: SimulatedDisk) {
    this.#disk = disk;
    this.reader = new LogReader({ fileSystem: disk, directory: META });
    this.#gate = new GatedReader(this.reader);
    t.teardown(() => this.reader.close());
  }

  static async of(t: Test, records: readonly EncodedRecord[]): Promise<OvertakenSegment> {
    const segment = new OvertakenSegment(t, await createDisk());
    await segment.#write(records, 1_000_000);
    t.equal(new Set(segment.places.map(({ length }) => length)).size, 1, "all are as long");
    // The first of these closes the segment, and the second one is in the next.
    await segment.#write(records.slice(0, 1), 1);
    await segment.#write(records.slice(0, 1), 1);
    segment.places.length = COUNT;
    return segment;
  }

  async #write(records: readonly EncodedRecord[], segmentBytes: number): Promise<void> {
    const onCommitted = (batch: CommittedBatch): void =>
      forEachRecord(batch, ({ type }, place) => void (isKnownRecordType(type) && this.places.push(place)));
    const more = { segmentBytes, understandsType: isKnownRecordType, onRecords: () => {}, onCommitted };
    const { log } = await openLog(this.#disk, more);
    for (const record of records) await log.whenCommitted(log.append({ ...record, flags: 1, timeUs: TIME_US }));
    await log.close();
  }

  /** A view with places as they are before the segment is written anew. */
  async view(reader: RecordReader = this.#gate): Promise<View> {
    const view = new View({ reader, onReadFailure: (error) => this.failures.push(error) });
    const { log } = await openLog(this.#disk.copy(), {
      understandsType: isKnownRecordType,
      onRecords: (batch) => view.applyBatch(batch),
      onCommitted: () => {},
    });
    await log.close();
    view.finishOpening();
    return view;
  }

  /** Another file takes the segment's name, and the readers hold the one before. */
  async writeAnew(): Promise<void> {
    await this.reader.hold(1);
    const [, next] = this.#disk.paths().filter((path) => path.startsWith(META));
    const { temporaryPath } = await rewriteSegment({
      ...{ fileSystem: this.#disk, directory: META, base: 1, nextBase: Number(next?.slice(-20, -4)), salt: 77 },
      owner: {
        understandsType: isKnownRecordType,
        judge: ({ sequence }) => (sequence <= GONE ? "goes" : "stays"),
        beginStretch: () => ({
          add: () => {},
          body: () => new Uint8Array(this.places[0]!.length - droppedRecordBytes(0)),
        }),
        kept: (record, place) => this.#moves.take(record, place),
      },
      minimumDroppedBytes: 1,
      giveWay: async () => {},
    });
    await this.#disk.rename(temporaryPath as string, FIRST);
    this.reader.replaced(1);
  }

  async move(view: View): Promise<void> {
    await view.applyMoves(this.#moves.finish(1), async () => {});
  }

  damage({ offset }: RecordLocation): void {
    const bytes = this.#disk.bytesOf(FIRST).slice();
    bytes[offset + RECORD_HEADER_BYTES]! ^= 1;
    this.#disk.setBytes(FIRST, bytes);
  }

  /**
   * What is answered from places of before the move: while the file before is held, and by a read that begins before the move and comes to
   * the disk when nothing is held any more.
   */
  async answers<T>(ask: (view: View) => Promise<T>): Promise<[held: T, moved: T]> {
    const [one, other] = [await this.view(), await this.view()];
    await this.writeAnew();
    const held = await ask(one);
    const { reads } = this.#gate;
    this.#gate.hold();
    const asked = ask(other);
    await until(() => this.#gate.reads > reads, "a read");
    await this.move(other);
    this.reader.letGo(1);
    this.#gate.release();
    return [held, await asked];
  }
}

const sought = <T>(all: readonly T[]): readonly T[] => all.slice(GONE, -1);

t.test("a run whose old place has another run's record, as long", async (t) => {
  const segment = await OvertakenSegment.of(t, runs.map(endOf));
  const [held, moved] = await segment.answers((view) => Promise.all(sought(runs).map(({ id }) => view.run(id))));
  t.same(held, sought(runs), "from the file that is held");
  t.same(moved, sought(runs), "from where it lies now");
  t.same(segment.failures, [], "nothing is taken for damage");
  for (const [nth, place] of sought(segment.places).entries()) {
    const { index } = await segment.reader.read(place);
    t.equal(decodeEndedSummary(index).id, runs[GONE + nth + 1]!.id, "a whole record of the next one does stand there");
  }
});

t.test("a page of runs whose old places have other runs' records, as long", async (t) => {
  const segment = await OvertakenSegment.of(t, runs.map(endOf));
  const answers = await segment.answers((view) => view.listRuns(PAGE, BASE_URL));
  const expected = sought(runs).map((run) => JSON.stringify(runSummaryResponse(summarizeRun(run), BASE_URL)));
  for (const page of answers) {
    t.same(page.runs.map((json) => Buffer.from(json).toString()).reverse(), expected);
    t.ok(page.isWhole);
  }
  t.same(segment.failures, []);
});

t.test("a delivery whose old place has another delivery's record, as long", async (t) => {
  const segment = await OvertakenSegment.of(t, deliveries.map(recordOfDelivery));
  const answers = await segment.answers((view) =>
    Promise.all(sought(deliveries).map(async ({ id }) => (await view.delivery(id))?.delivery)),
  );
  t.same(answers, [sought(deliveries), sought(deliveries)]);
});

t.test("a page of deliveries whose old places have others' records, as long", async (t) => {
  const segment = await OvertakenSegment.of(t, deliveries.map(recordOfDelivery));
  const toBytes = ({ id }: Delivery): Uint8Array => Buffer.from(id);
  const beforeUs = deliveries.at(-1)!.createdAtUs;
  const answers = await segment.answers(async (view) =>
    (await view.listDeliveries(WEBHOOK_ID, beforeUs, FOLLOWED - GONE, toBytes))
      .map((id) => Buffer.from(id).toString())
      .reverse(),
  );
  const ids = sought(deliveries).map(({ id }) => id);
  t.same(answers, [ids, ids]);
});

t.test("another record where nothing was written anew is a fault, and no damage", async (t) => {
  for (const [records, isOfRuns] of [
    [runs.map(endOf), true],
    [deliveries.map(recordOfDelivery), false],
  ] as const) {
    const segment = await OvertakenSegment.of(t, records);
    const behind = (place: RecordLocation): RecordLocation => ({ ...place, offset: place.offset + place.length });
    const view = await segment.view({
      read: (place, check) => segment.reader.read(behind(place), check),
      readMany: (places, check) => segment.reader.readMany(places.map(behind), check),
    });
    if (isOfRuns) {
      const fault = { name: "MisplacedRecordError", message: /^there is no consolidated record of run / };
      await t.rejects(view.run(runs[GONE]!.id), fault);
      await t.rejects(view.listRuns(PAGE, BASE_URL), fault);
    } else {
      const message = /^the record of delivery .* is not at its place$/;
      await t.rejects(view.delivery(deliveries[GONE]!.id), { name: "MisplacedRecordError", message });
    }
    t.notOk(segment.failures.some(isReadDamage));
  }
});

t.test("damage at the new place is told as such, though the held file has another whole record there", async (t) => {
  const segment = await OvertakenSegment.of(t, runs.map(endOf));
  const view = await segment.view();
  await segment.writeAnew();
  await segment.move(view);
  // Where the one before it lay.
  const place = segment.places[GONE]!;
  segment.damage(place);
  const damage = { code: "record_damaged", message: /content does not match its CRC/ };
  await t.rejects(view.run(runs[GONE + 1]!.id), damage);
  const { runs: shown, isWhole } = await view.listRuns(PAGE, BASE_URL);
  t.same([shown.length, isWhole], [FOLLOWED - GONE, false]);
  t.match(segment.failures, listOf(damage, damage));
  const refuse = (): void => {
    throw new MisplacedRecordError("another one");
  };
  await t.rejects(segment.reader.read(place, refuse), damage);
  await t.rejects(segment.reader.readMany([place], refuse), damage);
});
