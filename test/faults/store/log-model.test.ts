import t from "tap";
import { createRandom } from "../../../core/random.js";
import { appendAll, createDisk, META, openLog, recordOf } from "../../helpers/store/log-harness.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 1);
const HISTORIES = sized(30, 5_000);
const LIVES = 12;

t.test("random lives of a log, each ended by close, kill or power cut, against a plain list", async (t) => {
  t.comment(`seeds ${SEED} to ${SEED + HISTORIES - 1}`);
  let lives = 0;
  let records = 0;
  let wrong = 0;
  for (let seed = SEED; seed < SEED + HISTORIES; seed++) {
    const random = createRandom(seed);
    let disk = await createDisk();
    /** What must be there, in order, and what may follow it. */
    let model: string[] = [];
    let pending: string[] = [];
    for (let life = 0; life < LIVES; life++) {
      const segmentBytes = random.pick([200, 1_000, 5_000]);
      const { log, names, timers } = await openLog(disk, { segmentBytes });
      const allowed = [...model, ...pending];
      const isRight =
        names.length >= model.length &&
        names.join() === allowed.slice(0, names.length).join() &&
        log.recovery.corruptionCount === 0;
      if (!isRight) {
        wrong++;
        t.fail(`seed ${seed}, life ${life}: ${names.join()} instead of ${model.join()} and then ${pending.join()}`);
      }
      model = [...names];
      pending = [];
      for (let step = random.integer(0, 8); step > 0; step--) {
        const group = Array.from({ length: random.integer(1, 4) }, (_, i) => `${life}.${step}.${i}`);
        await appendAll(log, group, random.integer(0, 400));
        model.push(...group);
        records += group.length;
        if (random.chance(0.3)) timers.fire();
        if (random.chance(0.3)) await new Promise<void>((resolve) => setImmediate(resolve));
      }
      const end = random.pick(["close", "kill", "drop", "keep", "tear"] as const);
      lives++;
      if (end === "close") {
        await log.close();
        continue;
      }
      // Some records are on their way when it ends, at one operation or another.
      const last = disk.operations + random.integer(0, 3);
      disk.onOperation = ({ number }) => (number >= last ? { dies: true } : undefined);
      pending = Array.from({ length: random.integer(0, 5) }, (_, i) => `${life}.end.${i}`);
      for (const name of pending) log.append(recordOf(name, random.integer(0, 700)));
      for (let turn = random.integer(0, 4); turn > 0; turn--)
        await new Promise<void>((resolve) => setImmediate(resolve));
      model.push(...pending.splice(0, Math.max(0, log.committedSequence - (log.nextSequence - 1 - pending.length))));
      disk = end === "kill" ? disk.kill() : disk.crash(end, random);
    }
    if (!(await disk.exists(META))) t.fail(`seed ${seed}: the folder is gone`);
  }
  t.equal(wrong, 0);
  t.comment(`${HISTORIES} histories, ${lives} lives, ${records} acknowledged records: ${wrong} wrong`);
});
