/** What the store makes of the files of a log: of the walk that check and recovery share, and of opening it. */
import { createHash } from "node:crypto";
import {
  type CommittedBatch,
  forEachRecord,
  type LogRecord,
  type RecordLocation,
} from "../../../storage/log/committed-batch.js";
import { Log } from "../../../storage/log/log.js";
import { LOG_RECORD_TYPE } from "../../../storage/log/record-format.js";
import { walkLog } from "../../../storage/recovery/log-walk.js";
import {
  type RecoveryFinding,
  type RecoveryReport,
  RecoveryReportBuilder,
} from "../../../storage/recovery/recovery-report.js";
import { StorageError } from "../../../storage/storage-error.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";
import { createDisk, createManualTimers, META, QUARANTINE, recordOf } from "./log-harness.js";

export interface DeliveredRecord {
  sequence: number;
  type: number;
  location: RecordLocation;
  /** A digest of all that the owner sees of a record. */
  digest: string;
}

export type LogJudgement = { error: string } | { error: null; records: DeliveredRecord[]; report: RecoveryReport };

export async function diskOf(files: ReadonlyMap<string, Uint8Array>): Promise<SimulatedDisk> {
  const disk = await createDisk();
  for (const [name, bytes] of files) disk.setBytes(`${META}/${name}`, bytes);
  return disk;
}

/** The digest of the record as its owner gets it, without its place. */
export function digestOf({ type, flags, sequence, timeUs, index, body }: LogRecord): string {
  const hash = createHash("sha256").update(`${type} ${flags} ${sequence} ${timeUs} ${index.length} `);
  return hash.update(index).update(body).digest("hex").slice(0, 16);
}

/** The walk that changes nothing, everything delivered. */
export async function judgeWalk(disk: SimulatedDisk): Promise<LogJudgement> {
  const builder = new RecoveryReportBuilder();
  return judged(builder.report, async (take) => {
    await walkLog({
      ...{ fileSystem: disk, directory: META, builder, deliversTail: true },
      quarantine: async () => null,
      onRecords: take,
    });
    return builder.report;
  });
}

/**
 * Opening the log, as the service does, and appending a record to it.
 * @returns the sequence number that the record got, beside what was delivered; null when the log did not open
 */
export async function judgeOpening(disk: SimulatedDisk): Promise<{ judgement: LogJudgement; appended: number | null }> {
  let appended: number | null = null;
  let salt = 0x0e11_0000;
  const judgement = await judged(new RecoveryReportBuilder().report, async (take) => {
    const log = await Log.open({
      fileSystem: disk,
      directory: META,
      quarantineDirectory: QUARANTINE,
      durability: "full",
      openingState: () => ({ index: new Uint8Array(0), body: new Uint8Array(0) }),
      onRecords: take,
      timers: createManualTimers(),
      createSalt: () => salt++,
    });
    appended = log.append(recordOf("appended"));
    await log.whenCommitted(appended);
    await log.close();
    return log.recovery;
  });
  return { judgement, appended };
}

async function judged(
  report: RecoveryReport,
  run: (take: (batch: CommittedBatch) => void) => Promise<RecoveryReport>,
): Promise<LogJudgement> {
  const records: DeliveredRecord[] = [];
  try {
    const result = await run((batch) => {
      forEachRecord(batch, (record, location) => {
        const { sequence, type } = record;
        // An opening state counts none of the records: its sequence number is that of the one before it.
        if (type === LOG_RECORD_TYPE.openingState) return;
        records.push({ sequence, type, location, digest: digestOf(record) });
      });
    });
    return { error: null, records, report: result ?? report };
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return { error: error.code };
  }
}

/** For a golden file: which records were delivered, with a digest over all of them, and what was found. */
export function plainJudgement(judgement: LogJudgement): unknown {
  if (judgement.error !== null) return judgement;
  const { records, report } = judgement;
  const { lastSequence, provenSequence, lostRecords, cutBytes, decisions } = report;
  const digest = createHash("sha256")
    .update(records.map((record) => record.digest).join())
    .digest("hex");
  return {
    records: `${rangesOf(records)} ${digest.slice(0, 16)}`,
    findings: report.findings.map(findingText),
    ...{ lastSequence, provenSequence, lostRecords, cutBytes, decisions },
  };
}

/** Such as "1-4 type 16, 6-6 type 16, 7-7 type 2". */
function rangesOf(records: readonly DeliveredRecord[]): string {
  const ranges: { first: number; last: number; type: number }[] = [];
  for (const { sequence, type } of records) {
    const range = ranges.at(-1);
    if (range?.type === type && range.last === sequence - 1) range.last = sequence;
    else ranges.push({ first: sequence, last: sequence, type });
  }
  return ranges.map(({ first, last, type }) => `${first}-${last} type ${type}`).join(", ");
}

function findingText({ code, segment, offset, lengthBytes, firstLost, lastLost, detail }: RecoveryFinding): string {
  const lost = firstLost === null ? "nothing" : `${firstLost} to ${lastLost ?? "?"}`;
  return `${code} ${segment} ${offset}+${lengthBytes}, lost ${lost}: ${detail}`;
}

/** Sequence numbers from 1 to `last` that were not delivered and that no finding names. */
export function unexplained(records: readonly DeliveredRecord[], report: RecoveryReport, last: number): number[] {
  const missing: number[] = [];
  for (let sequence = 1; sequence <= last; sequence++) {
    if (records.some((record) => record.sequence === sequence)) continue;
    const isNamed = report.findings.some(
      ({ firstLost, lastLost }) => firstLost !== null && firstLost <= sequence && sequence <= (lastLost ?? Infinity),
    );
    if (!isNamed) missing.push(sequence);
  }
  return missing;
}
