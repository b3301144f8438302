import t from "tap";
import { createRandom, type Random } from "../../core/random.js";
import type { LogRecord } from "../../storage/log/committed-batch.js";
import { RECORD_HEADER_BYTES, recordLength, writeRecordHeader } from "../../storage/log/record-format.js";
import { decodeChanges, decodeRefusal } from "../../storage/records/change-record.js";
import { decodeIndex, isKnownRecordType, RECORD_TYPE, RecordDecodeError } from "../../storage/records/record-index.js";
import { ResendItems } from "../../storage/records/resend-record.js";
import { decodeDeliveryBody, decodeWebhookSecrets } from "../../storage/records/webhook-record.js";
import { StorageError } from "../../storage/storage-error.js";
import { View } from "../../storage/view/view.js";
import { RecorderState } from "../../workers/recorder/recorder-state.js";
import { mutatedBytes } from "../helpers/fuzz/byte-mutators.js";
import { type CorpusEntry, checkCorpus, textOf } from "../helpers/fuzz/fuzz-corpus.js";
import { recordCorpus } from "../helpers/fuzz/record-corpus.js";
import { sized } from "../helpers/test-size.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
const MUTANTS = sized(8_000, 2_000_000);
const TIME_US = 1_780_000_000_000_100;

let corpus: CorpusEntry[] = [];

function recordOf({ parts }: Pick<CorpusEntry, "parts">, sequence: number): LogRecord {
  const [type = 0] = parts.get("type") ?? [];
  const part = (name: string): Uint8Array => parts.get(name) ?? new Uint8Array(0);
  return { type, flags: 1, sequence, timeUs: TIME_US + sequence, index: part("index"), body: part("body") };
}

/** What decoding gives, or the one error that it may end with. */
function decoded(decode: () => unknown): unknown {
  try {
    return decode();
  } catch (error) {
    if (error instanceof RecordDecodeError) return { undecodable: error.message };
    if (error instanceof StorageError && error.code === "record_undecodable") return { undecodable: error.message };
    throw error;
  }
}

function decodedBody({ type, body }: LogRecord): unknown {
  if (type === RECORD_TYPE.webhook) {
    const { secret, previousSecret, headers } = decodeWebhookSecrets(body);
    return { hasSecret: secret !== null, hasPrevious: previousSecret !== null, headers: headers.length };
  }
  if (type === RECORD_TYPE.resend) {
    const items = new ResendItems(body);
    return Array.from({ length: items.count }, (_, nth) => items.item(nth));
  }
  if (type === RECORD_TYPE.delivery) return decodeDeliveryBody(body);
  return type === RECORD_TYPE.refusal ? decodeRefusal(body) : decodeChanges(type, body);
}

t.test("the corpus of records: what index section and body of each say", async (t) => {
  corpus = await checkCorpus(t, "record", recordCorpus(), (entry) => {
    const record = recordOf(entry, 1);
    const { type, index } = record;
    const state = new RecorderState();
    const replayed = decoded(() => {
      state.replay(record, { segmentBase: 1, offset: 64, length: 0 });
      return { damagedRuns: state.finishReplay(), runs: state.runCount, lastRunId: state.lastRunId };
    });
    if (!isKnownRecordType(type)) return { replayed, openingAgain: decoded(() => state.openingState().body.length) };
    return { index: decoded(() => decodeIndex(type, index)), body: decoded(() => decodedBody(record)), replayed };
  });
});

/** A batch of these records, with right CRCs. */
function batchOf(records: readonly LogRecord[]): Parameters<View["fold"]["applyBatch"]>[0] {
  const bytes = new Uint8Array(
    records.reduce((sum, { index, body }) => sum + recordLength(index.length, body.length), 0),
  );
  let at = 0;
  for (const { index, body, ...header } of records) {
    bytes.set(index, at + RECORD_HEADER_BYTES);
    bytes.set(body, at + RECORD_HEADER_BYTES + index.length);
    const lengths = { indexLength: index.length, bodyLength: body.length };
    writeRecordHeader(bytes, new DataView(bytes.buffer), at, { ...header, ...lengths, durableUpTo: 0 }, 0, at);
    at += recordLength(index.length, body.length);
  }
  return { bytes, segmentBase: 1, offset: 0, lastSequence: records.length };
}

