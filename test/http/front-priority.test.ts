import t from "tap";
import { FrontPriority } from "../../http/front-priority.js";
import type { ThreadPolicy } from "../../workers/thread-priority.js";

function prioritized() {
  const policies: ThreadPolicy[] = [];
  const lines: string[] = [];
  const told = { busy: 0, refusal: undefined as string | undefined };
  const note =
    (level: string) =>
    (fields: Record<string, unknown>, message: string): void => {
      lines.push(`${level} ${message}${fields.reason === undefined ? "" : `: ${fields.reason}`}`);
    };
  const priority = new FrontPriority({
    async setPolicy(policy) {
      if (told.refusal !== undefined) throw new Error(told.refusal);
      policies.push(policy);
    },
    busyShare: () => told.busy,
    log: { info: note("info"), warn: note("warn") },
  });
  const look = async (busy: number, times = 1): Promise<void> => {
    told.busy = busy;
    for (let nth = 0; nth < times; nth++) await priority.look();
  };
  return { priority, policies, lines, told, look };
}

t.test("the front goes first as long as it leaves a fifth of its core", async (t) => {
  const { priority, policies, lines, look } = prioritized();
  t.notOk(priority.isFirst);
  await priority.begin();
  t.ok(priority.isFirst);
  await look(0.1, 5);
  await look(0.8, 5);
  t.same(policies, ["real-time"]);
  await look(0.81);
  t.same(policies, ["real-time", "normal"]);
  t.notOk(priority.isFirst);
  t.same(lines, ["info the thread that answers clients has real-time priority"]);
});

t.test("it goes first again once it has been quiet for ten looks", async (t) => {
  const { priority, policies, look } = prioritized();
  await priority.begin();
  await look(0.9, 3);
  await look(0.5, 9);
  await look(0.6);
  await look(0.5, 9);
  t.same(policies, ["real-time", "normal"]);
  await look(0.5);
  t.same(policies, ["real-time", "normal", "real-time"]);
  await look(0.9);
  await look(0.5, 9);
  t.same(policies, ["real-time", "normal", "real-time", "normal"], "looks are counted anew");
});

t.test("where the system refuses it, it is told once and left", async (t) => {
  const { priority, policies, lines, told, look } = prioritized();
  told.refusal = "Operation not permitted\n";
  await priority.begin();
  told.refusal = undefined;
  await look(0.9, 3);
  await look(0.1, 30);
  t.same(policies, []);
  t.same(lines, ["info no real-time priority for the thread that answers clients: Operation not permitted"]);
});

t.test("a change that fails is tried again with every look, and told once", async (t) => {
  const { priority, policies, lines, told, look } = prioritized();
  await priority.begin();
  told.refusal = "EAGAIN";
  await look(0.9, 4);
  t.same(policies, ["real-time"]);
  told.refusal = undefined;
  await look(0.9);
  t.same(policies, ["real-time", "normal"]);
  told.refusal = "ENOMEM";
  await look(0.1, 10);
  t.same(lines.slice(1), [
    "warn the priority of the thread that answers clients stays as it is for now: EAGAIN",
    "warn the priority of the thread that answers clients stays as it is for now: ENOMEM",
  ]);
});

t.test("while one change is made no other one is begun", async (t) => {
  let done = (): void => {};
  const policies: ThreadPolicy[] = [];
  const priority = new FrontPriority({
    setPolicy(policy) {
      policies.push(policy);
      return policy === "normal" ? new Promise<void>((resolve) => (done = resolve)) : Promise.resolve();
    },
    busyShare: () => 1,
    log: { info() {}, warn() {} },
  });
  await priority.begin();
  const changing = priority.look();
  await priority.look();
  t.same(policies, ["real-time", "normal"]);
  done();
  await changing;
});
