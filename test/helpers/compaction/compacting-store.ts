import { setImmediate as eventLoopTurn } from "node:timers/promises";
import type { Change } from "../../../core/link/change.js";
import { CaptureIndex } from "../../../storage/captures/capture-index.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { Log } from "../../../storage/log/log.js";
import { type CommittedBatch, forEachRecord } from "../../../storage/log/log-batch.js";
import type { Durability } from "../../../storage/log/log-options.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { recordLength } from "../../../storage/log/record-format.js";
import { decodeChanges, decodeRefusal, type EncodedRecord } from "../../../storage/records/change-record.js";
import { decodeIndex, isKnownRecordType, RECORD_TYPE } from "../../../storage/records/record-index.js";
import { View } from "../../../storage/view/view.js";
import { Compaction } from "../../../workers/compaction/compaction.js";
import type { LogLine } from "../../../workers/recorder/recorder-messages.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { ExclusiveWork } from "../../../workers/recorder/upkeep/exclusive-work.js";
import { createManualTimers, META, QUARANTINE, until } from "../store/log-harness.js";

type Written = EncodedRecord & { readonly timeUs: number };

/** A log with what is folded from it, as recorder and front have it, in one thread: written to by records, and compacted. */
export class CompactingStore {
  readonly lines: LogLine[] = [];
  readonly reader: LogReader;
  readonly view: View;
  readonly state = new RecorderState(new CaptureIndex({ keepsRuns: true }));
  readonly #timers = createManualTimers();
  #log: Log | undefined;
  readonly #compaction: Compaction;
  #isStopped = false;
  /** The front takes moves in later, step by step. */
  #moving: Promise<void> = Promise.resolve();
  /** Resolves when the front goes on with what it applies in slices. */
  giveWay: () => Promise<void> = () => eventLoopTurn();
  hasRoom = true;

  private constructor(fileSystem: FileSystem, view: View | undefined) {
    this.reader = new LogReader({ fileSystem, directory: META });
    this.view = view ?? new View({ reader: this.reader, summaryCacheBytes: 2_000, runCacheBytes: 10_000 });
    this.#compaction = new Compaction({
      fileSystem,
      directory: META,
      places: this.state.places,
      work: new ExclusiveWork(),
      timers: this.#timers,
      wallUs: () => 0,
      giveWay: async () => {
        await eventLoopTurn();
        if (this.log.pendingBytes > 0) await this.log.whenCommitted(this.log.nextSequence - 1);
      },
      hasRoom: () => this.hasRoom,
      spend: () => {},
      whenDurable: () => this.log.whenDurable(this.log.nextSequence - 1),
      syncNames: () => this.log.syncNames(),
      hold: async (segmentBase) => {
        await this.#moving;
        await this.reader.hold(segmentBase);
        return true;
      },
      moved: (moves) => {
        this.reader.replaced(moves.segmentBase);
        this.state.captures.moved(moves);
        this.#moving = this.view
          .applyMoves(moves, () => this.giveWay(), 0)
          .then(() => this.reader.letGo(moves.segmentBase));
      },
      onReadDamage: () => {},
      onChange: () => {},
      line: (level, message, fields) => this.lines.push({ level, message, fields }),
    });
  }

  /** @param view to read the log into, in place of one of the store's own */
  static async open(
    fileSystem: FileSystem,
    segmentBytes: number,
    durability: Durability = "full",
    view?: View,
  ): Promise<CompactingStore> {
    const store = new CompactingStore(fileSystem, view);
    const { state } = store;
    store.#log = await Log.open({
      fileSystem,
      directory: META,
      quarantineDirectory: QUARANTINE,
      durability,
      segmentBytes,
      understandsType: isKnownRecordType,
      openingState: () => state.openingState(),
      onRecords: (batch) => {
        forEachRecord(batch, (record, location) => state.replay(record, location));
        store.view.applyBatch(batch);
      },
      onCommitted: (batch) => store.#committed(batch),
      timers: createManualTimers(),
    });
    state.finishReplay();
    store.view.finishOpening();
    return store;
  }

  get log(): Log {
    if (this.#log === undefined) throw new Error("the log is not open");
    return this.#log;
  }

  append({ timeUs, ...record }: Written): number {
    const sequence = this.log.append({ ...record, flags: 1, timeUs });
    const index = decodeIndex(record.type, record.index);
    const { origin } = index;
    const bytes = recordLength(record.index.length, record.body.length);
    if (index.type === RECORD_TYPE.webhook || index.type === RECORD_TYPE.delivery) {
      this.state.webhooks.replay(index, record.body);
    } else if (record.type === RECORD_TYPE.refusal) {
      if (origin === null) throw new Error("a refusal of nobody's message");
      this.state.applyRefusal(origin, decodeRefusal(record.body), timeUs);
      this.state.places.appended(sequence, { refused: origin }, bytes);
    } else {
      const changes: Change[] = decodeChanges(record.type, record.body);
      this.state.apply(origin, changes, timeUs);
      this.state.places.appended(sequence, { changes }, bytes);
    }
    return sequence;
  }

  #committed(batch: CommittedBatch): void {
    this.state.places.committed(batch.lastSequence, batch.segmentBase);
    this.view.applyBatch(batch);
  }

  /** Why nothing is compacted any more. */
  get fault(): string | null {
    return this.#compaction.hasEnded ? this.#compaction.fault : null;
  }

  /** Begins to compact; resolves when there is nothing more to gain, or it waits, or it has ended. */
  async compact(): Promise<void> {
    if (this.#timers.count > 0) this.#timers.fire();
    else this.#compaction.start();
    const isOver = () => this.#timers.count > 0 || this.fault !== null || this.#isStopped;
    await until(isOver, "the end of compaction");
    await this.#moving;
  }

  /** The service ends in the middle of whatever it does. */
  async stopCompaction(): Promise<void> {
    this.#isStopped = true;
    await this.#compaction.stop();
  }

  get compacted(): LogLine[] {
    return this.lines.filter(({ message }) => message === "compacted a segment of the log");
  }

  async close(): Promise<void> {
    await this.#compaction.stop();
    await this.#moving;
    await this.log.close();
    this.reader.close();
  }
}
