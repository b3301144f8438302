import { forEachRecord } from "../../../storage/log/committed-batch.js";
import { decodeFields } from "../../../workers/plant/log-message.js";
import type { StoredMessage } from "../../../workers/plant/plant-client.js";

/** Names of the records in the plant, as a hub would read them: parts joined, every CRC and number checked. */
export function namesIn(messages: readonly StoredMessage[]): string[] {
  const names: string[] = [];
  let next = 1;
  let pieces: Uint8Array[] = [];
  for (const { header, bytes, streamSequence } of messages) {
    const fields = decodeFields(header, bytes);
    if (fields === null) throw new Error(`message ${streamSequence} is damaged`);
    // The rest of the record before never came.
    if (fields.part === 1) pieces = [];
    if (fields.firstSequence !== next || fields.part !== pieces.length + 1) {
      throw new Error(
        `message ${streamSequence} begins with ${fields.firstSequence}, part ${fields.part}: not ${next}`,
      );
    }
    pieces.push(bytes);
    if (fields.part < fields.parts) continue;
    const whole = { bytes: Buffer.concat(pieces), segmentBase: 1, offset: 0 };
    forEachRecord(whole, ({ sequence, type, index }) => {
      if (sequence !== next++) throw new Error(`record ${sequence} instead of ${next - 1}`);
      if (type === 16) names.push(new TextDecoder().decode(index));
    });
    pieces = [];
  }
  return names;
}
