import { isUuidV7 } from "../../core/identifiers.js";
import { isPlainObject } from "../../core/json/json.js";
import { decodeMessagePack, encodeMessagePack } from "../../storage/records/message-pack.js";
import { RecordDecodeError } from "../../storage/records/record-index.js";
import { isProducerEntry, type ProducerEntry } from "./producers/producer-table.js";

const OPENING_STATE_VERSION = 1;

/** What a segment says about everything before it. No later record says it again. */
export interface OpeningState {
  version: number;
  lastTimeUs: number;
  lastRunId: string | null;
  producers: ProducerEntry[];
}

export function encodeOpeningState(state: Omit<OpeningState, "version">): Uint8Array {
  return encodeMessagePack({ version: OPENING_STATE_VERSION, ...state } satisfies OpeningState);
}

/** @throws RecordDecodeError */
export function decodeOpeningState(body: Uint8Array): OpeningState {
  let state: unknown;
  try {
    state = decodeMessagePack(body);
  } catch (error) {
    throw new RecordDecodeError(`the opening state of a segment cannot be decoded as MessagePack: ${String(error)}`);
  }
  if (!isPlainObject(state)) throw new RecordDecodeError("an opening state that is no map");
  const { version, lastTimeUs, lastRunId, producers } = state;
  if (version !== OPENING_STATE_VERSION) {
    throw new RecordDecodeError(
      `opening state of version ${String(version)}: this release reads ${OPENING_STATE_VERSION}`,
    );
  }
  const isWhole =
    Number.isSafeInteger(lastTimeUs) &&
    (lastRunId === null || (typeof lastRunId === "string" && isUuidV7(lastRunId))) &&
    Array.isArray(producers) &&
    producers.every(isProducerEntry);
  if (!isWhole) throw new RecordDecodeError("an opening state without clock, last run or producers");
  return state as unknown as OpeningState;
}
