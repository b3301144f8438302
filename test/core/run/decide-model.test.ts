/**
 * Random messages against a model of the cell link that is as plain as its tables, written from the contract:
 * it must accept and refuse the same, for a reason that the model sees too, and the run must stand the same afterwards. Every
 * accepted message goes through its record as well, and a second state folds what comes back.
 */
import { isDeepStrictEqual } from "node:util";
import { encode } from "@msgpack/msgpack";
import t from "tap";
import type { CellMessage } from "../../../core/link/cell-message-schema.js";
import { parseCellMessage } from "../../../core/link/parse-cell-message.js";
import { MESSAGE_REFUSAL_CODES } from "../../../core/link/refusal.js";
import { createRandom } from "../../../core/random.js";
import { type RunState, summarizeRun } from "../../../core/run/run-state.js";
import { decodeChanges, encodeChanges } from "../../../storage/records/change-record.js";
import { decodeIndex } from "../../../storage/records/record-index.js";
import { asModel, CellLinkModel, type ModelRun } from "../../helpers/link/cell-link-model.js";
import { randomCellMessage } from "../../helpers/link/random-cell-message.js";
import { type Decision, PlainState } from "../../helpers/recorder/plain-state.js";

const seed = Number(process.env.TEST_SEED ?? 20261120);
t.comment(`TEST_SEED=${seed}`);

t.test("random messages: accepted, refused and folded as a plain model does", async (t) => {
  const ROUNDS = 40;
  const counts = { accepted: 0, refused: 0, completed: 0 };
  const codes = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    const random = createRandom(seed + round);
    const state = new PlainState();
    const replayed = new PlainState();
    const model = new CellLinkModel();
    // ASCII only: TAP's reader does not see a failure whose line holds a U+2028.
    const where = (at: number, message: CellMessage) =>
      `seed ${seed + round}, message ${at}: ${JSON.stringify(message)}`.replaceAll(/[^ -~]/g, "?").slice(0, 500);
    const decided: [Decision, string][] = [];
    for (let at = 0; at < 400; at++) {
      let [message, payloadBytes] = randomCellMessage(random, model);
      message = parseCellMessage(JSON.parse(JSON.stringify(message)));
      const sent = JSON.stringify(message);
      const faults = model.take(message, payloadBytes);
      let decision = state.send(message, payloadBytes);
      if (JSON.stringify(message) !== sent) return void t.fail(`the message itself was changed: ${where(at, message)}`);
      if ("refusal" in decision) {
        counts.refused++;
        codes.set(decision.refusal.code, (codes.get(decision.refusal.code) ?? 0) + 1);
        if (!faults.includes(decision.refusal.code)) {
          return void t.fail(`refused with ${decision.refusal.code}, the model says ${faults}: ${where(at, message)}`);
        }
      } else {
        counts.accepted++;
        if (faults.length > 0) return void t.fail(`accepted, the model says ${faults}: ${where(at, message)}`);
        keep(decision, state, replayed, decided);
        // Finalizing is over at some point.
        const { runId } = decision.changes[0] as { runId?: string };
        const finalizing = [...state.runs.values()].find((run) => run.status === "finalizing" && random.chance(0.05));
        if (finalizing !== undefined && runId !== undefined) {
          decision = state.complete(finalizing.id);
          model.end(model.runs.get(finalizing.id) as ModelRun, "completed", null);
          keep(decision, state, replayed, decided);
          counts.completed++;
        }
      }
      for (const [id, run] of state.runs) {
        if (!isDeepStrictEqual(asModel(run), model.runs.get(id))) {
          return void t.fail(where(at, message), { found: asModel(run), expected: model.runs.get(id) });
        }
      }
      if (state.runs.size !== model.runs.size) return void t.fail(`runs: ${where(at, message)}`);
    }
    for (const [decision, snapshot] of decided) {
      if (JSON.stringify(decision) !== snapshot)
        return void t.fail(`seed ${seed + round}: a change was changed after its record`);
    }
    if (!isDeepStrictEqual([...replayed.runs], [...state.runs])) {
      return void t.fail(`seed ${seed + round}: records give back other runs than were folded`);
    }
    for (const run of state.runs.values()) {
      const bytes = encode({ run }).length;
      if (bytes > run.documentBytes + 1_000) return void t.fail(`${bytes} bytes, counted as ${run.documentBytes}`);
    }
  }
  t.comment(JSON.stringify({ ...counts, ...Object.fromEntries(codes) }));
  t.ok(counts.accepted > 4_000, `${counts.accepted} accepted`);
  t.ok(counts.refused > 2_000, `${counts.refused} refused`);
  t.ok(counts.completed > 20, `${counts.completed} runs completed`);
  for (const code of MESSAGE_REFUSAL_CODES) {
    t.ok((codes.get(code) ?? 0) > 0, `${code}: ${codes.get(code)}`);
  }
});

/** Takes the decision through its record into the second state. */
function keep(decision: Decision, state: PlainState, replayed: PlainState, decided: [Decision, string][]): void {
  if ("refusal" in decision) throw new Error(decision.refusal.message);
  const [change] = decision.changes;
  const run = change !== undefined && "runId" in change ? state.runs.get(change.runId) : undefined;
  const record = encodeChanges({ producer: "p", sequence: decided.length + 1 }, decision.changes, run);
  const index = decodeIndex(record.type, record.index);
  if ("summary" in index && !isDeepStrictEqual(index.summary, summarizeRun(run as RunState))) {
    throw new Error(`index section of ${JSON.stringify(summarizeRun(run as RunState))}`);
  }
  replayed.apply(decodeChanges(record.type, record.body), decision.timeUs);
  // An ended run is folded no more: the snapshot of a whole run would only be long.
  decided.push([decision, JSON.stringify(decision)]);
}
