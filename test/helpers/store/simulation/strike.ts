import type { Random } from "../../../../core/random.js";
import type { DiskPlace } from "../../disk/disk-place.js";
import type { DiskOperation } from "../../disk/simulated-disk.js";

/** What a power cut does with writes that were not synced: the disk drops, keeps or tears them. */
export const CRASH_MODES = ["drop", "keep", "tear"] as const;
export type CrashMode = (typeof CRASH_MODES)[number];

const PLACES = ["any", "commit", "capture", "rotation", "retention", "recovery", "hint"] as const;
/** In a life there are many operations of the one kind and few of the other. */
const MOST_BEFORE_STRIKE: Partial<Record<Strike["place"], number>> = { any: 80, commit: 30, capture: 30, retention: 3 };

/** What befalls a life, when it comes to that place. */
export interface Strike {
  place: DiskPlace | "any";
  /** So many operations that it could strike go by before. */
  after: number;
  /** The machine or the process ends; a sync fails; anything that writes fails; the disk is full from here on. */
  kind: "crash" | "kill" | "sync" | "write" | "full";
}

/** @param hasCrashed the life before ended in a crash: what that left, a recovery may find half put right */
export function randomStrike(random: Random, hasCrashed: boolean): Strike {
  const place = hasCrashed && random.chance(0.4) ? "recovery" : random.pick(PLACES);
  const kind = random.pick(["crash", "crash", "crash", "kill", "kill", "sync", "write"] as const);
  return { place, after: random.integer(0, MOST_BEFORE_STRIKE[place] ?? 8), kind };
}

const WRITING: ReadonlySet<DiskOperation["kind"]> = new Set([
  "write",
  "truncate",
  "create",
  "rename",
  "unlink",
  "mkdir",
]);

/** Whether the strike can fall into this operation. */
export function canStrike(strike: Strike, operation: DiskOperation, place: DiskPlace, isOpening: boolean): boolean {
  // If the opening made too few operations for it, it strikes later.
  const isThere = strike.place === "any" || strike.place === place || (strike.place === "recovery" && !isOpening);
  if (!isThere) return false;
  if (strike.kind === "sync") return operation.kind === "datasync" || operation.kind === "syncDirectory";
  return strike.kind !== "write" || WRITING.has(operation.kind);
}
