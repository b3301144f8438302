import t from "tap";
import { LIMITS } from "../../../../core/limits.js";
import { createRandom } from "../../../../core/random.js";
import {
  LAST_GOOD_AFTER_MS,
  type LookupAnswer,
  NameLookups,
} from "../../../../workers/webhooks/dispatcher/name-lookups.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Look-ups whose process and time are the test's. */
function harness() {
  const timers = new ManualTimers();
  const asked: string[] = [];
  let process:
    | { onAnswer: (answer: LookupAnswer) => void; onExit: (error?: Error) => void; isKilled: boolean }
    | undefined;
  let starts = 0;
  const lookups = new NameLookups({
    timers,
    nowMs: () => timers.nowMs(),
    start(onAnswer, onExit) {
      starts++;
      const started = { onAnswer, onExit, isKilled: false };
      process = started;
      return {
        ask: (hostname) => asked.push(hostname),
        kill: () => {
          started.isKilled = true;
        },
      };
    },
  });
  const advance = (ms: number): void => timers.advance(ms);
  const answer = (hostname: string, address: string | null, code = "ENOTFOUND"): void => {
    asked.splice(asked.indexOf(hostname), 1);
    const fine = { hostname, code: null, addresses: [{ address: address ?? "", family: 4 }] };
    process?.onAnswer(address === null ? { hostname, code, addresses: [] } : fine);
  };
  /** What the callback gets, once it does: the address, or the error's code. */
  const lookUp = (hostname: string): { result: string | undefined } => {
    const waiting: { result: string | undefined } = { result: undefined };
    lookups.lookUp(hostname, (error, addresses) => {
      if (waiting.result !== undefined) throw new Error("called twice");
      waiting.result = error === null ? addresses[0]?.address : (error as { code?: string }).code;
    });
    return waiting;
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const exit = (error?: Error) => process?.onExit(error);
  return {
    ...{ lookups, asked, answer, lookUp, advance, settled, exit, timers },
    starts: () => starts,
    isKilled: () => process?.isKilled,
  };
}

t.test("a name is asked for once, however many wait for it; and anew afterwards", async (t) => {
  const { lookUp, asked, answer, starts } = harness();
  t.equal(starts(), 0, "no process before a name is needed");
  const waiting = Array.from({ length: 50 }, () => lookUp("mes"));
  t.same(asked, ["mes"]);
  answer("mes", "10.0.0.7");
  t.ok(waiting.every(({ result }) => result === "10.0.0.7"));
  lookUp("mes");
  t.same(asked, ["mes"]);
  t.equal(starts(), 1);
});

t.test(
  "a process that cannot be started is told as what the machine lacks, for a name without known addresses",
  async (t) => {
    const { lookUp, answer, advance, settled, exit } = harness();
    lookUp("mes");
    answer("mes", "10.0.0.7");
    const waiting = [lookUp("mes"), lookUp("plc")];
    exit(Object.assign(new Error("spawn EMFILE"), { code: "EMFILE" }));
    const later = lookUp("plc");
    await settled();
    t.same(
      [...waiting, later].map(({ result }) => result),
      ["10.0.0.7", "EMFILE", "EMFILE"],
    );
    advance(1_000);
    const unallocated = lookUp("plc");
    exit(Object.assign(new Error("no memory"), { code: "ERR_MEMORY_ALLOCATION_FAILED" }));
    t.equal(unallocated.result, "ENOMEM");
    advance(1_000);
    lookUp("plc");
    exit();
    const other = lookUp("plc");
    await settled();
    t.equal(other.result, "EAI_AGAIN", "after any other end, names cannot be resolved for now");
  },
);

t.test("any number of dead names hold up no name that had resolved, and nobody longer than the window", async (t) => {
  const { lookUp, asked, answer, advance, timers } = harness();
  lookUp("mes");
  answer("mes", "10.0.0.7");
  const dead = Array.from({ length: 1000 }, (_, nth) => lookUp(`dead${nth}`));
  for (let nth = 0; nth < 1000; nth++) lookUp(`dead${nth}`);
  t.equal(asked.length, 1000, "each is looked up once");
  const mes = lookUp("mes");
  advance(LAST_GOOD_AFTER_MS);
  t.equal(mes.result, "10.0.0.7");
  answer("dead0", null);
  t.equal(dead[0]?.result, "ENOTFOUND");
  advance(LIMITS.dispatchWindowMs);
  t.ok(dead.slice(1).every(({ result }) => result === "EAI_AGAIN"));
  t.equal(timers.armed, 0);
  lookUp("dead1");
  t.equal(asked.filter((name) => name === "dead1").length, 1, "it is still being looked up");
});

t.test("a name that takes long, or does not resolve for now, is what it was last", async (t) => {
  const { lookUp, asked, answer, advance } = harness();
  lookUp("mes");
  answer("mes", "10.0.0.7");
  const slow = lookUp("mes");
  advance(LAST_GOOD_AFTER_MS - 1);
  t.equal(slow.result, undefined);
  advance(1);
  t.equal(slow.result, "10.0.0.7");
  const next = lookUp("mes");
  advance(LAST_GOOD_AFTER_MS);
  t.equal(next.result, "10.0.0.7");
  t.same(asked, ["mes"], "and without asking twice");
  answer("mes", null, "EAI_AGAIN");
  const again = lookUp("mes");
  answer("mes", null, "EAI_AGAIN");
  t.equal(again.result, "10.0.0.7");
  const moved = lookUp("mes");
  answer("mes", "10.0.0.9");
  t.equal(moved.result, "10.0.0.9", "an answer is what counts");
  const gone = lookUp("mes");
  answer("mes", null, "ENOTFOUND");
  t.equal(gone.result, "ENOTFOUND", "a name that is not there any more is nothing");
  const after = lookUp("mes");
  answer("mes", null, "EAI_AGAIN");
  t.equal(after.result, "EAI_AGAIN");
  lookUp("mes");
  answer("mes", "10.0.0.7");
  advance(DAY_MS + 1);
  const old = lookUp("mes");
  answer("mes", null, "EAI_AGAIN");
  t.equal(old.result, "EAI_AGAIN", "for a day at most");
});

t.test("a process that ends is started again, not at once; closing ends it and whoever waits", async (t) => {
  const { lookups, lookUp, answer, advance, exit, settled, starts, isKilled } = harness();
  lookUp("mes");
  answer("mes", "10.0.0.7");
  const [known, unknown] = [lookUp("mes"), lookUp("other")];
  exit();
  t.same([known.result, unknown.result], ["10.0.0.7", "EAI_AGAIN"]);
  const early = lookUp("other");
  await settled();
  t.same([early.result, starts()], ["EAI_AGAIN", 1]);
  advance(1000);
  const later = lookUp("other");
  t.equal(starts(), 2);
  answer("other", "10.0.0.8");
  t.equal(later.result, "10.0.0.8");
  const last = lookUp("third");
  lookups.close();
  t.ok(isKilled());
  t.equal(last.result, "EAI_AGAIN");
  const closed = lookUp("mes");
  await settled();
  t.equal(closed.result, "10.0.0.7");
  t.equal(starts(), 2, "none for a service that ends");
});

t.test("against a plain model: a name is asked for once, everybody is answered once and in time", async (t) => {
  const seed = Number(process.env.TEST_SEED ?? 20261122);
  t.comment(`TEST_SEED=${seed}`);
  const random = createRandom(seed);
  const { lookUp, asked, answer, advance } = harness();
  const isDead = (name: string): boolean => Number(name.slice(1)) % 4 !== 0;
  const waiting: { name: string; sinceMs: number; result: { result: string | undefined } }[] = [];
  let nowMs = 0;
  for (let round = 0; round < 5_000; round++) {
    const alive = asked.filter((name) => !isDead(name));
    if (random.chance(0.6)) {
      const name = `n${random.integer(0, 399)}`;
      waiting.push({ name, sinceMs: nowMs, result: lookUp(name) });
    } else if (random.chance(0.7) && alive.length > 0) {
      answer(random.pick(alive), "10.0.0.1");
    } else if (random.chance(0.05) && asked.length > 0) {
      answer(random.pick(asked), null, random.pick(["EAI_AGAIN", "ENOTFOUND"]));
    } else {
      const ms = random.integer(0, 50);
      nowMs += ms;
      advance(ms);
    }
    for (let nth = waiting.length - 1; nth >= 0; nth--)
      if (waiting[nth]?.result.result !== undefined) waiting.splice(nth, 1);
    const late = waiting.find(({ sinceMs }) => nowMs - sinceMs >= LIMITS.dispatchWindowMs);
    const left = waiting.find(({ name }) => !asked.includes(name));
    if (new Set(asked).size < asked.length || late !== undefined || left !== undefined) {
      t.fail(`seed ${seed}, round ${round}: ${asked.length} asked, ${late?.name ?? left?.name} waits`);
      return;
    }
  }
  t.pass(`5,000 rounds from seed ${seed}`);
});
