/** What the kernel says of a process: memory and open files. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export function residentBytes(pid: number): number {
  return statusBytes(pid, "VmRSS");
}

/** The most that it was since the process began. */
export function peakResidentBytes(pid: number): number {
  return statusBytes(pid, "VmHWM");
}

function statusBytes(pid: number, name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(match?.[1] ?? Number.NaN) * 1024;
}

/** Open files by kind: `seg`, `cap`, `rep`, `deleted`, `socket`, `pipe`, … */
export function openFilesByKind(pid: number): Map<string, number> {
  const kinds = new Map<string, number>();
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    let target: string;
    try {
      target = readlinkSync(`/proc/${pid}/fd/${name}`);
    } catch {
      // Closed meanwhile.
      continue;
    }
    const kind = kindOf(target);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return kinds;
}

function kindOf(target: string): string {
  if (target.endsWith(" (deleted)")) return "deleted";
  return /^(\w+):/.exec(target)?.[1] ?? /\.(seg|cap|rep|snap)$/.exec(target)?.[1] ?? "other";
}

/** The line that fits the points best: its slope. */
export function slopeOf(points: readonly { x: number; y: number }[]): number {
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / points.length;
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / points.length;
  let numerator = 0;
  let denominator = 0;
  for (const { x, y } of points) {
    numerator += (x - meanX) * (y - meanY);
    denominator += (x - meanX) ** 2;
  }
  return denominator === 0 ? 0 : numerator / denominator;
}
