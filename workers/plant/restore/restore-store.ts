import { dirname } from "node:path";
import type { Change } from "../../../core/link/change.js";
import { endRun } from "../../../core/run/run-end.js";
import { storedEnd, withoutCaptures } from "../../../core/run/run-files.js";
import type { RunState } from "../../../core/run/run-state.js";
import { removeTree } from "../../../storage/backup/backup-target.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { FORMAT_FILE, formatBytes, pathsIn } from "../../../storage/disk/data-directory.js";
import { orWhereMissing } from "../../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { replaceFile } from "../../../storage/disk/whole-files.js";
import { forEachRecord, type LogRecord, type RecordLocation } from "../../../storage/log/committed-batch.js";
import { Log } from "../../../storage/log/log.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { decodeChanges, encodeChanges } from "../../../storage/records/change-record.js";
import { indexedEnd } from "../../../storage/records/record-fold.js";
import { RECORD_TYPE } from "../../../storage/records/record-index.js";
import { RecorderState } from "../../recorder/recorder-state.js";
import {
  cellSubjects,
  decodeFields,
  decodeSender,
  LOG_STREAM,
  logSubject,
  type MessageFields,
  storeIdOfSubject,
} from "../log-message.js";
import { lastSent, type PlantClient, PlantRefusal, type StoredMessage } from "../plant-client.js";
import { LogRebuilder } from "./log-rebuilder.js";
import { RestoredCaptures } from "./restored-captures.js";
import { writeRestoredNote } from "./restored-note.js";

export interface RestoreOptions {
  plant: Pick<PlantClient, "lastMessage" | "nextMessage" | "previousMessage">;
  cell: string;
  /** Must be missing or empty. */
  path: string;
  fileSystem: FileSystem;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  segmentBytes?: number;
}

export interface Restored {
  storeId: string;
  lastSequence: number;
  records: number;
  captureFiles: number;
  captureBytes: number;
  /** Runs whose captures the plant did not have. They are recorded as removed. */
  runsWithoutCaptures: number;
  /** Runs whose reports the plant did not have. They are no longer listed. */
  runsWithoutReports: number;
  /** Runs that were going on and whose captures are lost: they have failed. */
  failedRuns: number;
  /** What the restored store lacks, for people. */
  message: string;
}

/** What a run lacks. */
interface Lack {
  captures: boolean;
  reports: boolean;
  location: RecordLocation;
}

const LOST_MESSAGE = "the cell was restored from the plant, which did not have the run's captures yet";

