import t from "tap";
import { createRandom } from "../../../core/random.js";
import { TypedColumn } from "../../../storage/columns/typed-column.js";

const SEED = Number(process.env.TEST_SEED ?? 4);

t.test(`values that are put in between, against an array; seed ${SEED}`, async (t) => {
  const random = createRandom(SEED);
  for (let round = 0; round < 20; round++) {
    const column = new TypedColumn(Uint32Array, 4);
    const model: number[] = [];
    for (let step = 0; step < 60; step++) {
      const [row, value] = [random.integer(0, model.length), random.integer(0, 1_000_000)];
      model.splice(row, 0, value);
      column.insert(row, value);
      t.same(
        Array.from({ length: column.length }, (_, at) => column.get(at)),
        model,
      );
    }
  }
});
