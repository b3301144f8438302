import { once } from "node:events";
import { isatty } from "node:tty";
import type { DemoCellReport } from "../../workers/demo-cell/demo-cell-messages.js";
import { type DemoCellProcess, startDemoCell } from "../../workers/demo-cell/demo-cell-process.js";
import { startDemoReceiver } from "../../workers/demo-cell/demo-receiver.js";
import { SCENES } from "../../workers/demo-cell/scenes.js";
import type { DemoOptions } from "../commands/command-options.js";
import { startServing, stopGracefully, untilSignal } from "../commands/serve-command.js";
import { standardOutput } from "../log/standard-error.js";
import { type EndedRun, guide, runLine } from "./demo-guide.js";
import { makeOpeningRun, markStore, type StoreOwner, storeOwner } from "./demo-store.js";
import { type DemoWebhookIds, registerReceivers, removeReceivers } from "./demo-webhooks.js";

/** The demo cell could not go on. */
export class DemoCellError extends Error {
  override name = "DemoCellError";
}

const STDOUT = 1;
const RETAINED_BYTES = 2 * 1024 ** 3;

/**
 * `demo`: the service, beside it a process that is a cell, over the real cell link, and receivers of its webhooks. The service goes on
 * when the cell has made all its runs; a signal ends all, and so does a stdout or stderr whose reader is gone.
 * @throws DemoCellError when the cell ended by an error, once the service has ended too
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
  say(`open ${service.url}/docs first: every request of the interface, with a button to try it`);
  for (const note of plan.notes) say(note);
  const webhooks = await registerReceivers(service.url, receiver).catch((error: unknown) => {
    say(`no receiver of webhooks is registered: ${(error as Error).message}`);
    return undefined;
  });
  let reason = "";
  const ending = new AbortController();
  const { signal } = ending;
  const teller = new Teller({ url: service.url, webhooks, isEndless: plan.cell.runs === 0, signal, say });
  const onReport = (report: DemoCellReport): void => {
    if (report.kind === "failed") reason = `: ${report.message}`;
    if (report.kind === "run_ended") teller.runEnded(report);
    if (report.kind === "ended") teller.cellEnded();
  };
  const cell = startDemoCell({ ...plan.cell, socketPath: service.cellSocketPath }, onReport);
  try {
    await untilStopped(cell, stopped, () => reason);
  } finally {
    ending.abort();
    await cell.stop();
    await teller.told;
    // They answer no more, and in a store of somebody else nobody wants to see their deliveries fail.
    if (owner === "other" && webhooks !== undefined) await removeReceivers(service.url, webhooks).catch(() => {});
    // Open, the receiver would keep the process from ending.
    await stopGracefully(service).finally(() => receiver.close());
  }
}

/** What the options mean in a store of this owner. Nothing of another's store is removed unless a bound is given. */
export function demoPlan(options: DemoOptions, owner: StoreOwner) {
  const asked = options["retain-bytes"];
  const retainBytes = asked === undefined ? (owner === "other" ? null : RETAINED_BYTES) : asked;
  const runs = options.runs ?? 0;
  // Left out where only a few runs are asked for, which show the other scenes, and where all captures are kept.
  const hasOpeningRun = owner === "new" && retainBytes !== null && (runs === 0 || runs > SCENES.length);
  const isGuest = owner === "other";
  const notes = isGuest
    ? [
        "the demo did not make this store: the cell's name, units and components in it stay as they are",
        "events of the demo's runs also go to the webhooks that are registered in it",
      ]
    : [];
  if (isGuest && asked === undefined) {
    notes.push("captures are kept without a limit, about 5 GB an hour: --retain-bytes sets one");
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
  // Its last words may still be on their way when it has ended.
  if (typeof code === "number" && cell.child.connected) await once(cell.child, "disconnect");
  // A terminal's Ctrl-C goes to the cell as well: it can be gone before our own signal is here.
  if (code === 0) await stopped;
  else if (typeof code === "number") throw new DemoCellError(`the demo cell ended with ${code}${reason()}`);
  else if (code === null) throw new DemoCellError(`the demo cell was killed${reason()}`);
}

interface TellerOptions {
  url: string;
  webhooks: DemoWebhookIds | undefined;
  /** The cell goes on without end. */
  isEndless: boolean;
  signal: AbortSignal;
  say(line: string): void;
}

/**
 * Says a line for each run, and behind the last scene what there is to look at. On a terminal that stays in view: no lines follow. Elsewhere they
 * go on, so that a reader that is gone is noticed.
 */
class Teller {
  /** Resolves when nothing is being said any more. Never rejects. */
  told: Promise<void> = Promise.resolve();
  readonly #options: TellerOptions;
  readonly #runs: EndedRun[] = [];
  #isGuideDue = true;

  constructor(options: TellerOptions) {
    this.#options = options;
  }

  runEnded(run: EndedRun): void {
    if (this.#isGuideDue || !isatty(STDOUT)) this.#options.say(runLine(run));
    if (this.#isGuideDue) this.#runs.push(run);
    if (this.#runs.length === SCENES.length) this.#giveGuide();
  }

  cellEnded(): void {
    if (this.#runs.length > 0) this.#giveGuide();
  }

  #giveGuide(): void {
    if (!this.#isGuideDue) return;
    this.#isGuideDue = false;
    const { url, webhooks, signal, say, isEndless } = this.#options;
    this.told = guide(url, this.#runs, webhooks, signal).then((lines) => {
      if (lines === undefined) return;
      const rest = `${isEndless ? "the cell" : "the service"} goes on, Ctrl-C ends it`;
      say([`what to look at, in a browser or with curl (${rest}):`, ...lines].join("\n"));
    });
  }
}
