import type { Extent } from "../capture/capture.js";
import type { ProgramDocument } from "../run/program.js";
import type { RunState, StoredKind } from "../run/run-state.js";
import type { CellIdentity } from "./change.js";

/** What a decision needs to know: the recorder's state with every accepted message applied, read only. */
export interface DecisionContext {
  cell(): CellIdentity;
  hasComponent(key: string): boolean;
  readonly componentCount: number;
  /** Undefined when unknown or deleted. */
  program(id: string): ProgramDocument | undefined;
  readonly programCount: number;
  /** Bytes of the documents of all programs, as `messagePackBytes` counts them. */
  readonly programBytes: number;
  /** Highest run id; null before the first run. */
  readonly lastRunId: string | null;
  /** Undefined when the run has ended or is unknown. */
  activeRun(id: string): RunState | undefined;
  readonly activeRunCount: number;
  runHasEnded(id: string): boolean;
  /** The run of a frame, ended or not. */
  runOfFrame(frameId: string): string | undefined;
  /** The serial number's last revision plus one. */
  nextRevision(serialNumber: string): number;
}

/** The payload of the message that is being decided. */
export interface PayloadStore {
  readonly lengthBytes: number;
  /** CRC-32 (zlib) of the payload's first `lengthBytes`, continued from the CRC `start`. */
  crc32(lengthBytes: number, start: number): number;
  /**
   * Reserves room for the payload in the run's file of that kind and starts to write it. Called at most once for a message, and after the last
   * check that can refuse it.
   */
  store(runId: string, kind: StoredKind): Extent;
}
