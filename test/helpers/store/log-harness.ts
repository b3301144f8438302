import { createRandom } from "../../../core/random.js";
import type { Timers } from "../../../core/timers.js";
import type { FileSystem } from "../../../storage/disk/file-system-interface.js";
import {
  type CommittedBatch,
  forEachRecord,
  isOwnRecord,
  type RecordLocation,
} from "../../../storage/log/committed-batch.js";
import { Log } from "../../../storage/log/log.js";
import type { LogOptions, RecordInput } from "../../../storage/log/log-options.js";
import { SimulatedDisk } from "../disk/simulated-disk.js";

export const META = "/data/meta";
export const QUARANTINE = "/data/quarantine";
export const TEST_TYPE = 16;

/** Salts that are never the same twice. */
const saltRandom = createRandom(7);
const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder();

/** A disk with the folders of a log. */
export async function createDisk(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  await disk.makeDirectory(META);
  await disk.makeDirectory(QUARANTINE);
  for (const directory of ["/data", META, QUARANTINE, ""]) await disk.syncDirectory(directory);
  return disk;
}

/** A record's input whose bytes follow from its name, of a size that varies with it. */
export function recordOf(name: string, bodyBytes = 40): RecordInput {
  return {
    type: TEST_TYPE,
    timeUs: 1_700_000_000_000_000,
    index: textEncoder.encode(name),
    body: new Uint8Array(bodyBytes).fill(name.length + name.charCodeAt(name.length - 1)),
  };
}

export interface SeenRecord {
  sequence: number;
  name: string;
  body: Uint8Array;
  location: RecordLocation;
}

/** A log with what it delivered: the owner's records, and the names that the last opening state listed. */
export interface OpenedLog {
  log: Log;
  seen: SeenRecord[];
  names: string[];
  /** As of the last opening state delivered by recovery. */
  openingNames: string[] | null;
  timers: ManualTimers;
}

/** Opens a log whose opening state is the list of all names so far: what follows from the log can be compared with it. */
export async function openLog(fileSystem: FileSystem, overrides: Partial<LogOptions> = {}): Promise<OpenedLog> {
  const timers = createManualTimers();
  const opened: Omit<OpenedLog, "log"> = { seen: [], names: [], openingNames: null, timers };
  // It also has names that are not committed yet, as a recorder's own state does.
  const appended: string[] = [];
  const take = (batch: CommittedBatch): void => {
    forEachRecord(batch, (record, location) => {
      if (isOwnRecord(record.type)) {
        if (record.type === 1) {
          const text = textDecoder.decode(record.body);
          opened.openingNames = text === "" ? [] : text.split(",");
        }
        return;
      }
      const name = textDecoder.decode(record.index);
      opened.seen.push({ sequence: record.sequence, name, body: record.body.slice(), location });
      opened.names.push(name);
    });
  };
  const log = await Log.open({
    fileSystem,
    directory: META,
    quarantineDirectory: QUARANTINE,
    durability: "full",
    openingState: () => ({ index: new Uint8Array(0), body: textEncoder.encode(appended.join(",")) }),
    onRecords: (batch) => {
      take(batch);
      appended.splice(0, appended.length, ...opened.names);
    },
    onCommitted: take,
    timers,
    createSalt: () => saltRandom.integer(0, 0xffff_ffff),
    ...overrides,
  });
  const append = log.append.bind(log);
  log.append = (input) => {
    const sequence = append(input);
    appended.push(textDecoder.decode(input.index));
    return sequence;
  };
  return Object.assign(opened, { log });
}

/** Appends each as a record and waits until all are committed. */
export async function appendAll(log: Log, names: readonly string[], bodyBytes?: number): Promise<void> {
  await log.whenCommitted(Math.max(...names.map((name) => log.append(recordOf(name, bodyBytes)))));
}

/** One group each. */
export async function appendEach(log: Log, names: readonly string[], bodyBytes?: number): Promise<void> {
  for (const name of names) await appendAll(log, [name], bodyBytes);
}

export interface ManualTimers extends Timers {
  /** Runs what is due by now, whatever its delay. */
  fire(): void;
  readonly count: number;
}

export function createManualTimers(): ManualTimers {
  let pending = new Map<number, () => void>();
  let next = 0;
  return {
    set: (callback) => {
      pending.set(next, callback);
      return next++;
    },
    clear: (handle) => {
      pending.delete(handle as number);
    },
    fire: () => {
      const due = pending;
      pending = new Map();
      for (const callback of due.values()) callback();
    },
    get count() {
      return pending.size;
    },
  };
}

/** Waits, by turns of the event loop, until the condition holds; fails after very many. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 1_000_000; turn++) {
    if (condition()) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  throw new Error(`never: ${what}`);
}
