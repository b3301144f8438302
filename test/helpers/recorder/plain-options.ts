import type { RecorderOptions } from "../../../workers/recorder/recorder-messages.js";

/** A recorder without the cell link's TCP, and without retention. */
export const PLAIN_OPTIONS = {
  durability: "full",
  serviceVersion: "1.2.3",
  cellSocketPath: null,
  cellListen: null,
  cellToken: null,
  finalizeTimeoutMs: 30_000,
  orphanTimeoutMs: null,
  retention: { days: null, bytes: null },
} as const satisfies Partial<RecorderOptions>;