/**
 * Makes a cell's store anew from the plant, beside its place. It takes its place when it is whole and durable.
 *
 * @throws PlantRefusal if the plant has nothing of the cell, or has messages that are damaged or not in order, or if the folder is not empty
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const { plant, cell, path, fileSystem } = options;
  const present = await orWhereMissing(fileSystem.readDirectory(path), null);
  if (present !== null && present.length > 0) {
    throw new PlantRefusal(`${path} is not empty: name a folder that is missing or empty; nothing was changed`);
  }
  const { sent } = await lastSent(plant, cellSubjects(cell));
  if (sent === null) throw new PlantRefusal(`the plant has nothing of the cell ${cell}`);
  const incomplete = `${path}.incomplete`;
  await removeTree(fileSystem, incomplete);
  for (const folder of Object.values(pathsIn(incomplete))) await fileSystem.makeDirectory(folder);
  try {
    const restored = await new Restoring(options, incomplete, sent.message).run();
    if (present !== null) await fileSystem.removeDirectory(path);
    await fileSystem.rename(incomplete, path);
    await fileSystem.syncDirectory(dirname(path));
    return restored;
  } catch (error) {
    await removeTree(fileSystem, incomplete).catch(() => {});
    throw error;
  }
}

class Restoring {
  readonly #options: RestoreOptions;
  readonly #path: string;
  readonly #last: StoredMessage;
  readonly #storeId: string;
  readonly #state = new RecorderState();
  readonly #captures: RestoredCaptures;
  readonly #lacks = new Map<string, Lack>();
  #failedRuns = 0;

  constructor(options: RestoreOptions, path: string, last: StoredMessage) {
    this.#options = options;
    this.#path = path;
    this.#last = last;
    this.#storeId = storeIdOfSubject(last.subject);
    const { plant, cell, fileSystem } = options;
    const source = { plant, cell, storeId: this.#storeId };
    this.#captures = new RestoredCaptures(source, fileSystem, pathsIn(path).capturesPath);
  }

  async run(): Promise<Restored> {
    const { fileSystem } = this.#options;
    const { metaPath } = pathsIn(this.#path);
    const rebuilder = new LogRebuilder({ ...this.#options, directory: metaPath, state: this.#state });
    for await (const bytes of this.#batches()) {
      const ends: { record: LogRecord; location: RecordLocation }[] = [];
      await rebuilder.write(bytes, (record, location) => {
        if (record.type === RECORD_TYPE.runEnded) ends.push({ record, location });
      });
      for (const { record, location } of ends) await this.#runEnded(record, location);
    }
    await rebuilder.close();
    const { lastSequence, records } = rebuilder;
    await this.#captures.sync();
    await this.#recordLosses();
    const message = this.#message(lastSequence);
    await writeRestoredNote(fileSystem, this.#path, message);
    await replaceFile(fileSystem, this.#path, FORMAT_FILE, formatBytes(this.#storeId));
    await fileSystem.syncDirectory(this.#path);
    const lacks = [...this.#lacks.values()];
    return {
      ...{ storeId: this.#storeId, lastSequence, records, message, failedRuns: this.#failedRuns },
      ...{ captureFiles: this.#captures.files, captureBytes: this.#captures.bytes },
      runsWithoutCaptures: lacks.filter(({ captures }) => captures).length,
      runsWithoutReports: lacks.filter(({ reports }) => reports).length,
    };
  }

  /** Whole records of each message, in order; parts are joined. @throws PlantRefusal */
  async *#batches(): AsyncGenerator<Uint8Array> {
    const { plant, cell } = this.#options;
    const subject = logSubject(cell, this.#storeId);
    let next = 1;
    let pieces: Uint8Array[] = [];
    for (let from = 1; ; ) {
      const message = await plant.nextMessage(LOG_STREAM, subject, from);
      if (message === null) return;
      from = message.streamSequence + 1;
      const fields = decodeFields(message.header, message.bytes);
      // The shipper has passed over such a message, too. The next one says whether records are missing.
      if (fields === null) continue;
      // The cell never sent the rest of the record before.
      if (fields.part === 1) pieces = [];
      const fault = orderFault(fields, next, pieces.length);
      if (fault !== null) {
        throw new PlantRefusal(`message ${message.streamSequence} of the log stream ${fault}; nothing was restored`);
      }
      pieces.push(message.bytes);
      if (fields.part < fields.parts) continue;
      yield new Uint8Array(Buffer.concat(pieces));
      pieces = [];
      next = fields.lastSequence + 1;
    }
  }

  /** Fetches the files of a run that has ended. A later record of the run may say that they are removed. */
  async #runEnded(record: LogRecord, location: RecordLocation): Promise<void> {
    const { run: indexed, captures } = indexedEnd(record.index);
    const known = this.#lacks.get(indexed.id);
    const [change] = decodeChanges(record.type, record.body);
    if (change?.kind !== "run_ended") return;
    const { run } = change;
    const isRemoved = captures.removedAtUs !== null;
    if (isRemoved) await this.#captures.remove(capturePath(run.id, "capture"));
    const lacksCaptures = !isRemoved && (captures.isOpen || !(await this.#captures.fetch(run, "capture")));
    const lacksReports = storedEnd(run, "reports") > 0 && !(await this.#captures.fetch(run, "report"));
    if (lacksCaptures || lacksReports) {
      this.#lacks.set(run.id, { captures: lacksCaptures, reports: lacksReports, location });
    } else if (known !== undefined) this.#lacks.delete(run.id);
  }

  /** Records what is not there, so that nobody looks for it and `check` finds nothing missing. */
  async #recordLosses(): Promise<void> {
    const { fileSystem, wallUs } = this.#options;
    const { metaPath, quarantinePath } = pathsIn(this.#path);
    const state = this.#state;
    state.finishReplay();
    const named = (run: RunState) => storedEnd(run, "captures") > 0 || storedEnd(run, "reports") > 0;
    const active = [...state.activeRuns()].filter(named);
    if (this.#lacks.size === 0 && active.length === 0) return;
    const log = await Log.open({
      ...{ fileSystem, directory: metaPath, quarantineDirectory: quarantinePath, durability: "full", usesHints: false },
      ...{ evidence: null, openingState: () => state.openingState() },
      // Nothing proves the last records, so they have been moved to a new segment.
      onRecords: (batch) => forEachRecord(batch, (record, location) => this.#moved(record, location)),
    });
    const reader = new LogReader({ fileSystem, directory: metaPath });
    const append = async (make: (timeUs: number) => RunState): Promise<void> => {
      const timeUs = Math.max(wallUs(), state.lastTimeUs + 1, log.lastTimeUs + 1);
      const run = make(timeUs);
      const change: Change = { kind: "run_ended", runId: run.id, run: settled(run, state) };
      const sequence = log.append({ ...encodeChanges(null, [change], undefined), timeUs });
      state.apply(null, [change], timeUs);
      await log.whenCommitted(sequence);
    };
    try {
      for (const [runId, lack] of this.#lacks) {
        const record = await reader.read(lack.location);
        const [change] = decodeChanges(record.type, record.body);
        if (change?.kind !== "run_ended" || change.runId !== runId)
          throw new Error(`run ${runId} is not where it was written`);
        const { run } = change;
        await append((timeUs) => without(run, lack, timeUs));
      }
      for (const run of active) {
        const lack = { captures: storedEnd(run, "captures") > 0, reports: storedEnd(run, "reports") > 0 };
        this.#failedRuns++;
        const ending = { status: "failed", errorMessage: LOST_MESSAGE, notes: [] } as const;
        await append((timeUs) => without(endRun(run, { ...ending, notes: [] }, timeUs), lack, timeUs));
      }
    } finally {
      reader.close();
      await log.close();
    }
  }

  #moved(record: LogRecord, location: RecordLocation): void {
    if (record.type !== RECORD_TYPE.runEnded) return;
    const lack = this.#lacks.get(indexedEnd(record.index).run.id);
    if (lack !== undefined) lack.location = location;
  }

  #message(lastSequence: number): string {
    const { logSequence } = decodeSender(this.#last.header);
    const behind = Math.max(0, logSequence - lastSequence);
    const sentAt = new Date(this.#last.timeMs).toISOString();
    const known =
      behind === 0
        ? "The cell had no other record then"
        : `The cell had records up to ${logSequence} then, so ${behind} are lost for certain`;
    return (
      `this store was restored from the plant, which had records up to ${lastSequence}; the last message came at ${sentAt}. ` +
      `${known}; what was recorded later is lost, too. When you have read this, run \`inspection-service plant restore --acknowledge\``
    );
  }
}

function orderFault(fields: MessageFields, next: number, pieces: number): string | null {
  const { firstSequence, previousSequence, part } = fields;
  if (firstSequence < next) return `has record ${firstSequence}, which came before`;
  if (previousSequence !== next - 1)
    return `comes behind record ${previousSequence}, but the plant has records up to ${next - 1}`;
  if (part !== pieces + 1) return `has part ${part} of record ${firstSequence}, where part ${pieces + 1} must come`;
  return null;
}

/** The run as it is after these files are lost. Whatever else it says stays. */
function without(run: RunState, { captures, reports }: Pick<Lack, "captures" | "reports">, timeUs: number): RunState {
  const lost = run.files.filter(
    (file) => reports && (file.storedIn ?? "reports") === "reports" && file.lengthBytes > 0,
  );
  const note = {
    timestampUs: timeUs,
    eventType: "files_lost",
    data: { files: lost.map(({ name }) => name), reason: LOST_MESSAGE },
  };
  const left = {
    ...run,
    updatedAtUs: timeUs,
    files: run.files.filter((file) => !lost.includes(file)),
    eventLog: lost.length > 0 ? [...run.eventLog, note] : run.eventLog,
  };
  return captures ? withoutCaptures(left, timeUs) : left;
}

/** Finished deliveries stay finished. */
function settled(run: RunState, { webhooks }: RecorderState): RunState {
  if (run.emitted === undefined) return run;
  const emitted = run.emitted.map((event) => ({
    ...event,
    deliveries: event.deliveries.map((one) => (webhooks.isPending(one.id) ? one : { ...one, settled: true as const })),
  }));
  return { ...run, emitted };
}
