import { counted } from "../../../core/counted.js";
import type { ComponentRow, ComponentStatusValue } from "../../../core/health.js";
import { LIMITS } from "../../../core/limits.js";
import type { LogFailure } from "../../../storage/log/log-options.js";
import { describeLost, type RecoveryReport } from "../../../storage/recovery/recovery-report.js";
import type { RemovedCounts } from "../upkeep/retention.js";

export interface HealthSources {
  recovery: RecoveryReport;
  /** When the log was opened; ISO 8601. */
  openedAt: string;
  /** Names of files in the quarantine folder that earlier starts put there. */
  earlierDamage: readonly string[];
  logFailure(): LogFailure | null;
  disk(): { status: ComponentStatusValue; detail: string | null };
  /** What ended the recorder's work, and since when, as text for people; null while it works. */
  recorderFailure(): string | null;
  /** What keeps retention from removing captures; null if nothing does. */
  retentionFault(): string | null;
  /** What happened to the directory's lock or to full segments; null while they are intact. */
  logFault(): string | null;
  /** What is wrong with the clock; null if nothing is. */
  clockFault(): string | null;
  /** Which resource the process or the machine is short of, and since when; null if none. */
  shortage(): string | null;
  /** What happened to the link's socket or to something in the data directory; null while all is in place. */
  placeFault(): string | null;
  /** Number of runs that lost records in the log. */
  damagedRuns: number;
  /** Producer names under which several programs send; null if each program has its own. */
  sharedNames(): string | null;
  producerNames(): number;
  /** Bytes that the front has not taken yet, and whether the link waits for it. */
  ahead(): { bytes: number; isBehind: boolean };
  connections(): number;
  /** True: captures wait until more stored ones are processed. */
  isProcessingBehind(): boolean;
  removed(): RemovedCounts;
  /** What ended the dispatcher, and since when; null while it works. */
  dispatcherFailure(): string | null;
  /** Which deliveries wait because their stored data cannot be read; null if none does. */
  dispatcherFault(): string | null;
}

/** Makes the recorder's rows of health (log, disk, recorder, dispatcher). When one of them changes, it sends them all. */
export class RecorderHealth {
  readonly #sources: HealthSources;
  readonly #send: (rows: ComponentRow[]) => void;
  #lastSent = "";

  constructor(sources: HealthSources, send: (rows: ComponentRow[]) => void) {
    this.#sources = sources;
    this.#send = send;
  }

  /** Sends the rows if one changed. */
  update(): void {
    const disk = this.#sources.disk();
    const rows = [this.#logRow(), row("disk", disk.status, disk.detail), this.#recorderRow(), this.#dispatcherRow()];
    const text = JSON.stringify(rows);
    if (text === this.#lastSent) return;
    this.#lastSent = text;
    this.#send(rows);
  }

  #logRow(): ComponentRow {
    const failure = this.#sources.logFailure();
    if (failure !== null) return row("log", "down", `since ${failure.params.since}: ${failure.message}`);
    const { recovery, openedAt, earlierDamage } = this.#sources;
    const faults = [foundByOpening(recovery, openedAt), foundEarlier(earlierDamage), this.#sources.logFault()].filter(
      (one) => one !== null,
    );
    return faults.length === 0 ? row("log", "healthy", null) : row("log", "degraded", faults.join("; "));
  }

  #dispatcherRow(): ComponentRow {
    const failure = this.#sources.dispatcherFailure();
    if (failure !== null) return row("dispatcher", "down", failure);
    const fault = this.#sources.dispatcherFault();
    return row("dispatcher", fault === null ? "healthy" : "degraded", fault);
  }

  #recorderRow(): ComponentRow {
    const failure = this.#sources.recorderFailure();
    if (failure !== null) return row("recorder", "down", failure);
    const faults = this.#recorderFaults();
    if (faults.length > 0) return row("recorder", "degraded", faults.join("; "));
    const connections = this.#sources.connections();
    const { runs, bytes } = this.#sources.removed();
    const removed = `; retention has removed captures of ${counted(runs, "run")}, ${bytes} bytes`;
    const connected = `${counted(connections, "producer")} connected`;
    return row("recorder", "healthy", `${connected}${runs === 0 ? "" : removed}`);
  }

  #recorderFaults(): string[] {
    const { ahead, isProcessingBehind, damagedRuns, producerNames } = this.#sources;
    const { shortage, placeFault, retentionFault, clockFault, sharedNames } = this.#sources;
    const faults = [shortage(), placeFault()].filter((one) => one !== null);
    const { bytes, isBehind } = ahead();
    if (isBehind) faults.push(`producers wait: the view is ${Math.round(bytes / 1024 ** 2)} MiB behind`);
    if (isProcessingBehind()) faults.push("captures wait: captures of ended runs are not processed yet");
    if (damagedRuns > 0) faults.push(`${counted(damagedRuns, "active run")} lost records because the log is damaged`);
    for (const fault of [retentionFault(), clockFault(), sharedNames(), usedNames(producerNames())])
      if (fault !== null) faults.push(fault);
    return faults;
  }
}

/** Warns when few names are left: at the limit no new producer can connect. */
function usedNames(count: number): string | null {
  const { producers, producerUnusedDays } = LIMITS;
  if (count < 0.8 * producers) return null;
  return (
    `${count} of ${producers} producer names are used; when none is left, the service forgets names that were not used for ${producerUnusedDays} days; ` +
    "`inspection-service producers` lists and removes names"
  );
}

function foundByOpening(recovery: RecoveryReport, openedAt: string): string | null {
  const { corruptionCount, lostRecords, isLostCountExact, quarantinedBytes, findings } = recovery;
  if (corruptionCount === 0) return null;
  const known = counted(lostRecords, "record");
  const atLeast = lostRecords === 0 ? "an unknown number of records" : `at least ${known}`;
  const lost = isLostCountExact ? known : atLeast;
  const end = findings.find(({ code }) => code === "log_lost");
  const said = end === undefined ? "" : `; the log has lost its end or all of it: ${end.detail}${describeLost(end)}`;
  return (
    `since ${openedAt}: opening found ${counted(corruptionCount, "damaged place")}: ${lost} lost, ` +
    `${counted(quarantinedBytes, "byte")} in quarantine${said}`
  );
}

function foundEarlier(names: readonly string[]): string | null {
  const [first] = names;
  if (first === undefined) return null;
  const pieces = names.length === 1 ? "1 piece of damage" : `${names.length} pieces of damage`;
  const are = names.length === 1 ? "is" : "are";
  const more = names.length === 1 ? "" : " and others";
  return `${pieces} from earlier starts ${are} in quarantine/ (${first}${more}): export what you need, then remove the files`;
}

function row(key: string, status: ComponentStatusValue, detail: string | null): ComponentRow {
  return { key, status, id: null, detail, enabled: null, required: true };
}
