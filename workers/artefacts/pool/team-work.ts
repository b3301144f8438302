/**
 * Work that threads share out among themselves: stages one after the other, each of pieces. Whoever is free takes the next piece; whoever ends the
 * last one of a stage says what comes next. So a thread that begins late, or has harder pieces, does fewer, and between stages nobody has to be
 * sent a message: that takes longer than many a piece.
 */

/**
 * What the threads share of their work, as it crosses between them: 32 numbers (f64) for each stage, then words (i32): the stage under way, for
 * each stage the next piece, those done and all, and for each member its turns.
 */
export type Team = SharedArrayBuffer;

const MOST_STAGES = 8;
const STAGE_NUMBERS = 32;
const WORDS_AT = 8 * STAGE_NUMBERS * MOST_STAGES;
const STAGE = 0;
const FIRST_STAGE = 1;
const [NEXT, DONE, PIECES, STAGE_WORDS] = [0, 1, 2, 3];
const FIRST_MEMBER = FIRST_STAGE + MOST_STAGES * STAGE_WORDS;
/** In place of a stage: there is no more to do, or it is of no use. */
const ENDED = -1;

/** A member's thread is given back so often: what waits for it, a client above all, may go before the rest. */
const TURN_MS = 25;
/** How long a thread without a piece looks for the next stage before it sleeps. */
const AWAKE_MS = 0.2;

/** The same in every thread. */
export interface Stages<S, R> {
  /** All that others need to know of a stage. */
  numbersOf(stage: S): readonly number[];
  /** @param numbers those of `numbersOf`, and zeros behind: where all threads have them */
  stageOf(numbers: Float64Array): S;
  pieces(stage: S): number;
  /** At the same time as other threads run others. */
  run(stage: S, piece: number): void | Promise<void>;
  /** Once all pieces of a stage are done, by one thread: the next stage, which others wait for, or what is left to do by this thread alone. */
  next(stage: S): { stage: S } | { alone: () => R };
}

/**
 * How a turn ended:
 * - `result`: the work is done
 * - `more`: another turn is needed
 * - `over`: there is nothing to do any more
 * - `lost`: this turn was begun before, by a thread that was lost; what it was at nobody knows, and the work is given up
 */
export type TurnEnd<R> = { ended: "result"; result: R } | { ended: "more" | "over" | "lost" };

/** @param first the stage to begin with, as numbers */
export function newTeam(members: number, first: readonly number[], pieces: number): Team {
  const team = new SharedArrayBuffer(WORDS_AT + 4 * (FIRST_MEMBER + members));
  writeStage(team, 0, first, pieces);
  return team;
}

/** Nobody begins another piece: the work is done, or given up. */
export function endWork(team: Team): void {
  const words = wordsOf(team);
  Atomics.store(words, STAGE, ENDED);
  Atomics.notify(words, STAGE);
}

/**
 * A turn of one member: of a few milliseconds more than `TURN_MS` at most, but for a piece that takes longer, or what is done alone.
 *
 * @param member from 0; @param turn from 1, the next one of the member
 * @throws what the stages throw, after which the work is given up
 */
export async function takeTurn<S, R>(
  team: Team,
  { member, turn }: { member: number; turn: number },
  stages: Stages<S, R>,
): Promise<TurnEnd<R>> {
  const words = wordsOf(team);
  if (Atomics.compareExchange(words, FIRST_MEMBER + member, turn - 1, turn) !== turn - 1) {
    endWork(team);
    return { ended: "lost" };
  }
  try {
    return await work(team, words, stages);
  } catch (error) {
    endWork(team);
    throw error;
  }
}

async function work<S, R>(team: Team, words: Int32Array, stages: Stages<S, R>): Promise<TurnEnd<R>> {
  const endMs = performance.now() + TURN_MS;
  /** The stage that this member has written, if it was the last. */
  let own: { nth: number; stage: S } | undefined;
  for (;;) {
    const nth = Atomics.load(words, STAGE);
    if (nth === ENDED) return { ended: "over" };
    const at = FIRST_STAGE + nth * STAGE_WORDS;
    const stage = own?.nth === nth ? own.stage : stages.stageOf(numbersAt(team, nth));
    const pieces = words[at + PIECES] as number;
    while (Atomics.load(words, STAGE) === nth) {
      if (performance.now() >= endMs) return { ended: "more" };
      const piece = Atomics.add(words, at + NEXT, 1);
      if (piece >= pieces) {
        // Others are at the last ones, which often takes less than to be woken does.
        const awakeMs = performance.now() + AWAKE_MS;
        while (Atomics.load(words, STAGE) === nth && performance.now() < awakeMs);
        Atomics.wait(words, STAGE, nth, endMs - performance.now());
        continue;
      }
      await stages.run(stage, piece);
      if (Atomics.add(words, at + DONE, 1) + 1 < pieces) continue;
      const next = stages.next(stage);
      if ("stage" in next) {
        writeStage(team, nth + 1, stages.numbersOf(next.stage), stages.pieces(next.stage));
        own = { nth: nth + 1, stage: next.stage };
      }
      const isOurs = Atomics.compareExchange(words, STAGE, nth, "stage" in next ? nth + 1 : ENDED) === nth;
      Atomics.notify(words, STAGE);
      if (isOurs && "alone" in next) return { ended: "result", result: next.alone() };
    }
  }
}

/** Before it is the stage under way: nobody reads it. */
function writeStage(team: Team, nth: number, numbers: readonly number[], pieces: number): void {
  if (nth >= MOST_STAGES || numbers.length > STAGE_NUMBERS) {
    throw new Error(`stage ${nth}, ${numbers.length} numbers: there is room for ${MOST_STAGES} of ${STAGE_NUMBERS}`);
  }
  numbersAt(team, nth).set(numbers);
  wordsOf(team)[FIRST_STAGE + nth * STAGE_WORDS + PIECES] = pieces;
}

function numbersAt(team: Team, stage: number): Float64Array {
  return new Float64Array(team, 8 * stage * STAGE_NUMBERS, STAGE_NUMBERS);
}

function wordsOf(team: Team): Int32Array {
  return new Int32Array(team, WORDS_AT);
}
