import t from "tap";
import { isProcessingOpen } from "../../../core/capture/artefact.js";
import type { CellChange, RunChange } from "../../../core/link/change.js";
import { endRun } from "../../../core/run/run-end.js";
import type { RunState } from "../../../core/run/run-state.js";
import { encodeChanges, encodeRefusal } from "../../../storage/records/change-record.js";
import { encodeWebhookChange } from "../../../storage/records/webhook-record.js";
import { HintChoice } from "../../../storage/recovery/hint-choice.js";
import { idOf, PROGRAM, RUN_ID, stateWithRun } from "../../helpers/link/cell-messages.js";
import { failedDelivery, SECRETS, WEBHOOK } from "../../helpers/webhooks/webhook-fixtures.js";

type Encoded = { type: number; index: Uint8Array; body: Uint8Array };

const ORIGIN = { producer: "cell", sequence: 9 };
const run = stateWithRun("running").runs.get(RUN_ID) as RunState;
const ended = endRun(run, { status: "completed", errorMessage: null, notes: [] }, 5_000);
const { program } = PROGRAM;

const cell = (...changes: CellChange[]): Encoded => encodeChanges(ORIGIN, changes, undefined);
const delta = (id = RUN_ID): Encoded => {
  const change: RunChange = { kind: "job_finished", runId: id, jobId: "job" } as never;
  return encodeChanges(ORIGIN, [change], { ...run, id });
};
const end = (of: Partial<RunState> = {}): Encoded => {
  const whole = { ...ended, ...of };
  return encodeChanges(null, [{ kind: "run_ended", runId: whole.id, run: whole }], undefined);
};
const row = (key: string): CellChange => ({
  kind: "component_put",
  row: { key, status: "healthy", id: null, detail: null, enabled: null, required: true },
});
const webhook = (): Encoded => encodeWebhookChange({ kind: "webhook_put", webhook: WEBHOOK, secrets: SECRETS });
const delivery = (id = idOf(7)): Encoded =>
  encodeWebhookChange({ kind: "delivery_put", delivery: { ...failedDelivery(null), id }, history: [], payload: "{}" });

/** Which of the records are chosen, by their place; with a `+` if the body is. */
function chosen(...records: Encoded[]): string[] {
  const choice = new HintChoice();
  for (const [nth, record] of records.entries())
    choice.take({ ...record, flags: 0, sequence: nth, timeUs: 1 }, { segmentBase: 1, offset: 8 * nth, length: 8 });
  return choice.entries().map(({ sequence, body, offset, index }) => {
    t.equal(offset, 8 * sequence);
    t.same(Buffer.from(index), Buffer.from(records[sequence]?.type === 1 ? [] : (records[sequence]?.index ?? [])));
    return `${sequence}${body.length > 0 ? "+" : ""}`;
  });
}

t.test("which records of a segment a start needs", async (t) => {
  const opening = { type: 1, index: new Uint8Array(0), body: Buffer.from("state") };
  const mark = { type: 2, index: new Uint8Array(0), body: new Uint8Array(0) };
  const refusal = encodeRefusal(ORIGIN, { code: "not_found", message: "", params: {} });
  const cases: [what: string, records: Encoded[], expected: string[]][] = [
    ["an opening state, for its time; no marks, no refusals", [opening, mark, refusal], ["0"]],
    ["a run that goes on", [delta(), delta()], ["0+", "1+"]],
    ["a run that ends: only its end", [delta(), delta(idOf(3)), end()], ["1+", "2"]],
    ["a run that is recorded again", [end(), delta(idOf(3)), end()], ["1+", "2"]],
    ["changes after an end, which only damage brings", [end(), delta()], ["0", "1+"]],
    ["the last of a component, with its deletion", [cell(row("a")), cell(row("b")), cell(row("a"))], ["1+", "2+"]],
    [
      "a deletion takes the place of what it deletes",
      [cell(row("a")), cell({ kind: "component_deleted", key: "a" })],
      ["1+"],
    ],
    ["several in one: as long as one of them is the last", [cell(row("a"), row("b")), cell(row("a"))], ["0+", "1+"]],
    ["and not longer", [cell(row("a"), row("b")), cell(row("a")), cell(row("b"))], ["1+", "2+"]],
    [
      "a program that was put and deleted has existed",
      [cell({ kind: "program_put", program }), cell({ kind: "program_deleted", id: program.id })],
      ["0+", "1+"],
    ],
    ["all webhook records, with secrets", [webhook(), webhook()], ["0+", "1+"]],
    ["the last of each delivery", [delivery(), delivery(idOf(8)), delivery()], ["1", "2"]],
    ["a record of a newer release", [{ type: 99, index: Buffer.from("i"), body: Buffer.from("b") }], ["0+"]],
  ];
  for (const [what, records, expected] of cases) t.same(chosen(...records), expected, what);
});

t.test("a run with artefacts still to be made keeps its body", async (t) => {
  const frames = run.frames.map((frame) => ({ ...frame, status: "complete" as const, completedAtUs: 1 }));
  t.ok(isProcessingOpen({ ...ended, frames }));
  t.same(chosen(end(), end({ frames })), ["1+"]);
});
