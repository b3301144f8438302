import type { Extent } from "../capture/capture.js";
import type { ProgramDocument } from "../run/program.js";
import type { RunState, StoredKind } from "../run/run-state.js";
import type { CellIdentity } from "./change.js";

/** What deciding a message needs to know: the recorder's state, read only, with every accepted message applied. */
export interface World {
  cell(): CellIdentity;
  hasComponent(key: string): boolean;
  readonly componentCount: number;
  /** Undefined when unknown or deleted. */
  program(id: string): ProgramDocument | undefined;
  readonly programCount: number;
  /** Highest run id; null before the first run. */
  readonly lastRunId: string | null;
  /** A run that has not ended. */
  activeRun(id: string): RunState | undefined;
  readonly activeRunCount: number;
  runHasEnded(id: string): boolean;
  /** The run of a frame, ended or not. */
  runOfFrame(frameId: string): string | undefined;
  /** One above the last revision of the serial number. */
  nextRevision(serialNumber: string): number;
}

/** The payload of the message at hand. */
export interface PayloadStore {
  readonly lengthBytes: number;
  /** CRC-32 (zlib) of the first `lengthBytes` of it, continued from `start`. */
  crc32(lengthBytes: number, start: number): number;
  /**
   * Reserves the place of the payload in the run's file of that kind and starts to write it there. Called at most once a
   * message, and last: nothing can be refused any more.
   */
  store(runId: string, kind: StoredKind): Extent;
}
