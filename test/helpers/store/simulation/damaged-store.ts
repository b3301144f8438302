import type { Random } from "../../../../core/random.js";
import { verifyHint } from "../../../../storage/log/hint-format.js";
import type { RecorderOptions } from "../../../../workers/recorder/recorder-messages.js";
import type { SimulatedDisk } from "../../disk/simulated-disk.js";
import { checkDisk } from "../checked-disk.js";
import {
  baseOf,
  damageDisk,
  doubledSegments,
  expectedOfSegment,
  isHealed,
  type LossContext,
  type StoreDamage,
} from "./store-damage.js";
import type { StoreLife } from "./store-life.js";
import type { StoreModel } from "./store-model.js";
import { CRASH_MODES } from "./strike.js";

/** What check says of a log, of hint files and of quarantine that are not as they were. */
const FAULTS: ReadonlySet<string> = new Set([
  ...[
    "header_copy_damaged",
    "segment_unreadable",
    "opening_state_damaged",
    "record_damaged",
    "sequences_missing",
    "log_lost",
  ],
  ...["record_undecodable", "hint_damaged", "hint_differs", "quarantined", "unreadable"],
]);

export interface DamagedStoreOptions {
  /** A copy of the disk of a store that had been closed. It is to be damaged. */
  disk: SimulatedDisk;
  directory: string;
  /** What the store held. */
  model: StoreModel;
  random: Random;
  /** Randomness for the power cuts. */
  cuts: Random;
  /** What went wrong is added to it. */
  faults: string[];
  recorderOptions(): RecorderOptions;
  /** @param isCompared the model judges the records that are shown */
  newLife(disk: SimulatedDisk, isCompared: boolean, random: Random): StoreLife;
}

/**
 * A store with damage in one place. Check finds the damage before and after an opening. An opening tells of it where it
 * reads it: in a segment, a hint file, or the record of a run. Damaged bytes are never served. What no store can tell
 * from a torn tail, or from what never was, may stay untold. A power cut after the opening changes nothing of this, and
 * quarantine keeps what was put there.
 */
export class DamagedStore {
  readonly #options: DamagedStoreOptions;
  readonly #damage: StoreDamage;
  readonly #context: LossContext;
  /** True where it must be told, false where it cannot be, null where it may be. */
  readonly #isDamage: boolean | null;
  /** The last record before the damage. */
  readonly #keptSequence: number;
  #judgeCut: (() => Promise<void>) | null = null;

  /** Damages one file of the store; null when nothing changed. */
  static async damaged(options: DamagedStoreOptions): Promise<DamagedStore | null> {
    const { disk, directory, model, random } = options;
    // Without hint files an opening reads every segment.
    if (random.chance(0.5)) for (const path of disk.paths().filter(isHint)) disk.removeFile(path);
    const stored = model.storedLengths();
    const bases = disk.paths().flatMap((path) => (path.endsWith(".seg") ? [baseOf(path)] : []));
    const doubled = doubledSegments(disk);
    const damage = damageDisk(disk, random, (path) => {
      if (path.endsWith(".seg") || isHint(path)) return disk.bytesOf(path).length;
      return stored.get(path.slice(`${directory}/captures/`.length)) ?? 0;
    });
    if (damage === null) return null;
    const hintedSequence = hintedUpTo(disk);
    const hasOtherFiles = (await disk.readDirectory(`${directory}/captures`)).length > 0;
    return new DamagedStore(options, damage, { bases, doubled, hasOtherFiles, hintedSequence });
  }

  private constructor(options: DamagedStoreOptions, damage: StoreDamage, context: LossContext) {
    this.#options = options;
    this.#damage = damage;
    this.#context = context;
    const { isDamage, keptSequence } = expectedOf(damage, context);
    this.#isDamage = isDamage;
    this.#keptSequence = keptSequence;
  }

  /** No store can tell it. */
  get isUntold(): boolean {
    return this.#isDamage === false;
  }

