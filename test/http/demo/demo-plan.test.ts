import t from "tap";
import type { DemoOptions } from "../../../http/commands/command-options.js";
import { demoPlan } from "../../../http/demo/demo-command.js";
import type { StoreOwner } from "../../../http/demo/demo-store.js";

const GIB = 2 ** 30;

/** Limit of the captures in bytes (null: none), by who made the store and what `--retain-bytes` says. */
const LIMITS: readonly [owner: StoreOwner, asked: number | null | undefined, expected: number | null][] = [
  ["new", undefined, 2 * GIB],
  ["demo", undefined, 2 * GIB],
  ["other", undefined, null],
  ["new", null, null],
  ["demo", null, null],
  ["other", null, null],
  ["new", 5 * GIB, 5 * GIB],
  ["demo", 5 * GIB, 5 * GIB],
  ["other", 5 * GIB, 5 * GIB],
];

function planOf(owner: StoreOwner, options: Partial<DemoOptions>) {
  return demoPlan({ captures: null, seed: 1, runs: null, ...options } as DemoOptions, owner);
}

for (const [owner, asked, expected] of LIMITS) {
  t.test(`captures in a store of ${owner}, --retain-bytes ${asked}: at most ${expected}`, async (t) => {
    const plan = planOf(owner, { "retain-bytes": asked });
    t.equal(plan.serveOptions["retain-bytes"], expected);
    const isUnlimited = plan.notes.some((note) => note.startsWith("captures are kept without a limit"));
    t.equal(isUnlimited, owner === "other" && asked === undefined, "who asked for no limit need not be told");
  });
}

t.test("a run whose captures are removed opens a new store alone, and only where captures are removed", async (t) => {
  const has = (owner: StoreOwner, options: Partial<DemoOptions>) => planOf(owner, options).hasOpeningRun;
  t.equal(has("new", {}), true);
  t.equal(has("demo", {}), false);
  t.equal(has("other", { "retain-bytes": GIB }), false);
  t.equal(has("new", { "retain-bytes": null }), false);
  t.equal(has("new", { runs: 8 }), false, "so few runs all show other scenes");
  t.match(planOf("new", { runs: 9 }), { hasOpeningRun: true, cell: { runs: 8 } }, "it is one of those asked for");
});
