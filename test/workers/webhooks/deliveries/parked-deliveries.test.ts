import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { ParkedDeliveries } from "../../../../workers/webhooks/deliveries/parked-deliveries.js";

t.test("against a plain model: in order within a receiver, each once", async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 20261122);
  t.comment(`TEST_SEED=${seed}`);
  const random = createRandom(seed);
  const parked = new ParkedDeliveries();
  const model = new Map<string, string[]>();
  for (let round = 0; round < 20_000; round++) {
    const receiver = `r${random.integer(0, 4)}`;
    const list = model.get(receiver) ?? [];
    model.set(receiver, list);
    // In waves, so that lists grow long and empty again.
    if (random.chance(Math.floor(round / 2_000) % 2 === 0 ? 0.8 : 0.2)) {
      parked.park(receiver, `d${round}`);
      list.push(`d${round}`);
    } else if (parked.take(receiver) !== list.shift()) {
      t.fail(`seed ${seed}, round ${round}: another one`);
      return;
    }
    const count = [...model.values()].reduce((sum, { length }) => sum + length, 0);
    if (parked.has(receiver) !== list.length > 0 || parked.count !== count) {
      t.fail(`seed ${seed}, round ${round}: ${parked.count}, not ${count}`);
      return;
    }
  }
  t.pass(`20,000 rounds from seed ${seed}`);
});
