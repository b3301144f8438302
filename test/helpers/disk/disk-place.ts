import { segmentBaseOf } from "../../../storage/log/segment.js";
import type { DiskOperation } from "./simulated-disk.js";

/** What the store is doing when an operation comes. */
export type DiskPlace = "recovery" | "rotation" | "hint" | "retention" | "commit" | "capture" | "other";

/** Tells by an operation's path, and by the ones before it, what it belongs to. */
export class DiskPlaces {
  #ofFolder = new Map<string, DiskPlace>();

  placeOf({ kind, path }: DiskOperation, isOpening: boolean): DiskPlace {
    if (isOpening) return "recovery";
    const slash = path.lastIndexOf("/");
    if (kind === "syncDirectory") return this.#ofFolder.get(path) ?? "other";
    const place = placeOfFile(kind, path, path.slice(slash + 1));
    this.#ofFolder.set(path.slice(0, slash), place);
    return place;
  }
}

function placeOfFile(kind: DiskOperation["kind"], path: string, name: string): DiskPlace {
  if (path.includes("/captures/")) return kind === "unlink" || kind === "rmdir" ? "retention" : "capture";
  if (!path.includes("/meta/")) return "other";
  if (segmentBaseOf(name) !== undefined) return "commit";
  if (name.includes(".hint")) return "hint";
  return "rotation";
}
