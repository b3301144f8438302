import { execFileSync } from "node:child_process";
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { describeSpread } from "./statistics.js";

/** Everything about the machine that a figure depends on. */
export interface Machine {
  cpuModel: string;
  cpuCount: number;
  memoryBytes: number;
  kernel: string;
  nodeVersion: string;
  /** 1, 5 and 15 minute load averages when the benchmarks began. */
  loadAverage: [number, number, number];
  directory: string;
  fileSystem: string;
  fdatasync: FdatasyncProbe;
  gitRevision: string | null;
  gitDirty: boolean | null;
}

export interface FdatasyncProbe {
  medianUs: number;
  minimumUs: number;
  maximumUs: number;
  /** What these times say about the disk, for people. */
  verdict: string;
  plausible: boolean;
}

/** statfs(2) magic numbers of the file systems a cell or a developer's machine may have. */
const FILE_SYSTEMS = new Map<number, string>([
  [0xef53, "ext2/3/4"],
  [0x58465342, "xfs"],
  [0x9123683e, "btrfs"],
  [0x2fc12fc1, "zfs"],
  [0xf2f52010, "f2fs"],
  [0x01021994, "tmpfs"],
  [0x858458f6, "ramfs"],
  [0x794c7630, "overlayfs"],
  [0x6969, "nfs"],
  [0x65735546, "fuse"],
]);
const IN_MEMORY = new Set(["tmpfs", "ramfs"]);

/** No real flush to a disk was seen to take less. An fdatasync that only reaches the page cache takes 1 to 5 us. */
const FASTEST_PLAUSIBLE_FDATASYNC_US = 15;

export function fileSystemOf(directory: string): string {
  const magic = statfsSync(directory).type;
  return FILE_SYSTEMS.get(magic) ?? `unknown (0x${magic.toString(16)})`;
}

/** Times 4 KiB appends with fdatasync, like the log's smallest commits, and judges whether they reached a disk. */
export function probeFdatasync(directory: string, repetitions = 64): FdatasyncProbe {
  const path = join(directory, `fdatasync-probe-${process.pid}`);
  const block = new Uint8Array(4096).fill(0xa5);
  const descriptor = openSync(path, "wx", 0o600);
  const timesUs: number[] = [];
  try {
    for (let i = 0; i < repetitions; i++) {
      writeSync(descriptor, block);
      const start = performance.now();
      fdatasyncSync(descriptor);
      timesUs.push((performance.now() - start) * 1000);
    }
  } finally {
    closeSync(descriptor);
    rmSync(path);
  }
  const { median, minimum, maximum } = describeSpread(timesUs);
  return {
    medianUs: median,
    minimumUs: minimum,
    maximumUs: maximum,
    ...judgeFdatasync(fileSystemOf(directory), median),
  };
}

export function judgeFdatasync(fileSystem: string, medianUs: number): Pick<FdatasyncProbe, "plausible" | "verdict"> {
  if (IN_MEMORY.has(fileSystem)) {
    return { plausible: false, verdict: `${fileSystem} is memory: nothing here is durable; choose a disk with --dir` };
  }
  if (medianUs < FASTEST_PLAUSIBLE_FDATASYNC_US) {
    return { plausible: false, verdict: "too fast for a disk: fdatasync seems not to reach one" };
  }
  return { plausible: true, verdict: "plausible for a disk, or for a virtual one whose host may still cache" };
}

function git(...args: string[]): string | null {
  try {
    return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return null;
  }
}

function cpuModel(): string {
  const model = os.cpus()[0]?.model.trim() ?? "";
  if (model !== "" && model !== "unknown") return model;
  const line = existsSync("/proc/cpuinfo")
    ? /^model name\s*:\s*(.+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))
    : null;
  return line?.[1] ?? os.arch();
}

export function describeMachine(directory: string): Machine {
  const status = git("status", "--porcelain");
  return {
    cpuModel: cpuModel(),
    cpuCount: os.availableParallelism(),
    memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()}`,
    nodeVersion: process.version,
    loadAverage: os.loadavg() as [number, number, number],
    directory,
    fileSystem: fileSystemOf(directory),
    fdatasync: probeFdatasync(directory),
    gitRevision: git("rev-parse", "HEAD"),
    gitDirty: status === null ? null : status !== "",
  };
}
