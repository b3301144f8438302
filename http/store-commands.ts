import { formatTimeUs } from "../core/timestamps.js";
import { decodeChanges, decodeRefusal } from "../storage/change-record.js";
import { checkStore } from "../storage/check-store.js";
import { openDataDirectory } from "../storage/data-directory.js";
import { type InspectedItem, inspectStore } from "../storage/inspect-store.js";
import type { LogRecord } from "../storage/log-batch.js";
import { decodeIndex, isChangeRecordType, RECORD_TYPE } from "../storage/record-index.js";
import type { CheckCommandOptions, InspectCommandOptions } from "./command-options.js";
import { extentsFirstNamedBy } from "./stored-extents.js";

/** `check`: verifies every byte of a store that is not being served. True when nothing durable is damaged or missing. */
export async function check({ data }: CheckCommandOptions): Promise<boolean> {
  const dataDirectory = await openDataDirectory({ path: data, creates: false });
  try {
    const { ok, findings, summary } = await checkStore({
      dataDirectory,
      understandsType: isChangeRecordType,
      inspectRecord: extentsFirstNamedBy,
    });
    for (const { code, file, offset, lengthBytes, message } of findings) {
      console.log(`${code}: ${file}, offset ${offset}, ${lengthBytes} bytes: ${message}`);
    }
    if (summary.findings > findings.length) console.log(`… and ${summary.findings - findings.length} more`);
    console.log(
      `${summary.segments} segments, ${summary.records} records up to ${summary.lastSequence}, ${summary.logBytes} bytes of log; ` +
        `${summary.extents} extents, ${summary.extentBytes} bytes; ${summary.findings} findings, ${summary.damages} damages`,
    );
    console.log(ok ? "ok" : "DAMAGED");
    return ok;
  } finally {
    await dataDirectory.release();
  }
}

/** `inspect`: prints the records as JSON lines. */
export async function inspect({ data, from, limit }: InspectCommandOptions): Promise<void> {
  const dataDirectory = await openDataDirectory({ path: data, creates: false });
  let printed = 0;
  // Without a listener the error of a reader that left (inspect | head) would end the process before print()'s promise tells of it.
  process.stdout.on("error", () => {});
  try {
    await inspectStore({
      dataDirectory,
      understandsType: isChangeRecordType,
      fromSequence: from,
      describe,
      onItem(item) {
        if (item.kind === "record" && printed++ >= limit) return;
        return print(item);
      },
    });
  } catch (error) {
    // The reader has what it wanted.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  } finally {
    await dataDirectory.release();
  }
}

const TYPE_NAMES = new Map(Object.entries(RECORD_TYPE).map(([name, type]) => [String(type), name]));

/** Resolves when the line is out: a slow reader slows the walk, and nothing piles up. */
function print(item: InspectedItem): Promise<void> {
  const line =
    item.kind === "finding"
      ? item
      : {
          sequence: item.sequence,
          time: formatTimeUs(item.timeUs),
          type: TYPE_NAMES.get(item.type) ?? item.type,
          segment: item.location.segmentBase,
          offset: item.location.offset,
          length: item.location.length,
          ...(item.error === null ? { content: item.content } : { error: item.error }),
        };
  return new Promise((resolve, reject) => {
    process.stdout.write(`${JSON.stringify(line)}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

function describe(record: LogRecord): unknown {
  const { type } = record;
  if (!isChangeRecordType(type)) return null;
  const { origin } = decodeIndex(type, record.index);
  if (type === RECORD_TYPE.refusal) return { origin, refusal: decodeRefusal(record.body) };
  return { origin, changes: decodeChanges(type, record.body) };
}
