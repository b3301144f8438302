import t from "tap";
import { createRandom } from "../../../../core/random.js";
import { LinkBudget, type PayloadClaim } from "../../../../workers/cell-link/bounds/link-budget.js";

const SEED = Number(process.env.TEST_SEED ?? 13);

/** A payload that is being read. */
interface Reading {
  claim: PayloadClaim;
  lengthBytes: number;
  filledBytes: number;
  isHeld: boolean;
}

t.test("claims grow within the limit, the oldest at once, and all become whole in the end", (t) => {
  t.comment(`TEST_SEED=${SEED}`);
  const random = createRandom(SEED);
  let waits = 0;
  const faults: string[] = [];
  for (let round = 0; round < 200; round++) {
    const half = random.integer(4, 500);
    const budget = new LinkBudget({ pendingLimitBytes: half, claimLimitBytes: 2 * half });
    const live: Reading[] = [];
    const ask = (reading: Reading) => {
      const { claim, lengthBytes, filledBytes } = reading;
      const bytes = budget.grow(claim, lengthBytes, filledBytes);
      reading.isHeld = bytes === filledBytes;
      if (reading.isHeld) waits++;
      else if (bytes !== lengthBytes && bytes !== 2 * filledBytes) faults.push(`${bytes} of ${lengthBytes}`);
      if (live[0] === reading && bytes !== lengthBytes) faults.push("the oldest does not get all");
    };
    const begin = () => {
      const lengthBytes = random.integer(2, half);
      const reading: Reading = {
        claim: budget.claim(() => ask(reading)),
        lengthBytes,
        filledBytes: random.integer(1, lengthBytes - 1),
        isHeld: false,
      };
      live.push(reading);
      ask(reading);
    };
    const end = (reading: Reading) => {
      live.splice(live.indexOf(reading), 1);
      budget.end(reading.claim);
    };
    const check = () => {
      const used = live.reduce((sum, { claim }) => sum + claim.bytes, 0);
      if (budget.claimedBytes !== used) faults.push(`counts ${budget.claimedBytes} of ${used}`);
      if (used > 2 * half) faults.push(`${used} of ${2 * half}`);
      if (live[0]?.isHeld) faults.push("the oldest waits");
      if (budget.hasWaitingClaims !== live.some(({ isHeld }) => isHeld)) faults.push("miscounts who waits");
    };
    const fill = (reading: Reading) => {
      reading.filledBytes = reading.claim.bytes;
      if (reading.filledBytes === reading.lengthBytes) end(reading);
      else ask(reading);
    };
    for (let step = 0; step < 100; step++) {
      const going = live.filter(({ isHeld }) => !isHeld);
      if (going.length === 0 || random.chance(0.4)) begin();
      else if (random.chance(0.8)) fill(random.pick(going));
      else end(random.pick(live));
      check();
    }
    for (let going = live[0]; going !== undefined; going = live[0]) {
      fill(going);
      check();
    }
    if (budget.claimedBytes !== 0 || budget.hasWaitingClaims) faults.push("something is left");
  }
  t.strictSame(faults.slice(0, 5), []);
  t.comment(`${waits} waited`);
  t.ok(waits > 1_000);
  t.end();
});

t.test("what is announced and does not come on holds up nobody who sends", (t) => {
  const budget = new LinkBudget({ pendingLimitBytes: 1, claimLimitBytes: 128 });
  for (let nth = 0; nth < 20; nth++)
    budget.grow(
      budget.claim(() => {}),
      64,
      1,
    );
  t.equal(budget.claimedBytes, 64 + 19 * 2);
  const sender = budget.claim(() => t.fail("it need not wait"));
  for (let filled = 1; filled < 16; filled *= 2) t.equal(budget.grow(sender, 16, filled), 2 * filled);
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