/** The record with one part changed; its type too, now and then. */
function mutantOf(random: Random, base: LogRecord, other: LogRecord): { record: LogRecord; how: string } {
  const part = random.chance(0.4) ? "index" : "body";
  const { bytes, how } = mutatedBytes(random, base[part], other[part], 1);
  const type = random.chance(0.03) ? random.integer(16, 23) : base.type;
  return { record: { ...base, type, [part]: bytes }, how: `${part} ${how}` };
}

t.test(`records with right CRCs and changed contents, seed ${seed}: decoded, or refused as such`, async (t) => {
  const random = createRandom(seed);
  // By name the opening state comes first, then cell and run, then the deltas, then the end: a log that can be read.
  const life = corpus.filter(({ name }) => !name.startsWith("evil-")).map((entry, at) => recordOf(entry, at + 1));
  const faults: string[] = [];
  const outcomes = { taken: 0, undecodable: 0 };
  const startBytes = process.memoryUsage().heapUsed;
  let peakBytes = 0;
  for (let mutant = 0; mutant < MUTANTS && faults.length < 3; mutant++) {
    const entry = random.pick(corpus);
    const base = recordOf(entry, 1);
    const { record, how } = mutantOf(random, base, recordOf(random.pick(corpus), 1));
    const wrong = (what: string): void => {
      const parts = new Map([
        ["type", Uint8Array.of(record.type)],
        ["index", record.index],
        ["body", record.body],
      ]);
      faults.push(`${what}\n${textOf({ about: `${entry.name}: ${how}`, parts })}`);
    };
    try {
      if (isKnownRecordType(record.type)) {
        const { type } = record;
        decoded(() => decodeIndex(type, record.index));
        decoded(() => decodedBody(record));
      }
      if (mutant % 4 === 0) {
        const outcome = foldWith(life, record, random.integer(0, life.length));
        outcomes[outcome]++;
      }
    } catch (error) {
      wrong(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
    if (mutant % 64 === 0) peakBytes = Math.max(peakBytes, process.memoryUsage().heapUsed - startBytes);
  }
  t.same(faults, []);
  t.ok(outcomes.taken > 100 && outcomes.undecodable > 100, JSON.stringify(outcomes));
  t.ok(peakBytes < 400 * 1024 * 1024, `${Math.round(peakBytes / 1024 / 1024)} MiB of heap at most`);
  t.comment(`${MUTANTS} mutants: 0 faults; folded by view and recorder: ${JSON.stringify(outcomes)}`);
});

/** View and recorder's state over a log that holds the mutant: both read it, or both say that they cannot. */
function foldWith(life: readonly LogRecord[], mutant: LogRecord, at: number): "taken" | "undecodable" {
  const records = [...life.slice(0, at), mutant, ...life.slice(at)].map((record, nth) => ({
    ...record,
    sequence: nth + 1,
    timeUs: TIME_US + nth,
  }));
  const state = new RecorderState();
  const view = new View({
    reader: {
      read: () => Promise.reject(new Error("nothing is read")),
      readMany: () => Promise.reject(new Error("no")),
    },
  });
  const ofState = decoded(() => {
    let offset = 0;
    for (const record of records) {
      const length = recordLength(record.index.length, record.body.length);
      state.replay(record, { segmentBase: 1, offset, length });
      offset += length;
    }
    const damaged = state.finishReplay();
    state.openingState();
    return damaged;
  });
  const ofView = decoded(() => {
    view.fold.applyBatch(batchOf(records));
    view.fold.finishOpening();
    view.components();
    view.listPrograms({ offset: 0, limit: 10 });
    return view.runs.size;
  });
  if (isUndecodable(ofState)) return "undecodable";
  // The view reads no opening states; all else that it cannot decode, the recorder could not either.
  if (isUndecodable(ofView)) throw new Error(`the view says ${JSON.stringify(ofView)}, the recorder does not`);
  return "taken";
}

function isUndecodable(outcome: unknown): boolean {
  return typeof outcome === "object" && outcome !== null && "undecodable" in outcome;
}
