import { counted } from "../../../core/counted.js";
import { wallClockUs } from "../../../core/service-clock.js";
import { formatTimeUs } from "../../../core/timestamps.js";
import { type DataDirectory, openDataDirectory } from "../../../storage/disk/data-directory.js";
import { nodeFileSystem, ownerOf } from "../../../storage/disk/file-system.js";
import { isOwnRecord, type LogRecord, type RecordLocation } from "../../../storage/log/committed-batch.js";
import { LOG_RECORD_TYPE } from "../../../storage/log/record-format.js";
import { segmentName } from "../../../storage/log/segment.js";
import { decodeChanges, decodeRefusal } from "../../../storage/records/change-record.js";
import { decodeMessagePack } from "../../../storage/records/message-pack.js";
import { decodeIndex, isKnownRecordType, RECORD_TYPE } from "../../../storage/records/record-index.js";
import { decodeDeliveryBody } from "../../../storage/records/webhook-record.js";
import type { RecoveryFinding } from "../../../storage/recovery/recovery-report.js";
import { type CheckResult, checkStore, UNDER_WAY } from "../../../storage/repair/check-store.js";
import { type InspectedItem, inspectStore } from "../../../storage/repair/inspect-store.js";
import { RecordVerifier, runOf } from "../../../storage/repair/record-verifier.js";
import { readStore, removedCaptures } from "../../../storage/repair/store-reading.js";
import { resetClock } from "../../../workers/recorder/stopped/reset-clock.js";
import { sayOnStandardError } from "../../log/standard-error.js";
import type { CheckCommandOptions, InspectCommandOptions } from "../command-options.js";
import { printLine } from "../command-output.js";
import { UsageError } from "../resolve-options.js";
import { CheckProgressLine } from "./check-progress.js";

/**
 * `check`: verifies every byte of a store. If a service writes to it, the check ends at the records that were there when it began.
 *
 * @returns true if nothing durable is damaged or missing
 */
export async function check(
  { data, json, "reset-clock": resetsClock }: CheckCommandOptions,
  progress: Pick<CheckProgressLine, "update" | "end"> = new CheckProgressLine(),
  say: (line: string) => void = printLine,
): Promise<boolean> {
  const clock = resetsClock ? await resetClockIn(data) : undefined;
  const { dataDirectory, fileSystem, servedBy } = await readStore(data);
  const verifier = new RecordVerifier();
  const result = await checkStore({
    dataDirectory,
    fileSystem,
    isServed: servedBy !== null,
    removedSince: () => (servedBy === null ? Promise.resolve([]) : removedCaptures(data)),
    ...verifier.inspection,
    onProgress: (state) => progress.update(state),
  });
  progress.end();
  const summary = { runs: verifier.runs, ...result.summary };
  if (json) {
    const served = servedBy === null ? {} : { served_by: servedBy };
    say(JSON.stringify({ ...result, summary, ...(clock !== undefined && { clock }), ...served }));
    return result.ok;
  }
  if (clock !== undefined) say(`clock: ${clock.message}`);
  if (servedBy !== null)
    say(`process ${servedBy} has the store: it was checked up to record ${result.summary.lastSequence}`);
  printCheck(result, verifier.runs, say);
  if (!result.ok && (await readStore(data)).servedBy !== servedBy)
    say("a service was started or ended during the check: check once more");
  return result.ok;
}

async function resetClockIn(path: string) {
  const dataDirectory = await openDataDirectory({ path, creates: false });
  try {
    return await resetClockOf(dataDirectory);
  } finally {
    await dataDirectory.release();
  }
}

/** @throws UsageError for a store of another account: the service could not write the files that this account creates in it */
async function resetClockOf(dataDirectory: DataDirectory) {
  const owner = await ownerOf(dataDirectory.metaPath);
  if (process.geteuid !== undefined && process.geteuid() !== owner) {
    throw new UsageError(
      `--reset-clock writes to the store: run it as account ${owner}, the owner of ${dataDirectory.metaPath}`,
    );
  }
  const reset = await resetClock(nodeFileSystem, dataDirectory, wallClockUs());
  if (reset === null) return { reset: false, message: "not changed, as it was not ahead of the machine's" };
  const [from, to] = [formatTimeUs(reset.fromUs), formatTimeUs(reset.toUs)];
  return {
    reset: true,
    from,
    to,
    message: `the store's clock was set back from ${from} to ${to}: clients whose mark is later must read everything again`,
  };
}

