import type { LogLine } from "../recorder-messages.js";
import type { DiskRoom, RoomLevel } from "./disk-room.js";

export interface BackPressureOptions {
  /** The link, which makes messages wait. */
  link(): { setPaused(paused: boolean): void; setPayloadsHeld(held: boolean): void };
  room(): Pick<DiskRoom, "level" | "row">;
  isFrontBehind(): boolean;
  isProcessingBehind(): boolean;
  line(level: LogLine["level"], message: string, fields: LogLine["fields"]): void;
}

/**
 * Makes producers wait while the service cannot keep up. Captures wait for room on the disk and for processing. All
 * messages wait for a full disk and for the front. Reads go on.
 */
export class BackPressure {
  readonly #options: BackPressureOptions;
  #level: RoomLevel = "enough";

  constructor(options: BackPressureOptions) {
    this.#options = options;
  }

  /** Pauses the link, or lets it go on. Call it when anything that it depends on has changed. */
  update(): void {
    const { link, room, isFrontBehind, isProcessingBehind } = this.#options;
    const { level } = room();
    link().setPaused(isFrontBehind() || level === "critical");
    link().setPayloadsHeld(level !== "enough" || isProcessingBehind());
  }

  processingChanged(): void {
    this.update();
    const { isProcessingBehind, line } = this.#options;
    if (isProcessingBehind()) line("warn", "processing is behind: captures wait", {});
    else line("info", "processing has caught up: captures go on", {});
  }

  roomChanged(): void {
    const { line, room } = this.#options;
    const { level, row } = room();
    if (level === this.#level) return;
    this.#level = level;
    this.update();
    const detail = { room: level, detail: row.detail };
    if (level === "enough") line("info", "the disk has room again: everything goes on", detail);
    else if (level === "low") line("warn", "the disk has little room: captures wait", detail);
    else line("error", "the disk is full: all messages wait", detail);
  }
}
