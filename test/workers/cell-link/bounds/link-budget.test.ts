import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { LinkBudget, type PayloadClaim } from "../../../../workers/cell-link/bounds/link-budget.js";

const SEED = Number(process.env.TEST_SEED ?? 13);

t.test("claims are granted in order, within the limit, and all in the end", (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  let waited = 0;
  const faults: string[] = [];
  for (let round = 0; round < 200; round++) {
    const limit = random.integer(1, 1_000);
    const budget = new LinkBudget({ pendingLimitBytes: limit, claimLimitBytes: limit });
    const live: PayloadClaim[] = [];
    const order: PayloadClaim[] = [];
    const granted: PayloadClaim[] = [];
    const check = () => {
      const held = live.filter((claim) => claim.granted);
      const used = held.reduce((sum, claim) => sum + claim.bytes, 0);
      if (budget.claimedBytes !== used) faults.push(`counts ${budget.claimedBytes} of ${used}`);
      if (used > limit && held.length > 1) faults.push(`${used} of ${limit}`);
      if (live.length > 0 && held.length === 0) faults.push("claims wait, and none is granted");
    };
    for (let step = 0; step < 100; step++) {
      if (random.chance(0.6)) {
        const claim: PayloadClaim = budget.claim(random.integer(1, Math.ceil(limit * 1.2)), () => granted.push(claim));
        if (claim.granted) granted.push(claim);
        else waited++;
        live.push(claim);
        order.push(claim);
      } else if (live.length > 0) {
        const [claim] = live.splice(random.integer(0, live.length - 1), 1) as [PayloadClaim];
        if (!claim.granted) order.splice(order.indexOf(claim), 1);
        budget.end(claim);
      }
      check();
    }
    while (live.length > 0) {
      const at = live.findIndex((claim) => claim.granted);
      if (at < 0) break;
      budget.end(live.splice(at, 1)[0] as PayloadClaim);
      check();
    }
    if (live.length > 0) faults.push(`${live.length} were never granted`);
    if (granted.some((claim, at) => claim !== order[at]) || granted.length !== order.length)
      faults.push("out of order");
    if (budget.claimedBytes !== 0 || budget.hasWaitingClaims) faults.push("something is left");
  }
  t.strictSame(faults, []);
  t.comment(`${waited} claims waited`);
  t.ok(waited > 1_000);
  t.end();
});

t.test("connections go on in order while there is room for messages", (t) => {
  const budget = new LinkBudget({ pendingLimitBytes: 100, claimLimitBytes: 1 });
  budget.add(60);
  t.notOk(budget.isFull);
  budget.add(60);
  t.ok(budget.isFull);
  const turns: string[] = [];
  budget.waitForRoom(() => turns.push("a"));
  const cancelled = budget.waitForRoom(() => turns.push("cancelled"));
  // It takes what was left.
  budget.waitForRoom(() => {
    turns.push("b");
    budget.add(50);
  });
  budget.waitForRoom(() => turns.push("c"));
  budget.cancelWait(cancelled);
  budget.release(20);
  t.strictSame(turns, [], "not below the limit yet");
  budget.release(20);
  t.strictSame(turns, ["a", "b"]);
  budget.release(60);
  t.strictSame(turns, ["a", "b", "c"]);
  t.equal(budget.pendingBytes, 70);
  t.end();
});
