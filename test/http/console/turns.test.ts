import t from "tap";
import { turns } from "../../../http/console/turns.js";

t.test(
  "never is more work under way than allowed, whenever it comes; it runs in its order, also after a failure",
  async (t) => {
    for (const atOnce of [1, 3]) {
      const inTurn = turns(atOnce);
      const begun: number[] = [];
      let running = 0;
      let most = 0;
      const work = async (nth: number) => {
        begun.push(nth);
        most = Math.max(most, ++running);
        await undefined;
        running--;
        if (nth % 5 === 4) throw new Error("fails");
      };
      const all: Promise<void>[] = [];
      // Some wait first. Then more comes in each microtask: also just as a place gets free.
      for (let nth = 0; nth < 40; nth++) {
        all.push(inTurn(() => work(nth)).catch(() => {}));
        if (nth >= 2 * atOnce) await undefined;
      }
      await Promise.all(all);
      t.equal(most, atOnce);
      t.same(
        begun,
        all.map((_, nth) => nth),
      );
    }
  },
);
