import type { Random } from "../../../core/random.js";
import { withoutCaptures } from "../../../core/run/run-files.js";
import { isTerminal } from "../../../core/run/run-state.js";
import { CaptureIndex } from "../../../storage/captures/capture-index.js";
import { type CommittedBatch, forEachRecord } from "../../../storage/log/committed-batch.js";
import { forEachHintEntry, type HintEntry, hintBaseOf } from "../../../storage/log/hint-format.js";
import { Log } from "../../../storage/log/log.js";
import type { RecordInput } from "../../../storage/log/log-options.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import type { StorageErrorData } from "../../../storage/storage-error.js";
import { View } from "../../../storage/view/view.js";
import { RecorderState } from "../../../workers/recorder/recorder-state.js";
import { HintFiles } from "../../../workers/recorder/upkeep/hint-files.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";
import type { CellHistory, HistoryRecord } from "../link/cell-history.js";
import { META, QUARANTINE } from "./log-harness.js";

/** Small, so that some hundred records of a history fill several. */
const SEGMENT_BYTES = 24 * 1024;

/** A store as recorder and front open it, both in this thread, with the hint files of its segments. */
export class HintedStore {
  static async open(
    disk: SimulatedDisk,
    { usesHints = true, segmentBytes = SEGMENT_BYTES } = {},
  ): Promise<HintedStore> {
    const view = new View({ reader: new LogReader({ fileSystem: disk, directory: META }) });
    const state = new RecorderState(new CaptureIndex({ keepsRuns: true }));
    const committed: ((batch: CommittedBatch) => void)[] = [];
    const log = await Log.open({
      ...{ fileSystem: disk, directory: META, quarantineDirectory: QUARANTINE, durability: "full" },
      ...{ segmentBytes, usesHints },
      openingState: () => state.openingState(),
      onRecords: (batch) => {
        view.fold.applyBatch(batch);
        forEachRecord(batch, (record, location) => state.replay(record, location, batch.isHint));
      },
      onCommitted: (batch) => {
        view.fold.applyBatch(batch);
        for (const tell of committed) tell(batch);
      },
    });
    const store = new HintedStore(disk, view, state, log);
    committed.push((batch) => store.hints.committed(batch.segmentBase));
    return store;
  }

  readonly disk: SimulatedDisk;
  readonly view: View;
  readonly state: RecorderState;
  readonly log: Log;
  readonly hints: HintFiles;
  readonly lines: { level: string; message: string }[] = [];
  readonly readDamages: StorageErrorData[] = [];
  spentBytes = 0;

  private constructor(disk: SimulatedDisk, view: View, state: RecorderState, log: Log) {
    this.disk = disk;
    this.view = view;
    this.state = state;
    this.log = log;
    this.hints = new HintFiles({
      ...{ fileSystem: disk, directory: META, log },
      spend: (bytes) => {
        this.spentBytes += bytes;
      },
      onReadDamage: (error) => void this.readDamages.push(error),
      line: (level, message) => void this.lines.push({ level, message }),
    });
  }

  /** Appends each as a group of its own, and folds it in the same task. The state is not told where the record lies. */
  async append(...records: (Pick<RecordInput, "type" | "index" | "body"> & { timeUs: number })[]): Promise<void> {
    for (const record of records) {
      const sequence = this.log.append({ ...record, flags: 1 });
      this.state.replay({ ...record, flags: 1, sequence }, { segmentBase: 1, offset: 0, length: 0 });
      await this.log.whenCommitted(sequence);
    }
  }

  /** Ends the replay, as a start does. */
  finish(): void {
    this.view.fold.finishOpening();
    this.state.finishReplay();
  }

  hintPaths(): string[] {
    return hintPathsOf(this.disk);
  }

  async close(): Promise<void> {
    await this.hints.stop();
    await this.log.close();
  }
}

export function hintEntriesOf(bytes: Uint8Array): HintEntry[] {
  const entries: HintEntry[] = [];
  forEachHintEntry(bytes, (entry) => entries.push(entry));
  return entries;
}

export function hintPathsOf(disk: SimulatedDisk): string[] {
  return disk.paths().filter((path) => hintBaseOf(path.slice(path.lastIndexOf("/") + 1)) !== undefined);
}

/** The next record of the history; now and then a tombstone of a run that has ended. */
export function nextRecord(history: CellHistory, random: Random): HistoryRecord {
  const ended = random.chance(0.03) ? history.newestFirst.filter(({ status }) => isTerminal(status)) : [];
  if (ended.length === 0) return history.next();
  history.timeUs += 1_000;
  const run = withoutCaptures(random.pick(ended), history.timeUs);
  history.runs.set(run.id, run);
  return { ...encodeChanges(null, [{ kind: "run_ended", runId: run.id, run }], undefined), timeUs: history.timeUs };
}

/** Answers of the state by which the recorder would decide. */
export function stateAnswers(state: RecorderState, history: CellHistory) {
  const runs = history.newestFirst;
  const producer = state.producers.get("cell-1");
  return {
    cell: state.cell(),
    counts: [state.componentCount, state.programCount, state.activeRunCount, state.runCount],
    lastRunId: state.lastRunId,
    lastTimeUs: state.lastTimeUs,
    documentBytes: state.activeDocumentBytes,
    programs: [...history.programIdsEver].map((id) => state.program(id)),
    components: [...history.components.keys()].map((key) => state.hasComponent(key)),
    runs: runs.map(({ id }) => [id, state.runHasEnded(id), state.activeRun(id)]),
    frames: [...history.runOfFrame.keys()].map((id) => [id, state.runOfFrame(id)]),
    revisions: Array.from({ length: 41 }, (_, at) => state.nextRevision(`SN-${at}`)),
    lastWriters: [...state.lastWriters()],
    taken: producer?.taken,
    refusals: [...(producer?.refusals ?? [])].map(([sequence, { refusal }]) => [sequence, refusal]),
  };
}
