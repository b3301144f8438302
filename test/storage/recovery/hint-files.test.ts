/** A store with hint files answers as one without, whatever is wrong with them. */
import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { segmentBaseOf } from "../../../storage/log/segment.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import type { SimulatedDisk } from "../../helpers/disk/simulated-disk.js";
import { CellHistory } from "../../helpers/link/cell-history.js";
import { RUN_ID } from "../../helpers/link/cell-messages.js";
import { listOf } from "../../helpers/list-of.js";
import { HintedStore, hintPathsOf, nextRecord, stateAnswers } from "../../helpers/store/hinted-store.js";
import { createDisk, META, until } from "../../helpers/store/log-harness.js";
import { differences } from "../../helpers/store/view-comparison.js";
import { sized } from "../../helpers/test-size.js";
import { webhookChanges } from "../../helpers/webhooks/webhook-fixtures.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_126);
const ROUNDS = sized(2, 100);

/** What can be wrong with hint files, and what the opening says of it. */
const HARMS: [what: string, codes: RegExp, harm: (disk: SimulatedDisk, random: Random) => void][] = [
  ["nothing", /^$/, () => {}],
  ["all are gone", /^(hint_missing ?)+$/, (disk) => hintPathsOf(disk).forEach((path) => void disk.removeFile(path))],
  ["one is gone", /^hint_missing$/, (disk, random) => disk.removeFile(random.pick(hintPathsOf(disk)))],
  [
    "some are gone",
    /^(hint_missing ?)*$/,
    (disk, random) => hintPathsOf(disk).forEach((path) => void (random.chance(0.5) && disk.removeFile(path))),
  ],
  ["a flipped bit", /^hint_damaged$/, (disk, random) => change(disk, random, flipped)],
  ["a cut", /^hint_damaged$/, (disk, random) => change(disk, random, cut)],
  ["zeros", /^hint_damaged$/, (disk, random) => change(disk, random, (bytes) => bytes.fill(0))],
  [
    "two in each other's place",
    /^hint_unusable hint_unusable$/,
    (disk) => {
      const [one, other] = hintPathsOf(disk) as [string, string];
      const bytes = disk.bytesOf(one);
      disk.setBytes(one, disk.bytesOf(other));
      disk.setBytes(other, bytes);
    },
  ],
  [
    "one beside the newest segment",
    /^hint_unusable$/,
    (disk) => {
      const newest = disk
        .paths()
        .filter((path) => path.endsWith(".seg"))
        .at(-1) as string;
      disk.setBytes(newest.replace(".seg", ".hint"), disk.bytesOf(hintPathsOf(disk)[0] as string));
    },
  ],
];

function change(disk: SimulatedDisk, random: Random, how: (bytes: Uint8Array, random: Random) => Uint8Array): void {
  const path = random.pick(hintPathsOf(disk));
  disk.setBytes(path, how(disk.bytesOf(path).slice(), random));
}

function flipped(bytes: Uint8Array, random: Random): Uint8Array {
  bytes[random.integer(0, bytes.length - 1)]! ^= 1 << random.integer(0, 7);
  return bytes;
}

function cut(bytes: Uint8Array, random: Random): Uint8Array {
  return bytes.slice(0, random.integer(0, bytes.length - 1));
}

/** Every sealed segment has a hint file. */
async function allWritten(store: HintedStore): Promise<void> {
  const sealed = (): number => store.disk.paths().filter(isSegment).length - 1;
  await until(() => store.hintPaths().length === sealed(), "all hint files");
}

function isSegment(path: string): boolean {
  return path.startsWith(META) && segmentBaseOf(path.slice(META.length + 1)) !== undefined;
}

/** The store opened from this disk answers as the model, and decides as a state that was read from all segments. */
async function answersAlike(
  t: Test,
  disk: SimulatedDisk,
  history: CellHistory,
  random: Random,
  expected: unknown,
): Promise<HintedStore> {
  const store = await HintedStore.open(disk);
  store.finish();
  t.same(stateAnswers(store.state, history), expected, "the recorder's state");
  t.same(await differences(store.view, history, random, 20), [], "the view");
  t.match(store.log.recovery, { lostRecords: 0 });
  return store;
}

