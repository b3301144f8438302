import { createRandom, type Random } from "../../../core/random.js";
import { verifyHint } from "../../../storage/log/hint-format.js";
import type { RecorderOptions } from "../../../workers/recorder/recorder-messages.js";
import type { DiskPlace } from "../disk/disk-place.js";
import { SimulatedDisk } from "../disk/simulated-disk.js";
import { turns } from "../disk/slow-disk.js";
import { SimulatedProducer } from "../link/simulated-producer.js";
import {
  baseOf,
  checkDisk,
  damageDisk,
  doubledSegments,
  expectedOfSegment,
  isHealed,
  type LossContext,
  type StoreDamage,
} from "./store-damage.js";
import { CRASH_MODES, StoreLife, type Strike } from "./store-life.js";
import { StoreModel } from "./store-model.js";
import { StoreWorkload } from "./store-workload.js";

const DIRECTORY = "/data";
const SECOND_US = 1_000_000;
const DAY_US = 86_400 * SECOND_US;
/** What does not come to its end within so many turns of the event loop never does. */
const MOST_TURNS = 20_000;
const PLACES = ["any", "commit", "capture", "rotation", "retention", "recovery", "hint"] as const;
/** In a life there are many operations of the one kind and few of the other. */
const MOST_BEFORE_STRIKE: Partial<Record<Strike["place"], number>> = { any: 80, commit: 30, capture: 30, retention: 3 };

/** What check says of a log, hint files and of quarantine that are not as they were. */
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

export interface SimulationReport extends SimulationCounts {
  /** What went wrong; nothing should. */
  faults: string[];
  /** Of each life, one after the other, what its strike fell into; null where none did. */
  struck: (DiskPlace | null)[];
  /** Openings that a failure or a full disk ended. */
  failedOpenings: number;
}

export interface SimulationCounts {
  counts: {
    lives: number;
    records: number;
    acknowledged: number;
    refused: number;
    removedRuns: number;
    fullDisks: number;
    /** Lives in which a disk refused something for want of room. */
    refusedForRoom: number;
    /** Lives that had failed, after which the service was started again while the machine went on. */
    restarts: number;
    /** Openings that an error of a read ended. */
    unreadable: number;
    /** Stores that were damaged at the end, each in one place. */
    damages: number;
    /** Of them: what no store can tell from a torn tail, or from what never was. */
    untold: number;
    /** Hint files that were written, and segments that openings took from theirs. */
    hintsWritten: number;
    hints: number;
  };
  /** Of machine or process, by what they fell into; `idle`: between operations. */
  crashes: Partial<Record<DiskPlace | "idle", number>>;
  /** Failed syncs and writes. */
  errors: Partial<Record<DiskPlace, number>>;
}

export function noCounts(): SimulationCounts {
  return {
    counts: {
      lives: 0,
      records: 0,
      acknowledged: 0,
      refused: 0,
      removedRuns: 0,
      fullDisks: 0,
      refusedForRoom: 0,
      restarts: 0,
      unreadable: 0,
      damages: 0,
      untold: 0,
      hintsWritten: 0,
      hints: 0,
    },
    crashes: {},
    errors: {},
  };
}

/** Instead of random lives: one of so many steps that this befalls, then the one in which all must come right. */
export interface SimulationPlan {
  /** What befalls lives before that one, one each: what they leave its opening finds. */
  before?: readonly Strike[];
  strike: Strike;
  mode: (typeof CRASH_MODES)[number];
  /** If only the process failed, it restarts without a power cut. */
  restarts?: boolean;
  steps: number;
}

/**
 * One random history of a store on a simulated disk: lives of its recorder one after another, each ended by something, judged by a model
 * that knows what was sent and what was answered. The same seed is the same history.
 */
export async function simulateStore(
  seed: number,
  plan: SimulationPlan | null = null,
  /** False: a power cut follows each failure, as in the histories that found faults before there were restarts. */
  restarts = true,
): Promise<SimulationReport> {
  return await new StoreSimulation(seed, plan, restarts).run();
}

