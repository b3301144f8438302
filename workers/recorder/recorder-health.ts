import type { ComponentRow, ComponentStatusValue } from "../../core/health.js";
import type { FileSystem } from "../../storage/file-system.js";
import type { LogFailure, Timers } from "../../storage/log-options.js";
import type { RecoveryReport } from "../../storage/recovery-report.js";

const INTERVAL_MS = 5_000;
const GIB = 1024 ** 3;
/** Below this share of the disk, or this many bytes where the disk is large, somebody should look. */
const LOW_ROOM_SHARE = 0.05;
const LOW_ROOM_BYTES = 10 * GIB;
/** Below this the next captures may not fit. */
const CRITICAL_ROOM_BYTES = 256 * 1024 ** 2;

export interface HealthSources {
  recovery: RecoveryReport;
  logFailure(): LogFailure | null;
  /** What ended the recorder's work, for people; null while it works. */
  recorderFailure(): string | null;
  /** Runs of which the log lost records. */
  damagedRuns: number;
  /** Bytes that the front has not taken yet, and whether the link waits for it. */
  ahead(): { bytes: number; isBehind: boolean };
  connections(): number;
}

/** The recorder's rows of health: log, disk, recorder. Sent when one changes. */
export class RecorderHealth {
  readonly #sources: HealthSources;
  readonly #fileSystem: FileSystem;
  readonly #directory: string;
  readonly #timers: Timers;
  readonly #send: (rows: ComponentRow[]) => void;
  #diskRow: ComponentRow = row("disk", "healthy", null);
  #lastSent = "";
  #timer: unknown = null;
  #isStopped = false;

  constructor(options: {
    sources: HealthSources;
    fileSystem: FileSystem;
    /** Whose disk is looked at. */
    directory: string;
    timers: Timers;
    send: (rows: ComponentRow[]) => void;
  }) {
    this.#sources = options.sources;
    this.#fileSystem = options.fileSystem;
    this.#directory = options.directory;
    this.#timers = options.timers;
    this.#send = options.send;
  }

  /** Looks at the disk and sends the rows; from then on every five seconds. */
  async start(): Promise<void> {
    await this.#lookAtDisk();
    this.update();
    this.#later();
  }

  /** Sends the rows if one changed. */
  update(): void {
    const rows = [this.#logRow(), this.#diskRow, this.#recorderRow()];
    const text = JSON.stringify(rows);
    if (text === this.#lastSent) return;
    this.#lastSent = text;
    this.#send(rows);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timers.clear(this.#timer);
  }

  #later(): void {
    this.#timer = this.#timers.set(() => {
      void this.#lookAtDisk().then(() => {
        if (this.#isStopped) return;
        this.update();
        this.#later();
      });
    }, INTERVAL_MS);
  }

  #logRow(): ComponentRow {
    const failure = this.#sources.logFailure();
    if (failure !== null) return row("log", "down", `since ${failure.params.since}: ${failure.message}`);
    const { corruptionCount, lostRecords, quarantinedBytes } = this.#sources.recovery;
    if (corruptionCount === 0) return row("log", "healthy", null);
    return row(
      "log",
      "degraded",
      `opening found ${corruptionCount} damaged places: ${lostRecords} records lost, ${quarantinedBytes} bytes in quarantine`,
    );
  }

  #recorderRow(): ComponentRow {
    const failure = this.#sources.recorderFailure();
    if (failure !== null) return row("recorder", "down", failure);
    const { bytes, isBehind } = this.#sources.ahead();
    if (isBehind) {
      return row("recorder", "degraded", `producers wait: the view is ${Math.round(bytes / 1024 ** 2)} MiB behind`);
    }
    const { damagedRuns } = this.#sources;
    if (damagedRuns > 0) {
      return row("recorder", "degraded", `${damagedRuns} runs that have not ended lost records to damage of the log`);
    }
    const connections = this.#sources.connections();
    return row("recorder", "healthy", `${connections} producer${connections === 1 ? "" : "s"} connected`);
  }

  async #lookAtDisk(): Promise<void> {
    try {
      const { freeBytes, totalBytes } = await this.#fileSystem.room(this.#directory);
      const low = Math.min(LOW_ROOM_BYTES, totalBytes * LOW_ROOM_SHARE);
      const status = freeBytes < CRITICAL_ROOM_BYTES ? "down" : freeBytes < low ? "degraded" : "healthy";
      // In tenths of a GiB: a row that changed with every write would be sent with every look.
      const detail = `${(freeBytes / GIB).toFixed(1)} of ${(totalBytes / GIB).toFixed(1)} GiB free`;
      this.#diskRow = row("disk", status, detail);
    } catch (error) {
      this.#diskRow = row("disk", "down", `the disk does not answer: ${(error as Error).message}`);
    }
  }
}

function row(key: string, status: ComponentStatusValue, detail: string | null): ComponentRow {
  return { key, status, id: null, detail, enabled: null, required: true };
}