function printCheck({ ok, findings, summary }: CheckResult, runs: number, say: (line: string) => void): void {
  for (const { code, file, offset, lengthBytes, message } of findings) {
    say(`${code}: ${file}, offset ${offset}, ${lengthBytes} bytes: ${message}`);
  }
  if (summary.findings > findings.length) say(`… and ${summary.findings - findings.length} more`);
  const { segments, records, lastSequence, logBytes, captureFiles, captureBytes, extents, extentBytes } = summary;
  say(
    `log: ${counted(segments, "segment")}, ${logBytes} bytes, ${counted(records, "record")} up to ${lastSequence}, ${counted(runs, "run")}; ` +
      `captures: ${counted(captureFiles, "file")}, ${captureBytes} bytes, of which ${extentBytes} verified in ${counted(extents, "extent")}; ` +
      `quarantine: ${counted(summary.quarantineFiles, "file")}, ${summary.quarantineBytes} bytes; ` +
      `${counted(summary.findings, "finding")}, ${summary.damages} of damage`,
  );
  say(ok ? "ok" : "DAMAGED");
}

/**
 * `inspect`: prints the requested records as JSON lines, then the damage found, then what the disk cannot read.
 * @returns false if there is no such record, or if unreadable places may hold more of them
 */
export async function inspect(options: InspectCommandOptions): Promise<boolean> {
  const { data, limit } = options;
  if (options.offset !== null && options.segment === null) {
    throw new UsageError("--offset needs --segment, the segment that it is an offset into");
  }
  const { dataDirectory, fileSystem, servedBy } = await readStore(data);
  let printed = 0;
  let findings = 0;
  let unreadable = 0;
  await inspectStore({
    dataDirectory,
    fileSystem,
    ...selectionOf(options),
    describe,
    onItem(item) {
      if (item.kind === "record" && printed++ >= limit) return;
      if (item.kind === "finding" && servedBy !== null && UNDER_WAY.has(item.finding.code)) return;
      if (item.kind === "unreadable") {
        if (!isOfSegment(item.path, options.segment)) return;
        unreadable++;
      }
      if (item.kind !== "record") findings++;
      print(item);
    },
  });
  const asksForOne = options.sequence !== null || options.segment !== null || options.run !== null;
  if (asksForOne && printed === 0) {
    sayLine(findings === 0 ? "no such record" : "no such record: the damage that was found is listed above");
    return false;
  }
  const hasAll = unreadable === 0 || (options.sequence !== null && printed > 0);
  if (!hasAll) sayLine("the disk cannot read all of the log: the places that it cannot read are listed last");
  return hasAll;
}

/** Whether a path concerns this segment: its own file, or a folder, without which segments may be unknown. */
function isOfSegment(path: string, segment: number | null): boolean {
  return segment === null || !path.endsWith(".seg") || path.endsWith(`/${segmentName(segment)}`);
}

function selectionOf({ from, sequence, segment, offset, run }: InspectCommandOptions) {
  return {
    selects: (record: LogRecord, location: RecordLocation): boolean => {
      if (record.sequence < from) return false;
      // An opening state repeats the sequence number of the record before it.
      const isNumbered = record.type !== LOG_RECORD_TYPE.openingState;
      if (sequence !== null && !(isNumbered && sequence === record.sequence)) return false;
      if (segment !== null && location.segmentBase !== segment) return false;
      if (offset !== null && !(location.offset <= offset && offset < location.offset + location.length)) return false;
      return run === null || runOfUndamaged(record) === run;
    },
    selectsFinding: (finding: RecoveryFinding): boolean => {
      const { firstLost, lastLost } = finding;
      if (sequence !== null && !(firstLost !== null && firstLost <= sequence && sequence <= (lastLost ?? sequence))) {
        return false;
      }
      if (segment !== null && finding.segment !== segmentName(segment)) return false;
      return (
        offset === null || (finding.offset <= offset && offset < finding.offset + Math.max(1, finding.lengthBytes))
      );
    },
  };
}

function runOfUndamaged(record: LogRecord): string | null {
  try {
    return runOf(record);
  } catch {
    return null;
  }
}

const TYPE_NAMES = new Map(Object.entries(RECORD_TYPE).map(([name, type]) => [String(type), name]));

function print(item: InspectedItem): void {
  const line =
    item.kind !== "record"
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
  printLine(JSON.stringify(line));
}

function sayLine(text: string): void {
  sayOnStandardError(`${text}\n`);
}

function describe(record: LogRecord): unknown {
  const { type } = record;
  if (isOwnRecord(type)) return decodeMessagePack(record.body);
  if (!isKnownRecordType(type)) return null;
  const index = decodeIndex(type, record.index);
  const { origin } = index;
  // Only the public fields of a webhook: its body holds the secret.
  if (index.type === RECORD_TYPE.webhook) return { origin, ...index.shown };
  if (index.type === RECORD_TYPE.resend) return { origin, resend: index.resend };
  if (index.type === RECORD_TYPE.plantMessage) return { origin, message: index.message };
  if (index.type === RECORD_TYPE.delivery) {
    return { origin, delivery: index.delivery, ...decodeDeliveryBody(record.body) };
  }
  if (type === RECORD_TYPE.refusal) return { origin, refusal: decodeRefusal(record.body) };
  return { origin, changes: decodeChanges(type, record.body) };
}