  /** Judges check, and an opening. */
  async judge(): Promise<void> {
    const { disk, newLife, random, model } = this.#options;
    await this.#judgeCheck("before an opening", disk);
    if (this.#damage.path.includes("/captures/")) return;
    // If the loss of records is not told, their sequence numbers are used again.
    const life = newLife(disk, this.#isDamage === true, random);
    const options = { ...this.#options.recorderOptions(), retention: { days: null, bytes: null } };
    await life.start(options);
    this.#judgeOpening(life);
    // What lies after all proof is cut, as a torn tail is. A run whose record cannot be read is not shown; all others
    // are as they were.
    if (life.ready?.recovery.findingCount === 0 && this.#isDamage) model.judgeShown(await life.runs(model.runIds));
    this.#takeFaults(`with ${this.#damage.what}`);
    await this.#judgeCheck("behind an opening", disk);
    this.#cut(options);
    life.end("keep");
  }

  /**
   * Judges another opening, after a power cut after the first one, if there was one. It comes last, since the turns of
   * the event loop that it takes are no part of the history.
   */
  async judgeCut(): Promise<void> {
    await this.#judgeCut?.();
  }

  async #judgeCheck(when: string, disk: SimulatedDisk): Promise<void> {
    const { what } = this.#damage;
    const { ok, findings } = await checkDisk(disk, this.#options.directory);
    if (this.#isDamage && ok && !this.#isHealed(disk)) this.#fault(`check ${when} does not see ${what}`);
    // If a tombstone was cut off, its captures are missing. Only that is reported.
    const tooMuch = findings.filter(({ code }) => FAULTS.has(code));
    if (this.isUntold && tooMuch.length > 0)
      this.#fault(`check ${when} sees too much in ${what}: ${JSON.stringify(tooMuch)}`);
  }

  #judgeOpening(life: StoreLife): void {
    const { what, path } = this.#damage;
    const { records } = this.#options.model;
    const recovery = life.ready?.recovery;
    const isTold = (recovery?.corruptionCount ?? 0) > 0;
    // Damage in a segment that was taken from its hint file is found only by those who read the segment.
    const isRead = life.hints === 0 || isHint(path);
    if (this.#isDamage && !isTold && isRead) this.#fault(`opening does not tell of ${what}`);
    if (this.#isDamage === null && !isTold && life.lastSequence < records)
      this.#fault(`records up to ${records} are lost with ${what}, and nothing tells it`);
    if (this.isUntold && isTold) this.#fault(`opening tells too much of ${what}: ${JSON.stringify(recovery)}`);
    if (life.lastSequence < this.#keptSequence)
      this.#fault(`records ${life.lastSequence + 1} to ${this.#keptSequence} stand before ${what}, and are lost`);
  }

  /** Cuts the power after the opening, in one mode for each damage: all three would take as long as all else. */
  #cut(options: RecorderOptions): void {
    const { disk, directory, cuts, newLife } = this.#options;
    const { what } = this.#damage;
    const kept = disk.paths().filter((path) => path.startsWith(`${directory}/quarantine/`));
    const mode = cuts.pick(CRASH_MODES);
    const when = `behind an opening and a power cut (${mode})`;
    const cut = disk.fork(mode, cuts);
    this.#judgeCut = async () => {
      for (const path of kept) if (!cut.has(path)) this.#fault(`${path} is gone ${when}, with ${what}`);
      await this.#judgeCheck(when, cut);
      const life = newLife(cut, this.#isDamage === true, cuts);
      await life.start(options);
      if (this.#isDamage && !this.#isHealed(cut) && life.logDetail === null && life.hints === 0)
        this.#fault(`health does not tell ${when} of ${what}`);
      if (this.isUntold && (life.ready?.recovery.corruptionCount ?? 0) > 0)
        this.#fault(`opening tells too much ${when} of ${what}`);
      if (life.lastSequence < this.#keptSequence)
        this.#fault(`records ${life.lastSequence + 1} to ${this.#keptSequence} are lost ${when}, with ${what}`);
      this.#takeFaults(`${when}, with ${what}`);
      await this.#judgeCheck(`${when}, opened again`, cut);
      life.end("keep");
    };
  }

  #isHealed(disk: SimulatedDisk): boolean {
    return isHealed(disk, this.#damage, (rest) => expectedOf(rest, this.#context).isDamage === false);
  }

  #fault(fault: string): void {
    this.#options.faults.push(fault);
  }

  /** Those that the model has found. */
  #takeFaults(when: string): void {
    for (const fault of this.#options.model.faults.splice(0)) this.#fault(`${fault}, ${when}`);
  }
}

function isHint(path: string): boolean {
  return path.endsWith(".hint");
}

/** A missing hint file is not reported as damage: the log has everything that was in it. All other damage outside of the log is. */
function expectedOf(damage: StoreDamage, context: LossContext): ReturnType<typeof expectedOfSegment> {
  if (damage.path.endsWith(".seg")) return expectedOfSegment(damage, context);
  return { isDamage: damage.after !== null || !isHint(damage.path), keptSequence: 0 };
}

/** The last record of which a hint file says that it was durable. */
function hintedUpTo(disk: SimulatedDisk): number {
  const path = disk.paths().findLast(isHint);
  try {
    return path === undefined ? 0 : (verifyHint(disk.bytesOf(path))?.lastSequence ?? 0);
  } catch {
    return 0;
  }
}
