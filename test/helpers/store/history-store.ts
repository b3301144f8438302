import { CaptureIndex } from "../../../storage/captures/capture-index.js";
import type { DataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import { Log } from "../../../storage/log/log.js";
import { forEachRecord } from "../../../storage/log/log-batch.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { isKnownRecordType } from "../../../storage/records/record-index.js";
import { findLogEvidence } from "../../../storage/recovery/log-evidence.js";
import { MemorySnapshot } from "../../../storage/snapshot/memory-snapshot.js";
import { SnapshotReader } from "../../../storage/snapshot/snapshot-reader.js";
import { View } from "../../../storage/view/view.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { makeSnapshot, type SnapshotMade } from "../../../workers/snapshot/make-snapshot.js";
import { type OpenedSnapshot, openSnapshot, settleUnusable } from "../../../workers/snapshot/snapshot-opening.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";
import type { CellHistory } from "../link/cell-history.js";
import { createDisk, META, QUARANTINE } from "./log-harness.js";

export const SNAPSHOTS = "/data/snapshot";
export const DIRECTORY: DataDirectory = {
  path: "/data",
  metaPath: META,
  capturesPath: "/data/captures",
  quarantinePath: QUARANTINE,
  snapshotPath: SNAPSHOTS,
  release: async () => {},
};
/** Small, so that some hundred records of a history fill several. */
const SEGMENT_BYTES = 24 * 1024;

export async function createHistoryDisk(): Promise<SimulatedDisk> {
  const disk = await createDisk();
  await disk.makeDirectory(SNAPSHOTS);
  await disk.syncDirectory("/data");
  return disk;
}

/** A store as recorder and front open it, the front's view in the same thread, with a history that goes on in it. */
export class HistoryStore {
  readonly view: View;
  readonly state: RecorderState;
  readonly log: Log;
  /** Null when everything was read from the log. */
  readonly snapshot: OpenedSnapshot | null;
  /** Warnings of the opening. */
  readonly warnings: unknown[];
  readonly #fileSystem: FileSystem;

  private constructor(parts: Pick<HistoryStore, "view" | "state" | "log" | "snapshot" | "warnings">, disk: FileSystem) {
    this.view = parts.view;
    this.state = parts.state;
    this.log = parts.log;
    this.snapshot = parts.snapshot;
    this.warnings = parts.warnings;
    this.#fileSystem = disk;
  }

  static async open(
    fileSystem: FileSystem,
    { frontRefuses = false, segmentBytes = SEGMENT_BYTES }: { frontRefuses?: boolean; segmentBytes?: number } = {},
  ): Promise<HistoryStore> {
    const reader = new LogReader({ fileSystem, directory: META });
    const createState = () => new RecorderState(new CaptureIndex({ keepsRuns: true }));
    let view = new View({ reader });
    const warnings: unknown[] = [];
    const line = (level: string, message: string, fields: object) => {
      if (level === "warn") warnings.push({ message, ...fields });
    };
    const { opened: snapshot, unusable } = await openSnapshot({
      fileSystem,
      directory: DIRECTORY,
      createState,
      async askFront(path, sequence) {
        const source = await SnapshotReader.open(fileSystem, path);
        await view.loadSnapshot(source, sequence);
        await source.close();
        if (frontRefuses) throw new Error("it does not like it");
      },
      discard: () => {
        view = new View({ reader });
      },
      line,
    });
    const state = snapshot?.state ?? createState();
    const log = await Log.open({
      fileSystem,
      directory: META,
      quarantineDirectory: QUARANTINE,
      durability: "full",
      segmentBytes,
      from: snapshot?.start,
      evidence: snapshot === null ? await findLogEvidence(fileSystem, DIRECTORY) : null,
      understandsType: isKnownRecordType,
      openingState: () => state.openingState(),
      onRecords: (batch) => {
        view.applyBatch(batch);
        forEachRecord(batch, (record, location) => state.replay(record, location));
      },
      onCommitted: (batch) => {
        view.applyBatch(batch);
        forEachRecord(batch, (record, location) => state.replay(record, location));
      },
    });
    if (unusable !== null) await settleUnusable({ fileSystem, directory: DIRECTORY, line }, unusable, log.recovery);
    return new HistoryStore({ view, state, log, snapshot, warnings }, fileSystem);
  }

  /** Appends so many records of the history, in groups of one, each folded in before the next. */
  async append(history: CellHistory, count: number): Promise<void> {
    for (let nth = 0; nth < count; nth++) {
      const { timeUs, ...record } = history.next();
      await this.log.whenCommitted(this.log.append({ ...record, flags: 1, timeUs }));
    }
  }

  makeSnapshot(throughSequence = this.log.durableSequence): Promise<SnapshotMade> {
    return makeSnapshot(this.#fileSystem, {
      metaPath: META,
      snapshotPath: SNAPSHOTS,
      quarantinePath: QUARANTINE,
      throughSequence,
    });
  }

  /** Everything that it has folded, in primary columns. */
  async columns(): Promise<MemorySnapshot> {
    const columns = new MemorySnapshot();
    await this.view.writeSnapshot(columns);
    await this.state.writeSnapshot(columns);
    return columns;
  }
}
