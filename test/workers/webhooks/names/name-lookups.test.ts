import t from "tap";
import { LIMITS } from "../../../../core/limits.js";
import { createRandom } from "../../../../core/random.js";
import {
  HANGS_AFTER,
  LAST_GOOD_AFTER_MS,
  type LookupAnswer,
  NameLookups,
  PING,
  PING_AFTER,
  PLACES,
  PLACES_OF_KNOWN,
  WATCH_MS,
} from "../../../../workers/webhooks/names/name-lookups.js";
import { ManualTimers } from "../../../helpers/recorder/manual-timers.js";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Look-ups whose process and time are the test's. */
function bench() {
  const timers = new ManualTimers();
  let nowMs = 0;
  const asked: string[] = [];
  let process: { onAnswer: (answer: LookupAnswer) => void; onExit: () => void; isKilled: boolean } | undefined;
  let starts = 0;
  let pings = 0;
  let isHung = false;
  const lookups = new NameLookups({
    timers,
    nowMs: () => nowMs,
    start(onAnswer, onExit) {
      starts++;
      const started = { onAnswer, onExit, isKilled: false };
      process = started;
      return {
        ask(hostname) {
          if (hostname !== PING) {
            asked.push(hostname);
            return;
          }
          pings++;
          if (!isHung) onAnswer({ hostname, code: null, addresses: [{ address: PING, family: 4 }] });
        },
        kill: () => {
          started.isKilled = true;
        },
      };
    },
  });
  const advance = (ms: number): void => {
    nowMs += ms;
    timers.advance(ms);
  };
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
  const exit = () => process?.onExit();
  return {
    ...{ lookups, asked, answer, lookUp, advance, settled, exit, timers },
    pings: () => pings,
    hang: (isHanging: boolean) => {
      isHung = isHanging;
    },
    starts: () => starts,
    isKilled: () => process?.isKilled,
  };
}

t.test("a name is asked for once, however many wait for it; and anew afterwards", async (t) => {
  const { lookUp, asked, answer, starts } = bench();
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
  "any number of dead names leaves places to a name that had resolved, and to new ones as they give up",
  async (t) => {
    const { lookUp, asked, answer, advance } = bench();
    lookUp("mes");
    answer("mes", "10.0.0.7");
    const dead = Array.from({ length: 1000 }, (_, nth) => lookUp(`dead${nth}`));
    t.equal(asked.length, PLACES - PLACES_OF_KNOWN, "each holds one place at most, and all together not all");
    lookUp("dead0");
    t.equal(asked.length, PLACES - PLACES_OF_KNOWN);
    const mes = lookUp("mes");
    t.ok(asked.includes("mes"), "at once");
    answer("mes", "10.0.0.8");
    t.equal(mes.result, "10.0.0.8");
    const fresh = lookUp("fresh");
    answer("dead0", null);
    t.equal(asked.length, PLACES - PLACES_OF_KNOWN, "its place goes to the next");
    advance(LIMITS.dispatchWindowMs);
    t.ok(
      dead.every(({ result }) => result === "ENOTFOUND" || result === "EAI_AGAIN"),
      "nobody waits longer than the window",
    );
    t.equal(fresh.result, "EAI_AGAIN");
    lookUp("fresh");
    t.notOk(asked.includes("fresh"));
    for (const one of [...asked]) answer(one, null, "EAI_AGAIN");
    t.ok(asked.includes("fresh"), "those that gave up waiting are not asked for any more");
    t.equal(asked.length, 1);
  },
);

t.test("a name that takes long, or does not resolve for now, is what it was last", async (t) => {
  const { lookUp, asked, answer, advance, settled } = bench();
  lookUp("mes");
  answer("mes", "10.0.0.7");
  const slow = lookUp("mes");
  advance(LAST_GOOD_AFTER_MS - 1);
  t.equal(slow.result, undefined);
  advance(1);
  t.equal(slow.result, "10.0.0.7");
  const next = lookUp("mes");
  t.equal(next.result, undefined, "never before it returns");
  await settled();
  t.equal(next.result, "10.0.0.7", "without waiting again");
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
  const { lookups, lookUp, answer, advance, exit, settled, starts, isKilled } = bench();
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

t.test(
  "a process that answers nothing, not even an address, is replaced; one whose names are slow is not",
  async (t) => {
    const { lookUp, answer, advance, settled, hang, starts, pings, isKilled, timers } = bench();
    lookUp("mes");
    answer("mes", "10.0.0.7");
    t.equal(timers.armed, 0, "nothing is watched while nothing is asked for");
    lookUp("dead");
    advance(WATCH_MS * HANGS_AFTER * 2);
    t.ok(pings() > 1);
    t.same([isKilled(), starts()], [false, 1], "its names are slow");
    answer("dead", null);
    t.equal(timers.armed, 0);
    const pinged = pings();
    hang(true);
    const [known, fresh] = [lookUp("mes"), lookUp("fresh")];
    advance(WATCH_MS * PING_AFTER);
    t.equal(pings(), pinged + 1);
    advance(WATCH_MS * (HANGS_AFTER - PING_AFTER) - 1);
    t.same([isKilled(), known.result, fresh.result], [false, "10.0.0.7", undefined]);
    advance(1);
    t.same([isKilled(), fresh.result], [true, "EAI_AGAIN"]);
    t.equal(timers.armed, 0);
    hang(false);
    advance(1000);
    const later = lookUp("fresh");
    t.equal(starts(), 2);
    answer("fresh", "10.0.0.8");
    await settled();
    t.equal(later.result, "10.0.0.8");
  },
);

t.test(
  "against a plain model: bounds hold, everybody is answered once, nobody who may be asked for waits",
  async (t) => {
    const seed = Number(process.env.TEST_SEED ?? 20261122);
    t.comment(`TEST_SEED=${seed}`);
    const random = createRandom(seed);
    const { lookUp, asked, answer, advance, settled } = bench();
    const isDead = (name: string): boolean => Number(name.slice(1)) % 4 !== 0;
    const waiting: { name: string; sinceMs: number; result: { result: string | undefined } }[] = [];
    let nowMs = 0;
    for (let round = 0; round < 20_000; round++) {
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
      const isWithin =
        new Set(asked).size === asked.length &&
        asked.length <= PLACES &&
        asked.filter(isDead).length <= PLACES - PLACES_OF_KNOWN;
      for (let nth = waiting.length - 1; nth >= 0; nth--)
        if (waiting[nth]?.result.result !== undefined) waiting.splice(nth, 1);
      const overdue = waiting.find(({ sinceMs }) => nowMs - sinceMs > LIMITS.dispatchWindowMs);
      const room = asked.length < PLACES - PLACES_OF_KNOWN;
      if (round % 100 === 0) await settled();
      const left = room && waiting.find(({ name, result }) => result.result === undefined && !asked.includes(name));
      if (!isWithin || overdue !== undefined || (left && round % 100 === 0)) {
        t.fail(`seed ${seed}, round ${round}: ${asked.length} asked, ${overdue?.name ?? "one"} waits`);
        return;
      }
    }
    t.pass(`20,000 rounds from seed ${seed}`);
  },
);
