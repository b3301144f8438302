import type { Timers } from "../../../core/timers.js";
import { CaptureStore } from "../../../storage/captures/capture-store.js";
import type { LockedDataDirectory } from "../../../storage/disk/data-directory.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import type { Log } from "../../../storage/log/log.js";
import type { StorageErrorData } from "../../../storage/storage-error.js";
import type { LogLines } from "../status/log-lines.js";
import { DiskRoom, type DiskRoomOptions } from "./disk-room.js";
import { ResourceShortage } from "./resource-shortage.js";
import { StoreWatch } from "./store-watch.js";

export interface StoreGuardsOptions extends LogLines {
  fileSystem: FileSystem;
  directory: LockedDataDirectory;
  timers: Timers;
  /** Microseconds since the Unix epoch. */
  wallUs(): number;
  /** Undefined: the defaults of disk-room.ts. */
  diskRoom: DiskRoomOptions | undefined;
  /** Undefined before the log is open. */
  log(): Log | undefined;
  /** See `StoreWatchOptions`. */
  restoreSocket(): Promise<boolean>;
  /** Called when the level of room, or what health shows of it, may have changed. */
  onRoomChange(): void;
  /** Called when health may have changed. */
  onChange(): void;
  /** Called when a capture file takes no more. */
  onFailure(failure: StorageErrorData): void;
}

/** What a store needs to be written: room on the disk, descriptors and memory, and its files in place. */
export interface StoreGuards {
  readonly room: DiskRoom;
  readonly shortage: ResourceShortage;
  readonly captures: CaptureStore;
  readonly watch: StoreWatch;
}

/** Creates the guards and the store of captures, which wait for each other's room. Nothing is started. */
export function createStoreGuards(options: StoreGuardsOptions): StoreGuards {
  const { fileSystem, directory, timers, wallUs, log, onChange, line } = options;
  const room: DiskRoom = new DiskRoom({
    fileSystem,
    directory: directory.path,
    timers,
    wallUs,
    thresholds: options.diskRoom ?? { low: null, critical: null, ballastBytes: null },
    pendingBytes: () => captures.pendingBytes + (log()?.pendingBytes ?? 0),
    onChange: options.onRoomChange,
    report: (what, error) => options.report(what, error, {}),
  });
  const shortage = new ResourceShortage({ room, timers, wallUs, onChange, line });
  const captures: CaptureStore = new CaptureStore({
    fileSystem,
    capturesPath: directory.capturesPath,
    onFailure: options.onFailure,
    room: shortage,
  });
  const { restoreSocket } = options;
  const watch = new StoreWatch({
    timers,
    wallUs,
    fileSystem,
    directory,
    log,
    captures,
    restoreSocket,
    onChange,
    line,
  });
  return { room, shortage, captures, watch };
}
