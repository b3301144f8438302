import { isDeepStrictEqual } from "node:util";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { type CommittedBatch, forEachRecord, type LogRecord } from "../../storage/log/committed-batch.js";
import { Log } from "../../storage/log/log.js";
import type { LogOptions, RecordContent } from "../../storage/log/log-options.js";
import { LOG_RECORD_TYPE, RECORD_FLAG_MUST_UNDERSTAND } from "../../storage/log/record-format.js";
import { decodeMap, encodeMessagePack } from "../../storage/records/message-pack.js";
import { encodePlantMessage, type PlantMessage } from "../../storage/records/plant-message.js";
import { decodeIndex, RECORD_TYPE, RecordDecodeError } from "../../storage/records/record-index.js";
import type { LogMessage } from "../plant/plant-client.js";
import { type KnownStore, MessageReader } from "./message-reader.js";

/** In place of the version of a recorder's opening state, so that neither opens the other's folder. */
const OPENING_STATE_VERSION = "hub-3";

/** How far the hub has read the stream. */
interface Position {
  /** The last message that was taken. */
  streamSequence: number;
  /** Places of the parts before it that are still needed. */
  partSequences: readonly number[];
  /** The last mark that was given. */
  markUs: number;
  /** Records of the next message that are in the log already: a crash cut it. */
  takenOfNext: number;
}

const BEGINNING: Position = { streamSequence: 0, partSequences: [], markUs: 0, takenOfNext: 0 };

/** The last message of a log that is being read: it is not whole if the log ends within it. */
interface ReplayedMessage {
  before: Position;
  message: PlantMessage;
  storeBefore: KnownStore | undefined;
  taken: number;
}

export interface HubLogOptions extends Pick<LogOptions, "segmentBytes" | "beforeWrite" | "onCommitted" | "onFailure"> {
  fileSystem: FileSystem;
  metaPath: string;
  quarantinePath: string;
  /** Gives a batch that the log held. */
  onReplayed(batch: CommittedBatch): Promise<void> | undefined;
}

