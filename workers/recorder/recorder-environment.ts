import type { Timers } from "../../core/timers.js";
import type { DataDirectoryOptions } from "../../storage/disk/data-directory.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import type { LinkServer } from "../cell-link/link-server.js";
import type { LoopDelay } from "../loop-delay.js";
import type { startDispatcher } from "../webhooks/dispatcher/dispatcher-handle.js";
import type { ArtefactMaker } from "./captures/artefact-maker.js";
import type { FrontToRecorder, RecorderToFront } from "./recorder-messages.js";

/** What the recorder needs from outside, so that a test can replace the disk, the time and the front. */
export interface RecorderEnvironment {
  fileSystem: FileSystem;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  send(message: RecorderToFront, transfer?: ArrayBuffer[]): void;
  /** Delivers all of the front's messages to `receive`, from the first one on. */
  onMessage(receive: (message: FrontToRecorder) => void): void;
  /** Computes artefacts of captures. Without it captures are not processed. */
  artefacts?: ArtefactMaker;
  /** Without it deliveries are recorded but not sent. */
  startDispatcher?: typeof startDispatcher;
  /** How late the event loop was since the last call. */
  loopDelay?(): LoopDelay;
  /** Replaces the machine's sockets in a simulation: the directory's lock, and where producers connect. */
  sockets?: { lock: NonNullable<DataDirectoryOptions["lock"]>; listen(link: LinkServer): void };
}
