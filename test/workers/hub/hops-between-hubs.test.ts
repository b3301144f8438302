/** Hubs of one plant that started at different times and were stopped at will: a client may ask any of them. */
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { formatTimeUs, parseTimeUs } from "../../../core/timestamps.js";
import { SimulatedHub } from "../../helpers/plant/simulated-hub.js";
import { SimulatedStream } from "../../helpers/plant/simulated-stream.js";
import { sized } from "../../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_129);
const ROUNDS = sized(4, 100);
const CELLS = ["a", "b", "c", "a"];
const BASE_URL = "http://plant";

/** What a client keeps of all runs, and its mark. */
class Sync {
  readonly runs = new Map<string, string>();
  markUs = 0;
  asked = 0;

  /** Takes what changed since the mark, by `updated_since` or by the stream of changes. */
  async ask({ view }: SimulatedHub, by: "list" | "changes"): Promise<void> {
    this.asked++;
    if (by === "list") {
      const { read } = view.runPage({ updatedSinceUs: this.markUs, offset: 0, limit: 10_000 }, BASE_URL);
      this.#take((await read()).runs);
      return;
    }
    const changes = view.runChanges({ filter: {}, markUs: this.markUs, currentUs: -1 });
    const { runs } = await changes.read([...changes.timesUs.keys()], BASE_URL);
    this.#take(runs);
  }

  #take(runs: readonly Uint8Array[]): void {
    for (const json of runs) {
      const text = Buffer.from(json).toString();
      const { id, updated_at } = JSON.parse(text) as { id: string; updated_at: string };
      this.runs.set(id, text);
      this.markUs = Math.max(this.markUs, parseTimeUs(updated_at) as number);
    }
  }
}

for (let round = 0; round < ROUNDS; round++) {
  const seed = SEED + round;
  t.test(`two hubs give the same bytes, and syncs that hop miss nothing: seed ${seed}`, async (t) => {
    const random = createRandom(seed);
    const stream = new SimulatedStream(seed, CELLS);
    stream.grow(sized(300, 900));
    const { messages } = stream;
    const first = await SimulatedHub.open();
    let late: SimulatedHub | undefined;
    const syncs = { list: new Sync(), changes: new Sync() };
    const startAt = random.integer(1, messages.length);
    const isBehind = ({ hub }: SimulatedHub) => hub.streamSequence < messages.length;
    while (late === undefined || isBehind(first) || isBehind(late)) {
      if (late === undefined && first.hub.streamSequence >= startAt) late = await SimulatedHub.open();
      const hub = late === undefined ? first : random.pick([first, late]);
      await hub.feed(messages, random, random.integer(1, 60));
      if (random.chance(0.2)) await hub.crash(random);
      await hub.committed();
      for (const by of ["list", "changes"] as const) await syncs[by].ask(random.pick([first, late ?? first]), by);
    }
    for (const hub of [first, late]) await hub.committed();
    const filters = [
      ...[{}, { cells: ["b"] }, { cells: ["a", "renamed"] }, { offset: 7, limit: 3 }],
      ...["completed", "failed", "cancelled", "running", "finalizing", "pending"].map((status) => ({ status })),
      ...["passed", "failed", "warning", "none"].map((qualityStatus) => ({ qualityStatus })),
      ...stream.runs
        .slice(0, 20)
        .flatMap(({ run, updatedAtUs }) => [
          { programId: run.programId, offset: 1, limit: 5 },
          { updatedSinceUs: updatedAtUs },
        ]),
    ];
    const fromNothing = await SimulatedHub.open();
    await fromNothing.feed(messages, random);
    await fromNothing.committed();
    const expected = await fromNothing.answers(filters);
    for (const [name, hub] of Object.entries({ first, late })) {
      const answers = await hub.answers(filters);
      const different = [...expected].filter(([what, text]) => answers.get(what) !== text).map(([what]) => what);
      t.same(different, [], `the ${name} hub answers as one that was never stopped`);
    }
    const marks = stream.runs.map(({ run, updatedAtUs }) => [run.id, formatTimeUs(updatedAtUs)]).sort();
    for (const [by, sync] of Object.entries(syncs)) {
      for (let before = -1; before !== sync.markUs; ) {
        before = sync.markUs;
        await sync.ask(random.pick([first, late]), by as "list" | "changes");
      }
      const synced = [...sync.runs].map(([id, json]) => [id, (JSON.parse(json) as { updated_at: string }).updated_at]);
      t.same(synced.sort(), marks, `a sync by ${by} has every run as the model has it`);
    }
    const { crashes, cuts } = {
      crashes: first.counts.crashes + late.counts.crashes,
      cuts: first.counts.cuts + late.counts.cuts,
    };
    t.comment(
      `seed ${seed}: ${messages.length} messages, ${marks.length} runs, ${expected.size} answers, ${crashes} crashes (${cuts} with a cut log); ` +
        `${syncs.list.asked + syncs.changes.asked} syncs over two hubs; 0 missed, 0 different`,
    );
  });
}
