import t from "tap";
import { DiskRoom, type DiskRoomOptions } from "../../../../workers/recorder/upkeep/disk-room.js";
import { SimulatedDisk } from "../../../helpers/disk/simulated-disk.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const DEFAULTS: DiskRoomOptions = { low: null, critical: null, ballastBytes: 0 };

/** A disk of which only the room counts. */
class Subject {
  readonly timers = new ManualTimers();
  readonly levels: string[] = [];
  readonly reports: string[] = [];
  freeBytes = 0;
  looks = 0;
  pendingBytes = 0;
  silence: Error | null = null;
  nowUs = Date.UTC(2026, 10, 20) * 1000;
  readonly room: DiskRoom;

  constructor(totalBytes: number, thresholds: DiskRoomOptions = DEFAULTS) {
    const disk = new SimulatedDisk();
    disk.room = async () => {
      this.looks++;
      if (this.silence !== null) throw this.silence;
      return { freeBytes: this.freeBytes, totalBytes };
    };
    this.room = new DiskRoom({
      fileSystem: disk,
      directory: "/data",
      timers: this.timers,
      wallUs: () => this.nowUs,
      thresholds,
      pendingBytes: () => this.pendingBytes,
      onChange: () => {
        if (this.room.level !== this.levels.at(-1)) this.levels.push(this.room.level);
      },
      report: (what) => this.reports.push(what),
    });
  }

  async start(freeBytes: number): Promise<void> {
    this.freeBytes = freeBytes;
    await this.room.prepare();
    await this.room.start();
  }

  /** Lets the next look come, and gives the level after it. */
  async look(freeBytes: number): Promise<string> {
    this.freeBytes = freeBytes;
    const { looks } = this;
    this.timers.advance(5_000);
    await this.settle();
    if (this.looks === looks) throw new Error("no look");
    return this.room.level;
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

t.test("the levels are shares of a small disk and bytes of a large one, or what the options say", async (t) => {
  const levelsAt = async (totalBytes: number, at: number[], thresholds?: DiskRoomOptions) => {
    const levels: string[] = [];
    for (const freeBytes of at) {
      const subject = new Subject(totalBytes, thresholds);
      await subject.start(freeBytes);
      levels.push(subject.room.level);
      await subject.room.stop();
    }
    return levels;
  };
  const steps = ["enough", "low", "low", "critical"];
  t.same(await levelsAt(1000 * GIB, [GIB, GIB - 1, 256 * MIB, 256 * MIB - 1]), steps);
  t.same(await levelsAt(1000 * MIB, [50 * MIB, 50 * MIB - 1, 10 * MIB, 10 * MIB - 1]), steps);
  const given: DiskRoomOptions = { low: { share: 0.5 }, critical: { bytes: 7 }, ballastBytes: 0 };
  t.same(await levelsAt(1000, [500, 499, 7, 6], given), steps);
  // All messages never wait before captures do.
  const crossed: DiskRoomOptions = { low: { bytes: 10 }, critical: { bytes: 100 }, ballastBytes: 0 };
  t.same(await levelsAt(1000, [100, 99], crossed), ["enough", "critical"]);
});

t.test("a level is left only with an eighth more room than it begins at; health says since when", async (t) => {
  const subject = new Subject(1000 * GIB);
  await subject.start(100 * GIB);
  t.same(subject.room.row, { status: "healthy", detail: "100.0 GiB of 1000.0 GiB free" });
  t.equal(await subject.look(GIB - 1), "low");
  t.same(subject.room.row, {
    status: "degraded",
    detail: "since 2026-11-20T00:00:00.000Z: 1024 MiB of 1000.0 GiB free, captures wait until 1152 MiB is free",
  });
  subject.nowUs += 3_600_000_000;
  t.equal(await subject.look(GIB + GIB / 8 - 1), "low");
  t.match(subject.room.row.detail, /since 2026-11-20T00:00/, "since the level began");
  t.equal(await subject.look(200 * MIB), "critical");
  t.match(subject.room.row, {
    status: "down",
    detail: /since 2026-11-20T01:00.*all messages wait until 288 MiB is free/,
  });
  t.equal(await subject.look(256 * MIB + 32 * MIB - 1), "critical");
  t.equal(await subject.look(256 * MIB + 32 * MIB), "low");
  t.equal(await subject.look(GIB + GIB / 8), "enough");
  t.same(subject.levels, ["enough", "low", "critical", "low", "enough"], "each transition once");
  await subject.room.stop();
});

t.test("between looks what is spent counts, and the disk is asked at once", async (t) => {
  const subject = new Subject(1000 * GIB);
  await subject.start(2 * GIB);
  const { looks } = subject;
  subject.room.spend(GIB);
  t.equal(subject.room.level, "enough");
  t.equal(subject.looks, looks, "no look for each message");
  subject.freeBytes = GIB - MIB;
  subject.room.spend(1);
  t.equal(subject.room.level, "low", "before anything of it is written");
  await subject.settle();
  t.equal(subject.looks, looks + 1);
  t.equal(subject.room.level, "low");
  t.equal(await subject.look(2 * GIB), "enough", "what was spent is in what the disk says");
  subject.pendingBytes = GIB + MIB;
  t.equal(await subject.look(2 * GIB), "low", "but not what is still pending");
  await subject.room.stop();
});

t.test("a disk that does not answer is down since then, told once, and changes no level", async (t) => {
  const subject = new Subject(1000 * GIB);
  await subject.start(100 * GIB);
  subject.silence = new Error("statfs: EIO");
  t.equal(await subject.look(0), "enough");
  subject.nowUs += 60_000_000;
  subject.silence = new Error("statfs: EUCLEAN");
  t.equal(await subject.look(0), "enough");
  t.same(subject.room.row, {
    status: "down",
    detail: "since 2026-11-20T00:00:00.000Z: the disk does not answer: statfs: EUCLEAN",
  });
  t.same(subject.reports, ["the disk does not answer"]);
  subject.silence = null;
  t.equal(await subject.look(100 * GIB), "enough");
  t.equal(subject.room.row.status, "healthy");
  subject.nowUs += 60_000_000;
  subject.silence = new Error("statfs: EIO");
  await subject.look(0);
  t.match(subject.room.row.detail, /^since 2026-11-20T00:02:00.000Z: the disk does not answer/, "another time");
  await subject.room.stop();
});

t.test("where the disk is hardly larger than low water, the level ends before the disk is empty", async (t) => {
  const subject = new Subject(1000, { low: { bytes: 900 }, critical: { bytes: 10 }, ballastBytes: 0 });
  await subject.start(899);
  t.equal(await subject.look(949), "low");
  t.equal(await subject.look(950), "enough");
});

t.test("a disk that does not answer hides not what waits for room, nor since when", async (t) => {
  const subject = new Subject(1000 * GIB);
  await subject.start(100 * GIB);
  t.equal(await subject.look(GIB - 1), "low");
  subject.nowUs += 60_000_000;
  subject.silence = new Error("statfs: EIO");
  t.equal(await subject.look(0), "low");
  t.same(subject.room.row, {
    status: "down",
    detail:
      "since 2026-11-20T00:01:00.000Z: the disk does not answer: statfs: EIO; " +
      "since 2026-11-20T00:00:00.000Z: 1024 MiB of 1000.0 GiB free, captures wait until 1152 MiB is free",
  });
  await subject.room.stop();
});