class StoreSimulation {
  readonly #random: Random;
  readonly #plan: SimulationPlan | null;
  readonly #producers: SimulatedProducer[];
  readonly #workload: StoreWorkload;
  readonly #model: StoreModel;
  readonly #segmentBytes: number;
  readonly #ballastBytes: number;
  readonly #faults: string[] = [];
  readonly #report: SimulationReport = {
    faults: this.#faults,
    struck: [],
    failedOpenings: 0,
    ...noCounts(),
  };
  #disk = new SimulatedDisk();
  /** The last life's end was one of the process or the machine: what it left the next may find half put right. */
  #hasCrashed = false;
  /** Behind the last life there was no power cut, though it had failed. */
  #isRestart = false;
  #wallUs = 1_795_000_000 * SECOND_US;

  /** Of its own, so that histories without restarts stay as they were. */
  readonly #restarts: Random | null;
  /** Of the power cuts behind openings that met damage: of its own likewise. */
  readonly #cuts: Random;
  /** What judges each of them, once all else is over: the turns that it takes are none of the history's. */
  readonly #cutJudges: (() => Promise<void>)[] = [];

  constructor(seed: number, plan: SimulationPlan | null, restarts: boolean) {
    this.#plan = plan;
    this.#restarts = restarts ? createRandom(seed + 1_000_000_007) : null;
    this.#cuts = createRandom(seed + 2_000_000_011);
    const random = createRandom(seed);
    this.#random = random;
    const names = ["controller", "head-1", "head-2"].slice(0, random.integer(1, 3));
    this.#producers = names.map((name) => new SimulatedProducer(name));
    this.#workload = new StoreWorkload(random);
    this.#model = new StoreModel(this.#producers);
    this.#segmentBytes = random.pick([700, 2_000, 6_000]);
    this.#ballastBytes = random.pick([0, 1_000]);
  }

  async run(): Promise<SimulationReport> {
    const { counts } = this.#report;
    for (const strike of this.#plan?.before ?? []) if (this.#faults.length === 0) await this.#live(strike);
    for (let lives = this.#plan ? 1 : this.#random.integer(3, 7); lives > 0 && this.#faults.length === 0; lives--) {
      await this.#live(this.#plan?.strike ?? this.#strike());
    }
    const isRestart = this.#isRestart;
    if (this.#faults.length === 0) await this.#live(null);
    // Behind it comes the first power cut since a failure that was only restarted from: another opening shows what that took.
    if (this.#faults.length === 0 && isRestart) await this.#live(null);
    if (this.#faults.length === 0) await this.#check("at the end");
    for (let times = this.#plan ? 0 : 3; times > 0 && this.#faults.length === 0; times--) await this.#damage();
    for (const judge of this.#cutJudges) if (this.#faults.length === 0) await judge();
    counts.records = this.#model.records;
    counts.removedRuns = this.#model.removedRuns;
    for (const { answers } of this.#producers) {
      for (const answer of answers) counts[answer === null ? "acknowledged" : "refused"]++;
    }
    return this.#report;
  }

  #strike(): Strike {
    const random = this.#random;
    // What one crash left the next may find half put right.
    const place = this.#hasCrashed && random.chance(0.4) ? "recovery" : random.pick(PLACES);
    const kind = random.pick(["crash", "crash", "crash", "kill", "kill", "sync", "write"] as const);
    return { place, after: random.integer(0, MOST_BEFORE_STRIKE[place] ?? 8), kind };
  }

  /** From an opening to an end. Without a strike everything that was sent is answered, and the end is a clean one. */
  async #live(strike: Strike | null): Promise<void> {
    const random = this.#random;
    this.#report.counts.lives++;
    this.#wallUs += random.chance(0.2) ? random.integer(1, 40) * DAY_US : SECOND_US;
    if (random.chance(0.3)) await this.#check("before an opening");
    const life = this.#newLife(this.#disk, strike);
    const known = this.#model.records;
    if (!(await this.#open(life, strike))) {
      this.#model.forgetMarksBehind(known);
    } else {
      await this.#judgeOpened(life);
      await this.#work(life, strike === null);
      if (!life.isOver && (strike === null || random.chance(0.3))) await this.#stop(life);
    }
    for (const producer of this.#producers) producer.disconnect();
    this.#end(life);
  }

  #newLife(
    disk: SimulatedDisk,
    strike: Strike | null,
    isWhole = true,
    judges = true,
    random: Random = this.#random,
  ): StoreLife {
    return new StoreLife({
      disk,
      random,
      wallUs: () => {
        this.#wallUs += random.integer(0, 400);
        return this.#wallUs;
      },
      ...{ strike, isWhole },
      onRecord: (record) => judges && this.#model.take(record),
      onHinted: (record) => judges && this.#model.takeHinted(record),
    });
  }

  #options(strike: Strike | null): RecorderOptions {
    const policies = [
      { days: null, bytes: null },
      { days: null, bytes: 500 },
      { days: null, bytes: 2_000 },
      { days: 2, bytes: null },
    ];
    const policy = strike?.place === "retention" || this.#plan !== null ? policies[1] : this.#random.pick(policies);
    return {
      dataDirectory: DIRECTORY,
      durability: "full",
      serviceVersion: "1",
      ...{ cellSocketPath: null, cellListen: null, cellToken: null },
      ...{ finalizeTimeoutMs: 2_000, orphanTimeoutMs: null },
      retention: policy ?? { days: null, bytes: null },
      segmentBytes: this.#segmentBytes,
      diskRoom: { low: { bytes: 2_000 }, critical: { bytes: 800 }, ballastBytes: this.#ballastBytes },
    };
  }

  /** False when the opening was struck. Now and then a read fails: the opening must say so, and another go well. */
  async #open(life: StoreLife, strike: Strike | null): Promise<boolean> {
    const { disk } = life;
    let failsAt =
      this.#plan === null && this.#random.chance(0.05) ? this.#random.integer(0, 30) : Number.POSITIVE_INFINITY;
    let hasFailed = false;
    // A hint file that cannot be read is done without.
    disk.onRead = (path) => {
      if (!life.isOpening || path.includes(".hint")) return undefined;
      if (failsAt-- > 0) return undefined;
      hasFailed = true;
      return "EIO";
    };
    const reading = failsAt;
    try {
      await life.start(this.#options(strike));
    } catch (error) {
      if (hasFailed) this.#report.counts.unreadable++;
      else this.#faults.push(`could not be opened: ${(error as Error).stack}`);
    }
    if (life.hasFailed && life.isOpening && !life.isDead) this.#report.failedOpenings++;
    if (life.hasFailed) disk.limitBytes = Number.POSITIVE_INFINITY;
    disk.onRead = () => undefined;
    if (hasFailed && reading >= 0 && !life.isOver) this.#faults.push("opened in spite of a read that failed");
    return life.ready !== null && !life.isOver;
  }

  async #judgeOpened(life: StoreLife): Promise<void> {
    if (life.lastSequence < this.#model.records) {
      this.#faults.push(`records ${life.lastSequence + 1} to ${this.#model.records} were committed and are lost`);
    }
    const recovery = life.ready?.recovery;
    if (recovery?.corruptionCount !== 0) this.#faults.push(`a crash is no corruption: ${JSON.stringify(recovery)}`);
    await this.#judgeRuns(life);
  }

  async #judgeRuns(life: StoreLife): Promise<void> {
    const model = this.#model;
    let runs = await life.runs(model.runIds);
    // What was committed while they were read may be in some of them.
    for (let records = -1; records !== model.records && !life.isOver; runs = await life.runs(model.runIds)) {
      records = model.records;
    }
    if (life.isOver) return;
    this.#model.judgeAnswers();
    this.#model.judgeRuns(runs, (path) => {
      const whole = `${DIRECTORY}/captures/${path}`;
      return life.disk.has(whole) ? life.disk.bytesOf(whole) : undefined;
    });
    this.#faults.push(...this.#model.faults.splice(0));
  }

  async #work(life: StoreLife, isLast: boolean): Promise<void> {
    const random = this.#random;
    const isUpkeep = life.place === "retention";
    const steps = this.#plan?.steps ?? random.integer(5, isLast ? 15 : 40);
    for (let step = steps; step > 0 && !life.isDead; step--) {
      const producer = this.#anyProducer(life, 0.7);
      for (let count = random.integer(0, 5); count > 0; count--) this.#sendFrom(producer);
      if (random.chance(0.05)) producer.repeat();
      await turns(random.integer(0, 6));
      if (random.chance(0.15)) life.timers.advance(random.pick([250, 1_000, 5_000]));
      // Retention looks again.
      if (random.chance(isUpkeep ? 0.3 : 0.04)) life.timers.advance(60_000);
      if (random.chance(0.03)) producer.disconnect();
      // Whoever reads meanwhile finds every run.
      if (random.chance(0.2)) void life.runs(this.#model.runIds);
      if (this.#plan === null && random.chance(0.02)) this.#wallUs += 3 * DAY_US;
      if (this.#plan === null && random.chance(0.01)) await this.#fillDisk(life);
      if (life.hasFailed && random.chance(0.3)) return;
    }
    // A full disk has room again, and all goes on by itself; also where it became full beside everything else.
    const wasFull = life.disk.limitBytes !== Number.POSITIVE_INFINITY;
    life.disk.limitBytes = Number.POSITIVE_INFINITY;
    if (life.isOver || !(isLast || wasFull || this.#plan !== null)) return;
    await this.#drain(life);
    await this.#judgeRuns(life);
    await this.#settle(life);
  }

  #anyProducer(life: StoreLife, connects: number): SimulatedProducer {
    const producer = this.#random.pick(this.#producers);
    if (!producer.isConnected && this.#random.chance(connects)) life.connect(producer);
    return producer;
  }

  #sendFrom(producer: SimulatedProducer): void {
    producer.send(this.#workload.next(producer === this.#producers[0]));
  }

  /** The disk fills while messages come, and has room again: all goes on by itself. */
  async #fillDisk(life: StoreLife): Promise<void> {
    this.#report.counts.fullDisks++;
    life.disk.limitBytes = life.disk.usedBytes + this.#random.integer(0, 3_000);
    for (let step = 0; step < 8 && !life.isOver; step++) {
      this.#sendFrom(this.#anyProducer(life, 1));
      await turns(5);
      if (this.#random.chance(0.3)) life.timers.advance(1_000);
    }
    life.disk.limitBytes = Number.POSITIVE_INFINITY;
    await this.#drain(life);
  }

  /** A second goes by, and what had filled the disk is gone. */
  #pass(life: StoreLife): void {
    life.disk.limitBytes = Number.POSITIVE_INFINITY;
    life.timers.advance(1_000);
  }

  /** Until everything that was sent is answered. */
  async #drain(life: StoreLife): Promise<void> {
    for (let turn = 1; turn < MOST_TURNS && !life.isOver; turn++) {
      if (this.#producers.every(({ waiting }) => waiting === 0)) return;
      for (const producer of this.#producers) if (!producer.isConnected) life.connect(producer);
      if (turn % 50 === 0) this.#pass(life);
      await turns(1);
    }
    if (!life.isOver) this.#faults.push(`not all was answered: ${this.#producers.map(({ waiting }) => waiting)}`);
  }

  /** Until the files of all runs whose captures were removed are gone, those too that a crash had left behind their tombstones. */
  async #settle(life: StoreLife): Promise<void> {
    const isLeft = (): boolean =>
      this.#model.removedPaths().some((path) => life.disk.has(`${DIRECTORY}/captures/${path}`));
    for (let turn = 1; turn < MOST_TURNS && isLeft() && !life.isOver; turn++) {
      if (turn % 50 === 0) this.#pass(life);
      await turns(1);
    }
    if (isLeft() && !life.isOver) this.#faults.push("captures that retention removed are there still");
  }

  async #stop(life: StoreLife): Promise<void> {
    let isStopped = false;
    void life.stop().then(() => {
      isStopped = true;
    });
    for (let turn = 1; turn < MOST_TURNS && !isStopped && !life.isOver; turn++) {
      if (turn % 20 === 0) this.#pass(life);
      await turns(1);
    }
    if (!isStopped && !life.isOver) this.#faults.push("the recorder does not stop");
  }

  #end(life: StoreLife): void {
    const { crashes, errors } = this.#report;
    const { struck, isDead } = life;
    this.#report.struck.push(struck);
    this.#hasCrashed = isDead;
    const { counts } = this.#report;
    counts.hintsWritten += life.hintsWritten;
    counts.hints += life.hints;
    if (life.disk.refusals > 0) counts.refusedForRoom++;
    if (life.isFull) counts.fullDisks++;
    else if (struck !== null && !isDead) errors[struck] = (errors[struck] ?? 0) + 1;
    else crashes[struck ?? "idle"] = (crashes[struck ?? "idle"] ?? 0) + 1;
    const mode = this.#plan?.mode ?? this.#random.pick(CRASH_MODES);
    this.#isRestart = this.#restartsAfter(life);
    if (this.#isRestart) {
      counts.restarts++;
      this.#hasCrashed = true;
    }
    this.#disk = life.end(this.#isRestart ? "restart" : mode);
    this.#faults.push(...life.faults);
  }

  /** A service that has failed is started again: the machine need not have been switched off for it. */
  #restartsAfter(life: StoreLife): boolean {
    if (life.isDead || !life.hasFailed) return false;
    if (this.#plan !== null) return this.#plan.restarts ?? false;
    return this.#restarts?.chance(0.6) ?? false;
  }

  /** A crash alone leaves nothing that the store's own check finds fault with. */
  async #check(when: string): Promise<void> {
    if (!(await this.#disk.exists(`${DIRECTORY}/meta`))) return;
    const { ok, findings } = await checkDisk(this.#disk, DIRECTORY, (record) => this.#model.compare(record));
    this.#faults.push(...this.#model.faults.splice(0).map((fault) => `${fault}, ${when}`));
    if (!ok) this.#faults.push(`check ${when}: ${JSON.stringify(findings)}`);
  }

  /**
   * Damage to what is durable is found by check, before and behind an opening. An opening tells of it where it reads it, and none is ever
   * served: what is damaged in a segment that it reads, in a hint file, or in the record of a run. What no store can tell from a torn tail,
   * or from what never was, is no more than that. A power cut behind the opening changes nothing of this, and quarantine keeps
   * what was put there.
   */
  async #damage(): Promise<void> {
    const disk = this.#disk.copy();
    // Without hint files an opening reads every segment.
    const isHint = (path: string): boolean => path.endsWith(".hint");
    if (this.#random.chance(0.5)) for (const path of disk.paths().filter(isHint)) disk.removeFile(path);
    const stored = this.#model.storedLengths();
    const bases = disk.paths().flatMap((path) => (path.endsWith(".seg") ? [baseOf(path)] : []));
    const doubled = doubledSegments(disk);
    const damage = damageDisk(disk, this.#random, (path) => {
      if (path.endsWith(".seg") || isHint(path)) return disk.bytesOf(path).length;
      return stored.get(path.slice(`${DIRECTORY}/captures/`.length)) ?? 0;
    });
    if (damage === null) return;
    this.#report.counts.damages++;
    const hintedSequence = hintedUpTo(disk);
    const hasOtherFiles = (await disk.readDirectory(`${DIRECTORY}/captures`)).length > 0;
    const context: LossContext = { bases, doubled, hasOtherFiles, hintedSequence };
    const { isDamage, keptSequence } = expectedOf(damage, context);
    if (isDamage === false) this.#report.counts.untold++;
    const countsForNothing = (rest: StoreDamage): boolean => expectedOf(rest, context).isDamage === false;
    const judge = async (when: string, disk: SimulatedDisk): Promise<void> => {
      const { ok, findings } = await checkDisk(disk, DIRECTORY);
      if (isDamage && ok && !isHealed(disk, damage, countsForNothing))
        this.#faults.push(`check ${when} does not see ${damage.what}`);
      // If a tombstone was cut off, its captures are missing. Only that is reported.
      const tooMuch = findings.filter(({ code }) => FAULTS.has(code));
      if (isDamage === false && tooMuch.length > 0)
        this.#faults.push(`check ${when} sees too much in ${damage.what}: ${JSON.stringify(tooMuch)}`);
    };
    await judge("before an opening", disk);
    if (damage.path.includes("/captures/")) return;
    // Where records are gone untold their numbers are used again.
    const life = this.#newLife(disk, null, false, isDamage === true);
    const options: RecorderOptions = { ...this.#options(null), retention: { days: null, bytes: null } };
    await life.start(options);
    const recovery = life.ready?.recovery;
    const isTold = (recovery?.corruptionCount ?? 0) > 0;
    // What lies in a segment that was taken from its hint file is found by whoever reads it.
    const isRead = life.hints === 0 || isHint(damage.path);
    if (isDamage && !isTold && isRead) this.#faults.push(`opening does not tell of ${damage.what}`);
    if (isDamage === null && !isTold && life.lastSequence < this.#model.records)
      this.#faults.push(`records up to ${this.#model.records} are lost with ${damage.what}, and nothing tells it`);
    if (isDamage === false && isTold)
      this.#faults.push(`opening tells too much of ${damage.what}: ${JSON.stringify(recovery)}`);
    if (life.lastSequence < keptSequence)
      this.#faults.push(
        `records ${life.lastSequence + 1} to ${keptSequence} stand before ${damage.what}, and are lost`,
      );
    // What lies behind all proof is cut, as a torn tail is.
    if (recovery?.findingCount === 0 && isDamage) await this.#judgeUndamaged(life);
    this.#faults.push(...this.#model.faults.splice(0).map((fault) => `${fault}, with ${damage.what}`));
    await judge("behind an opening", disk);
    const kept = disk.paths().filter((path) => path.startsWith(`${DIRECTORY}/quarantine/`));
    // One of them for each damage: all three would take as long as everything else.
    const mode = this.#cuts.pick(CRASH_MODES);
    const when = `behind an opening and a power cut (${mode})`;
    const cut = disk.fork(mode, this.#cuts);
    const isTellable = (): boolean => isDamage === true && !isHealed(cut, damage, countsForNothing);
    this.#cutJudges.push(async () => {
      for (const path of kept) if (!cut.has(path)) this.#faults.push(`${path} is gone ${when}, with ${damage.what}`);
      await judge(when, cut);
      const next = this.#newLife(cut, null, false, isDamage === true, this.#cuts);
      await next.start(options);
      if (isTellable() && next.logDetail === null && next.hints === 0)
        this.#faults.push(`health does not tell ${when} of ${damage.what}`);
      if (isDamage === false && (next.ready?.recovery.corruptionCount ?? 0) > 0)
        this.#faults.push(`opening tells too much ${when} of ${damage.what}`);
      if (next.lastSequence < keptSequence)
        this.#faults.push(`records ${next.lastSequence + 1} to ${keptSequence} are lost ${when}, with ${damage.what}`);
      this.#faults.push(...this.#model.faults.splice(0).map((fault) => `${fault}, ${when}, with ${damage.what}`));
      await judge(`${when}, opened again`, cut);
      next.end("keep");
    });
    life.end("keep");
  }

  /** A run whose record cannot be read is not shown; all others are as they were. */
  async #judgeUndamaged(life: StoreLife): Promise<void> {
    const runs = await life.runs(this.#model.runIds);
    this.#model.judgeShown(runs);
  }
}

/** A missing hint file is not reported as damage: the log has everything that was in it. All other damage outside of the log is. */
function expectedOf(damage: StoreDamage, context: LossContext): ReturnType<typeof expectedOfSegment> {
  if (damage.path.endsWith(".seg")) return expectedOfSegment(damage, context);
  return { isDamage: damage.after !== null || !damage.path.endsWith(".hint"), keptSequence: 0 };
}

/** The last record of which a hint file says that it was durable. */
function hintedUpTo(disk: SimulatedDisk): number {
  const path = disk.paths().findLast((one) => one.endsWith(".hint"));
  try {
    return path === undefined ? 0 : (verifyHint(disk.bytesOf(path))?.lastSequence ?? 0);
  } catch {
    return 0;
  }
}
