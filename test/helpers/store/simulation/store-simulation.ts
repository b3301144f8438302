import { createRandom, type Random } from "../../../../core/random.js";
import type { RecorderOptions } from "../../../../workers/recorder/recorder-messages.js";
import { SimulatedDisk } from "../../disk/simulated-disk.js";
import { eventLoopTurns } from "../../disk/slow-disk.js";
import { SimulatedProducer } from "../../link/simulated-producer.js";
import { checkDisk } from "../checked-disk.js";
import { DamagedStore } from "./damaged-store.js";
import { noCounts, type SimulationReport } from "./simulation-report.js";
import { StoreLife } from "./store-life.js";
import { StoreModel } from "./store-model.js";
import { StoreWorkload } from "./store-workload.js";
import { CRASH_MODES, type CrashMode, randomStrike, type Strike } from "./strike.js";

const DIRECTORY = "/data";
const SECOND_US = 1_000_000;
const DAY_US = 86_400 * SECOND_US;
/** What has not ended after so many turns of the event loop never ends. */
const MOST_TURNS = 20_000;

/** Instead of random lives: one of so many steps that this befalls, then the one in which all must come right. */
export interface SimulationPlan {
  /** What befalls the lives before that one, one each. Its opening finds what they leave. */
  before?: readonly Strike[];
  strike: Strike;
  mode: CrashMode;
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
  /** The last life ended with its process or machine. The next one may find what it left half put right. */
  #hasCrashed = false;
  /** The last life had failed, but no power cut came after it. */
  #isRestart = false;
  #wallUs = 1_795_000_000 * SECOND_US;

  /** Random numbers of its own, so that histories without restarts stay as they were. */
  readonly #restarts: Random | null;
  /** Random numbers for the power cuts after openings that met damage: for the same reason. */
  readonly #cuts: Random;
  readonly #damagedStores: DamagedStore[] = [];

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
      await this.#live(this.#plan?.strike ?? randomStrike(this.#random, this.#hasCrashed));
    }
    const isRestart = this.#isRestart;
    if (this.#faults.length === 0) await this.#live(null);
    // Then comes the first power cut since a failure that was only restarted from. Another opening shows what it took.
    if (this.#faults.length === 0 && isRestart) await this.#live(null);
    if (this.#faults.length === 0) await this.#check("at the end");
    for (let times = this.#plan ? 0 : 3; times > 0 && this.#faults.length === 0; times--) await this.#damage();
    for (const store of this.#damagedStores) if (this.#faults.length === 0) await store.judgeCut();
    counts.records = this.#model.records;
    counts.removedRuns = this.#model.removedRuns;
    for (const { answers } of this.#producers) {
      for (const answer of answers) counts[answer === null ? "acknowledged" : "refused"]++;
    }
    return this.#report;
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

  /** False when the opening was struck. Now and then a read fails: the opening must say so, and another one succeed. */
  async #open(life: StoreLife, strike: Strike | null): Promise<boolean> {
    const { disk } = life;
    let failsAt =
      this.#plan === null && this.#random.chance(0.05) ? this.#random.integer(0, 30) : Number.POSITIVE_INFINITY;
    let hasFailed = false;
    // An opening does without a hint file that cannot be read.
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
    // What was committed during the reads may be in some of the runs.
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
      await eventLoopTurns(random.integer(0, 6));
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
      await eventLoopTurns(5);
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
      await eventLoopTurns(1);
    }
    if (!life.isOver) this.#faults.push(`not all was answered: ${this.#producers.map(({ waiting }) => waiting)}`);
  }

  /** Until the files of all runs whose captures were removed are gone, those too that a crash had left behind their tombstones. */
  async #settle(life: StoreLife): Promise<void> {
    const isLeft = (): boolean =>
      this.#model.removedPaths().some((path) => life.disk.has(`${DIRECTORY}/captures/${path}`));
    for (let turn = 1; turn < MOST_TURNS && isLeft() && !life.isOver; turn++) {
      if (turn % 50 === 0) this.#pass(life);
      await eventLoopTurns(1);
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
      await eventLoopTurns(1);
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

  /** Damages a copy of the store in one place. */
  async #damage(): Promise<void> {
    const store = await DamagedStore.damaged({
      ...{ disk: this.#disk.copy(), directory: DIRECTORY, model: this.#model },
      ...{ random: this.#random, cuts: this.#cuts, faults: this.#faults },
      recorderOptions: () => this.#options(null),
      newLife: (disk, isCompared, random) => this.#newLife(disk, null, false, isCompared, random),
    });
    if (store === null) return;
    this.#damagedStores.push(store);
    this.#report.counts.damages++;
    if (store.isUntold) this.#report.counts.untold++;
    await store.judge();
  }
}
