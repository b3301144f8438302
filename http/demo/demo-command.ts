import { once } from "node:events";
import { isatty } from "node:tty";
import { counted } from "../../core/counted.js";
import type { DemoCellReport } from "../../workers/demo-cell/demo-cell-messages.js";
import { type DemoCellProcess, startDemoCell } from "../../workers/demo-cell/demo-cell-process.js";
import { startDemoReceiver } from "../../workers/demo-cell/demo-receiver.js";
import { SCENES } from "../../workers/demo-cell/scenes.js";
import type { DemoOptions } from "../commands/command-options.js";
import { startServing, stopGracefully } from "../commands/serve-command.js";
import { untilSignal } from "../commands/until-signal.js";
import { standardOutput } from "../log/standard-error.js";
import { makeOpeningRun, markStore, type StoreOwner, storeOwner } from "./demo-store.js";
import { registerReceivers, removeReceivers } from "./demo-webhooks.js";

/** The demo cell has failed. */
export class DemoCellError extends Error {
  override name = "DemoCellError";
}

const STDOUT = 1;
const RETAINED_BYTES = 2 * 1024 ** 3;

/**
 * `demo`: runs the service, a process that plays a cell over the real cell link, and receivers of its webhooks. The service goes on when the cell
 * has made all its runs. A signal ends everything, and so does a stdout or stderr whose reader has gone.
 * @throws DemoCellError if the cell failed, after the service has ended too
 */
export async function demo(options: DemoOptions, warnings: readonly string[]): Promise<void> {
  let leave = (): void => {};
  const left = new Promise<"left">((resolve) => (leave = () => resolve("left")));
  const stopped = Promise.race([untilSignal(), left]);
  const say = standardOutput(leave);
  const owner = await storeOwner(options.data);
  const receiver = await startDemoReceiver();
  const plan = demoPlan(options, owner);
  const service = await startServing(plan.serveOptions, {
    warnings,
    say,
    onLogGone: leave,
    onGivenUp: leave,
    async beforeOpening(recorder) {
      // If the store cannot be opened, the service itself says so.
      if (plan.hasOpeningRun) await makeOpeningRun(recorder, options.seed, stopped).catch(() => {});
    },
  }).catch((error: unknown) => {
    receiver.close();
    throw error;
  });
  if (owner === "new") await markStore(options.data).catch(() => {});
  say(`open ${service.url}`);
  for (const note of plan.notes) say(note);
  const webhooks = await registerReceivers(service.url, receiver).catch((error: unknown) => {
    say(`the demo's webhooks could not be registered: ${(error as Error).message}`);
    return undefined;
  });
  let reason = "";
  let ended = 0;
  const onReport = (report: DemoCellReport): void => {
    if (report.kind === "failed") reason = `: ${report.message}`;
    // On a terminal only the first ones, so that the address stays in view. Elsewhere they go on, so that a reader that has gone is noticed.
    if (report.kind !== "run_ended") return;
    if (ended++ < SCENES.length || !isatty(STDOUT)) say(runLine(report));
    else if (ended === SCENES.length + 1) say("further runs are shown in the console only; Ctrl-C ends the demo");
  };
  const cell = startDemoCell({ ...plan.cell, socketPath: service.cellSocketPath }, onReport);
  try {
    await untilStopped(cell, stopped, () => reason);
  } finally {
    await cell.stop();
    // The receivers stop now. In somebody else's store, deliveries to them must not go on failing.
    if (owner === "other" && webhooks !== undefined) await removeReceivers(service.url, webhooks).catch(() => {});
    // An open receiver would keep the process from ending.
    await stopGracefully(service).finally(() => receiver.close());
  }
}

/** How the demo runs with these options in a store of this owner. It removes nothing from somebody else's store unless a limit is given. */
export function demoPlan(options: DemoOptions, owner: StoreOwner) {
  const asked = options["retain-bytes"];
  const retainBytes = asked === undefined ? (owner === "other" ? null : RETAINED_BYTES) : asked;
  const runs = options.runs ?? 0;
  // There is none if all captures are kept, or if only a few runs are wanted: those show the other scenes.
  const hasOpeningRun = owner === "new" && retainBytes !== null && (runs === 0 || runs > SCENES.length);
  const isGuest = owner === "other";
  const notes = isGuest
    ? [
        "the demo did not make this store: the cell's name, units and components in it stay as they are",
        "events of the demo's runs also go to the webhooks registered in it",
      ]
    : [];
  if (isGuest && asked === undefined) {
    notes.push("captures are kept without a limit, about 5 GB an hour: set one with --retain-bytes");
  }
  const remaining = hasOpeningRun && runs > 0 ? runs - 1 : runs;
  const cell = {
    seed: options.seed,
    runs: remaining,
    isGuest,
    ...(options.captures !== null && { capturesDirectory: options.captures }),
  };
  return { serveOptions: { ...options, "retain-bytes": retainBytes }, hasOpeningRun, notes, cell };
}

/** Resolves when the demo is to end; the cell may have made all its runs before. @throws DemoCellError */
async function untilStopped(cell: DemoCellProcess, stopped: Promise<unknown>, reason: () => string): Promise<void> {
  const code = await Promise.race([stopped.then(() => undefined), cell.exited]);
  // Its last message may still be on its way when it has ended.
  if (typeof code === "number" && cell.child.connected) await once(cell.child, "disconnect");
  // Ctrl-C in a terminal also reaches the cell, which may end before our own signal arrives.
  if (code === 0) await stopped;
  else if (typeof code === "number") throw new DemoCellError(`the demo cell ended with ${code}${reason()}`);
  else if (code === null) throw new DemoCellError(`the demo cell was killed${reason()}`);
}

type EndedRun = Extract<DemoCellReport, { kind: "run_ended" }>;

/** One line about what the cell did with one part. */
function runLine({ number, serialNumber, ending, outcome, placedDefects }: EndedRun): string {
  const words = {
    passed: "passed",
    failed: "failed the inspection",
    indeterminate: "indeterminate: not all could be measured",
  };
  const result = outcome === null ? `the run ${ending === "failed" ? "failed" : "was cancelled"}` : words[outcome];
  const defects = placedDefects === 0 ? "" : `, ${counted(placedDefects, "defect")} found`;
  return `run ${String(number).padStart(2)}  ${serialNumber}  ${result}${outcome === null ? "" : defects}`;
}