t.test(`the same answers with hint files, without, and with damaged ones, TEST_SEED=${SEED}`, async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const random = createRandom(SEED * 1_000 + round);
    const history = new CellHistory(random);
    const disk = await createDisk();
    const first = await HintedStore.open(disk);
    first.hints.start();
    for (let nth = 0; nth < 700; nth++) await first.append(nextRecord(history, random));
    await allWritten(first);
    await first.close();
    const written = new Map(hintPathsOf(disk).map((path) => [path, disk.bytesOf(path)]));
    t.ok(written.size > 5, `${written.size} hint files`);
    const whole = await HintedStore.open(disk.copy(), { usesHints: false });
    whole.finish();
    const expected = stateAnswers(whole.state, history);
    for (const [what, codes, harm] of HARMS) {
      await t.test(`round ${round}: ${what}`, async (t) => {
        const copy = disk.copy();
        harm(copy, random);
        const store = await answersAlike(t, copy, history, random, expected);
        const { findings, hints } = store.log.recovery;
        t.match(findings.map(({ code }) => code).join(" "), codes);
        t.equal(hints, written.size - findings.filter(({ segment }) => written.has(`${META}/${segment}`)).length);
        store.hints.start();
        await allWritten(store);
        await until(
          () => [...written].every(([path, bytes]) => Buffer.compare(copy.bytesOf(path), bytes) === 0),
          "those of before, byte for byte",
        );
        t.equal(store.hintPaths().length, written.size);
        await store.close();
        const again = await answersAlike(t, copy, history, random, expected);
        t.same(again.log.recovery.findings, []);
        await again.close();
      });
    }
  }
});

t.test("webhooks and deliveries, pending ones in the order in which they began", async (t) => {
  const disk = await createDisk();
  const random = createRandom(SEED);
  const history = new CellHistory(random);
  const first = await HintedStore.open(disk);
  first.hints.start();
  for (const change of webhookChanges(RUN_ID))
    await first.append({ ...encodeWebhookChange(change), timeUs: history.timeUs });
  for (let nth = 0; nth < 300; nth++) await first.append(history.next());
  await allWritten(first);
  await first.close();
  const answers = async (usesHints: boolean) => {
    const { view, state, log } = await HintedStore.open(disk.copy(), { usesHints });
    view.fold.finishOpening();
    state.finishReplay();
    t.equal(log.recovery.hints > 0, usesHints);
    return {
      hooks: view.webhooks.list(),
      kept: [...state.webhooks.webhooks()],
      pending: [...state.webhooks.pending()],
    };
  };
  t.same(await answers(true), await answers(false));
});

t.test(
  "the newest segment's opening state is damaged: the segments before it are read up to an intact one",
  async (t) => {
    const disk = await createDisk();
    const random = createRandom(SEED);
    const history = new CellHistory(random);
    const first = await HintedStore.open(disk);
    first.hints.start();
    for (let nth = 0; nth < 300; nth++) await first.append(history.next());
    await allWritten(first);
    await first.close();
    const newest = disk.paths().filter(isSegment).at(-1) as string;
    const bytes = disk.bytesOf(newest).slice();
    bytes[64 + 48 + 2]! ^= 1;
    disk.setBytes(newest, bytes);
    const answers = async (usesHints: boolean) => {
      const store = await HintedStore.open(disk.copy(), { usesHints });
      store.finish();
      return { answers: stateAnswers(store.state, history), recovery: store.log.recovery };
    };
    const [hinted, whole] = [await answers(true), await answers(false)];
    t.same(hinted.answers, whole.answers);
    t.match(hinted.recovery.findings, listOf({ code: "opening_state_damaged" }));
    t.equal(hinted.recovery.hints, hintPathsOf(disk).length - 1, "but for the one before it");
  },
);