/** The log of a hub: takes the messages of the stream in order, each once, and knows where to go on. */
export class HubLog {
  static async open(options: HubLogOptions): Promise<HubLog> {
    const hub = new HubLog();
    hub.#log = await Log.open({
      ...options,
      directory: options.metaPath,
      quarantineDirectory: options.quarantinePath,
      durability: "full",
      usesHints: true,
      openingState: () => hub.#openingState(),
      onRecords(batch) {
        forEachRecord(batch, (record) => hub.#replay(record));
        // Only the newest segment can end within a message, and it has no hint file.
        if (batch.isHint) hub.#last = undefined;
        return options.onReplayed(batch);
      },
    });
    hub.#cutLast();
    return hub;
  }

  #log: Log | undefined;
  readonly #reader = new MessageReader();
  #position = BEGINNING;
  /** By store id. */
  #stores = new Map<string, KnownStore>();
  #last: ReplayedMessage | undefined;

  get log(): Log {
    if (this.#log === undefined) throw new Error("the log is not open");
    return this.#log;
  }

  /** The last message of the stream that is in the log; 0: none. */
  get streamSequence(): number {
    return this.#position.streamSequence;
  }

  /** All names under which a store was shipped. */
  namesOf(storeId: string): string[] {
    return Object.keys(this.#stores.get(storeId)?.lastSequences ?? {});
  }

  /**
   * Where to read the stream from. Calls that read it anew begin here.
   *
   * @returns `partSequences`: the places of messages to `take` first
   */
  resume(): { fromSequence: number; partSequences: readonly number[] } {
    this.#reader.clear();
    const { streamSequence, partSequences } = this.#position;
    return { fromSequence: streamSequence + 1, partSequences };
  }

  /**
   * Appends the message's records. Nothing is appended for one that the log has already.
   *
   * @throws what `Log.append` throws; given the message again, it goes on with the record that was refused
   */
  take(message: LogMessage): void {
    const { streamSequence, streamTimeUs } = message;
    const before = this.#position;
    const read = this.#reader.read(message, (storeId) => this.#stores.get(storeId));
    if (read === null || streamSequence <= before.streamSequence) return;
    const { cell, storeId, fault, records, lastSequence, lagRecords } = read;
    const { takenOfNext } = before;
    const missing = records.slice(takenOfNext);
    const partSequences = this.#reader.partSequences;
    const own: PlantMessage = {
      ...{ cell, storeId, fault, lastSequence, lagRecords, streamSequence, streamTimeUs },
      // A cell that is dead between the parts of a record costs the other cells' messages nothing.
      partSequences: isDeepStrictEqual(partSequences, before.partSequences) ? null : partSequences,
      markUs: Math.max(before.markUs + 1, streamTimeUs) + takenOfNext,
      count: missing.length,
    };
    const index = encodePlantMessage(own);
    // All in one task: so they are in one segment, and have successive sequence numbers.
    const flags = RECORD_FLAG_MUST_UNDERSTAND;
    this.log.append({ type: RECORD_TYPE.plantMessage, flags, timeUs: streamTimeUs, index, body: new Uint8Array(0) });
    for (const [taken, record] of missing.entries()) {
      try {
        this.log.append(record);
      } catch (error) {
        this.#position = { ...before, takenOfNext: takenOfNext + taken };
        throw error;
      }
    }
    this.#taken(own, partSequences);
  }

  #taken(message: PlantMessage, partSequences: readonly number[]): void {
    const { streamSequence, markUs, count } = message;
    const lastMarkUs = count === 0 ? this.#position.markUs : markUs + count - 1;
    this.#position = { streamSequence, partSequences, markUs: lastMarkUs, takenOfNext: 0 };
    this.#stored(message);
  }

  #stored({ cell, storeId, lastSequence }: PlantMessage): void {
    if (lastSequence === 0) return;
    const lastSequences = { ...this.#stores.get(storeId)?.lastSequences, [cell]: lastSequence };
    this.#stores.set(storeId, { cell, lastSequences });
  }

  #openingState(): RecordContent {
    this.#cutLast();
    const stores = Object.fromEntries(this.#stores);
    const body = encodeMessagePack({ version: OPENING_STATE_VERSION, ...this.#position, stores });
    return { index: new Uint8Array(0), body };
  }

  #replay(record: LogRecord): void {
    const { type } = record;
    if (type === LOG_RECORD_TYPE.openingState) {
      if (record.body.length > 0) this.#restore(record.body);
    } else if (type === RECORD_TYPE.plantMessage) {
      // This record may go on with a message that was cut.
      this.#cutLast();
      const { message } = decodeIndex(type, record.index) as { message: PlantMessage };
      this.#last = { before: this.#position, message, storeBefore: this.#stores.get(message.storeId), taken: 0 };
      this.#taken(message, message.partSequences ?? this.#position.partSequences);
    } else if (type !== LOG_RECORD_TYPE.mark && this.#last !== undefined) {
      this.#last.taken++;
    }
  }

  /** @throws RecordDecodeError */
  #restore(openingState: Uint8Array): void {
    const { version, stores, ...position } = decodeMap(openingState);
    if (version !== OPENING_STATE_VERSION) {
      throw new RecordDecodeError(
        "this is the data directory of a cell, or of a hub of another release. Delete it if it is a hub's: it is filled again. " +
          "Else give the hub a folder of its own",
      );
    }
    this.#position = position as unknown as Position;
    this.#stores = new Map(Object.entries(stores as Record<string, KnownStore>));
    this.#last = undefined;
  }

  /** If the log ends within a message, the hub goes on with the rest of it. */
  #cutLast(): void {
    const last = this.#last;
    this.#last = undefined;
    if (last === undefined || last.taken >= last.message.count) return;
    this.#position = { ...last.before, takenOfNext: last.before.takenOfNext + last.taken };
    const { storeId } = last.message;
    if (last.storeBefore === undefined) this.#stores.delete(storeId);
    else this.#stores.set(storeId, last.storeBefore);
  }
}
