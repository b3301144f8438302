import t from "tap";
import { createRandom } from "../../core/random.js";
import { ByteBudget } from "../../storage/byte-budget.js";

const seed = Number(process.env.TEST_SEED ?? 20_250_708);

t.test(
  `work never holds more than the budget together, one larger than it runs alone, all of it runs, seed ${seed}`,
  async (t) => {
    const random = createRandom(seed);
    const budget = new ByteBudget(100);
    let held = 0;
    let running = 0;
    let most = 0;
    let wrong = 0;
    const done: number[] = [];
    const started: number[] = [];
    const all = Array.from({ length: 500 }, async (_, at) => {
      const bytes = random.chance(0.05) ? 150 : random.integer(1, 60);
      await Promise.resolve();
      const outcome = budget.run(bytes, async () => {
        started.push(at);
        held += bytes;
        running++;
        most = Math.max(most, running);
        if (held > 100 && running > 1) wrong++;
        for (let turn = random.integer(0, 5); turn > 0; turn--) await new Promise(setImmediate);
        held -= bytes;
        running--;
        done.push(at);
        if (at % 7 === 0) throw new Error("failed");
        return at;
      });
      if (at % 7 === 0) await t.rejects(outcome, /failed/);
      else t.equal(await outcome, at);
    });
    await Promise.all(all);
    t.equal(wrong, 0);
    t.equal(done.length, 500);
    t.ok(most > 1, `up to ${most} at a time`);
    t.same(
      started,
      [...started].sort((a, b) => a - b),
      "in the order in which they asked",
    );
  },
);
