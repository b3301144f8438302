import t from "tap";
import { createRandom } from "../../../core/random.js";
import { RequestHeaders } from "../../../http/requests/request-headers.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_122);

/** Some of one length, and some whose lengths differ by 32. */
const NAMES = ["host", "date", "etag", "range", "origin", "content-length", "x".repeat(36), "y".repeat(36), ""];

t.test(`lines are found as a walk over all of them finds them (seed ${seed})`, async (t) => {
  const random = createRandom(seed);
  let absent = 0;
  for (let round = 0; round < 5_000; round++) {
    const headers = new RequestHeaders();
    const lines: [string, string][] = [];
    for (let left = random.integer(0, random.chance(0.1) ? 60 : 6); left > 0; left--) {
      const line: [string, string] = [random.pick(NAMES), random.pick(["", "a", "b, c", "host"])];
      lines.push(line);
      headers.add(...line);
    }
    for (const name of [...NAMES, "accept"]) {
      const values = lines.filter(([own]) => own === name).map(([, value]) => value);
      if (values.length === 0) absent++;
      const expected = values.length === 0 ? undefined : values.join(", ");
      const only = values.length === 1 ? values[0] : undefined;
      const found = [headers.get(name), headers.count(name), headers.sole(name)];
      if (JSON.stringify(found) !== JSON.stringify([expected, values.length, only])) {
        t.same(found, [expected, values.length, only], `${name} of ${JSON.stringify(lines)}`);
      }
    }
  }
  t.ok(absent > 1_000);
});
