import { createRequire } from "node:module";
import { PEERS_PACKAGE } from "./sqlite.js";

/** What the benchmarks use of sharp (https://sharp.pixelplumbing.com). */
export interface SharpImage {
  toColourspace(name: string): SharpImage;
  png(options: { compressionLevel: number; adaptiveFiltering: boolean }): SharpImage;
  toBuffer(): Promise<Buffer>;
}

export interface Sharp {
  (input: Uint16Array, options: { raw: { width: number; height: number; channels: 1 } }): SharpImage;
  concurrency(threads: number): number;
  cache(isOn: boolean): unknown;
}

/** sharp with one thread, or why it cannot be used here. */
export function loadSharp(): { sharp: Sharp } | { why: string } {
  try {
    const sharp = createRequire(PEERS_PACKAGE)("sharp") as Sharp;
    sharp.concurrency(1);
    sharp.cache(false);
    return { sharp };
  } catch (error) {
    const [reason = ""] = (error as Error).message.split("\n");
    return { why: `sharp cannot be loaded (${reason}); node .ci/setup-peers.mjs installs it where that is possible` };
  }
}
