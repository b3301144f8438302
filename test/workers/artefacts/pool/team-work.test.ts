import t from "tap";
import { endWork, newTeam, type Stages, type Team, takeTurn } from "../../../../workers/artefacts/pool/team-work.js";

type Stage = { nth: number; pieces: number };

/** Stages of so many pieces each, and what was done of them. */
class Told implements Stages<Stage, string> {
  readonly done: string[] = [];
  readonly #pieces: readonly number[];
  /** What a piece does before it is done. */
  before: (name: string) => void | Promise<void> = () => {};

  constructor(pieces: readonly number[]) {
    this.#pieces = pieces;
  }

  team(members: number): Team {
    const [pieces = 0] = this.#pieces;
    return newTeam(members, this.numbersOf({ nth: 0, pieces }), pieces);
  }

  numbersOf({ nth, pieces }: Stage): number[] {
    return [nth, pieces];
  }

  stageOf([nth = -1, pieces = -1]: Float64Array): Stage {
    return { nth, pieces };
  }

  pieces({ pieces }: Stage): number {
    return pieces;
  }

  async run({ nth }: Stage, piece: number): Promise<void> {
    const name = `${nth}.${piece}`;
    await this.before(name);
    this.done.push(name);
  }

  next({ nth }: Stage): { stage: Stage } | { alone: () => string } {
    const pieces = this.#pieces[nth + 1];
    return pieces === undefined ? { alone: () => "the end" } : { stage: { nth: nth + 1, pieces } };
  }
}

/** Resolved from outside. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Turns until one is not over for its time alone: on a busy machine one turn may not be enough. */
async function takeTurns(team: ReturnType<Told["team"]>, member: number, told: Told) {
  for (let turn = 1; ; turn++) {
    const end = await takeTurn(team, { member, turn }, told);
    if (end.ended !== "more") return end;
  }
}

t.test("one member does it all where no other comes; for whoever comes later it is over", async (t) => {
  const told = new Told([1, 3, 2]);
  const team = told.team(2);
  t.same(await takeTurns(team, 1, told), { ended: "result", result: "the end" });
  t.same(told.done, ["0.0", "1.0", "1.1", "1.2", "2.0", "2.1"]);
  t.same(await takeTurn(team, { member: 0, turn: 1 }, told), { ended: "over" });
  t.equal(told.done.length, 6);
});

t.test("no piece of a stage is begun before all of the last one are done, and each is done once", async (t) => {
  const told = new Told([1, 3, 2]);
  const team = told.team(2);
  const held = gate();
  const isHeld = gate();
  told.before = async (name) => {
    if (name !== "1.0") return;
    isHeld.open();
    await held.opened;
  };
  const first = takeTurn(team, { member: 0, turn: 1 }, told);
  await isHeld.opened;
  t.same(await takeTurn(team, { member: 1, turn: 1 }, told), { ended: "more" }, "the others are done: it waits");
  t.same(told.done, ["0.0", "1.1", "1.2"]);
  held.open();
  t.same(await first, { ended: "more" }, "it took as long");
  t.same(await takeTurn(team, { member: 1, turn: 2 }, told), { ended: "result", result: "the end" });
  t.same(told.done, ["0.0", "1.1", "1.2", "1.0", "2.0", "2.1"]);
  t.same(await takeTurn(team, { member: 0, turn: 2 }, told), { ended: "over" });
});

t.test("a turn is over when it has taken its time, and the next one goes on", async (t) => {
  const told = new Told([4]);
  const team = told.team(1);
  told.before = () => {
    const untilMs = performance.now() + 30;
    while (performance.now() < untilMs);
  };
  for (const turn of [1, 2, 3]) {
    t.same(await takeTurn(team, { member: 0, turn }, told), { ended: "more" });
    t.equal(told.done.length, turn);
  }
  t.same(await takeTurn(team, { member: 0, turn: 4 }, told), { ended: "result", result: "the end" });
});

t.test("a turn that was begun before gives the work up", async (t) => {
  const told = new Told([2, 2]);
  const team = told.team(2);
  const held = gate();
  told.before = () => held.opened;
  const first = takeTurn(team, { member: 0, turn: 1 }, told);
  t.same(await takeTurn(team, { member: 0, turn: 1 }, told), { ended: "lost" });
  t.same(await takeTurn(team, { member: 1, turn: 1 }, told), { ended: "over" });
  held.open();
  t.same(await first, { ended: "over" });
  t.same(told.done, ["0.0"], "what is under way ends, and nothing more is begun");
});

t.test("what is given up stays so, also when the last piece of a stage ends after it", async (t) => {
  for (const pieces of [[1, 1], [1]]) {
    const told = new Told(pieces);
    const team = told.team(1);
    told.before = () => endWork(team);
    t.same(await takeTurn(team, { member: 0, turn: 1 }, told), { ended: "over" }, `${pieces.length} stages`);
    t.same(told.done, ["0.0"]);
  }
});

t.test("what a piece throws is thrown, and the work is given up", async (t) => {
  const told = new Told([2, 1]);
  const team = told.team(2);
  told.before = () => {
    throw new Error("no disk");
  };
  await t.rejects(takeTurn(team, { member: 0, turn: 1 }, told), /no disk/);
  t.same(await takeTurn(team, { member: 1, turn: 1 }, told), { ended: "over" });
  t.same(told.done, []);
});

t.test("stages have their room", async (t) => {
  const many = new Told([1, 1, 1, 1, 1, 1, 1, 1, 1]);
  await t.rejects(
    takeTurn(many.team(1), { member: 0, turn: 1 }, many),
    /stage 8, 2 numbers: there is room for 8 of 32/,
  );
  newTeam(1, new Array<number>(32).fill(1), 1);
  t.throws(() => newTeam(1, new Array<number>(33).fill(1), 1), /stage 0, 33 numbers: there is room for 8 of 32/);
});
