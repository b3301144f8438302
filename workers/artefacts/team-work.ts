/**
 * Work that threads share out among themselves: stages one after the other, each of pieces. Whoever is free takes the next piece; whoever ends the
 * last one of a stage says what comes next. So a thread that begins late, or has harder pieces, does fewer, and between stages nobody has to be
 * sent a message: that takes longer than many a piece.
 */
import { deserialize, serialize } from "node:v8";

/** What the threads share of their work, as it crosses between them. */
export interface Team {
  words: SharedArrayBuffer;
  stages: SharedArrayBuffer;
}

/** Words (i32): the stage under way, then for each stage the next piece, those done, all, and the bytes that tell of it; then for each member its turns. */
const STAGE = 0;
const FIRST_STAGE = 1;
const [NEXT, DONE, PIECES, LENGTH, STAGE_WORDS] = [0, 1, 2, 3, 4];
const MOST_STAGES = 8;
const FIRST_MEMBER = FIRST_STAGE + MOST_STAGES * STAGE_WORDS;
const STAGE_BYTES = 2_048;
/** In place of a stage: there is no more to do, or it is of no use. */
const ENDED = -1;

/** A member's thread is given back so often: what waits for it, a client above all, may go before the rest. */
const TURN_MS = 25;
/** Whoever has no piece left looks for the next stage so long before it sleeps. */
const AWAKE_MS = 0.2;

/** The same in every thread; a stage is data. */
export interface Stages<S, R> {
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

export function newTeam<S>(members: number, first: S, pieces: number): Team {
  const team = {
    words: new SharedArrayBuffer(4 * (FIRST_MEMBER + members)),
    stages: new SharedArrayBuffer(STAGE_BYTES * MOST_STAGES),
  };
  writeStage(team, 0, first, pieces);
  return team;
}

/** Nobody begins another piece: the work is done, or given up. */
export function endWork({ words: shared }: Team): void {
  const words = new Int32Array(shared);
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
  const words = new Int32Array(team.words);
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
    const stage = own?.nth === nth ? own.stage : readStage<S>(team, nth);
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
        writeStage(team, nth + 1, next.stage, stages.pieces(next.stage));
        own = { nth: nth + 1, stage: next.stage };
      }
      const isOurs = Atomics.compareExchange(words, STAGE, nth, "stage" in next ? nth + 1 : ENDED) === nth;
      Atomics.notify(words, STAGE);
      if (isOurs && "alone" in next) return { ended: "result", result: next.alone() };
    }
  }
}

/** Before it is the stage under way: nobody reads it. */
function writeStage<S>({ words: shared, stages }: Team, nth: number, stage: S, pieces: number): void {
  const bytes = serialize(stage);
  if (nth >= MOST_STAGES || bytes.length > STAGE_BYTES) {
    throw new Error(`stage ${nth}, ${bytes.length} bytes: there is room for ${MOST_STAGES} of ${STAGE_BYTES}`);
  }
  new Uint8Array(stages, nth * STAGE_BYTES, bytes.length).set(bytes);
  const words = new Int32Array(shared);
  const at = FIRST_STAGE + nth * STAGE_WORDS;
  words[at + PIECES] = pieces;
  words[at + LENGTH] = bytes.length;
}

function readStage<S>({ words, stages }: Team, nth: number): S {
  const lengthBytes = new Int32Array(words)[FIRST_STAGE + nth * STAGE_WORDS + LENGTH] as number;
  // A copy: what is shared is not decoded.
  return deserialize(Buffer.from(new Uint8Array(stages, nth * STAGE_BYTES, lengthBytes))) as S;
}
