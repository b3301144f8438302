import { counted } from "../../../core/counted.js";
import type { ComponentRow, ComponentStatusValue } from "../../../core/health.js";
import { LIMITS } from "../../../core/limits.js";
import { describeLost, type RecoveryReport } from "../../../storage/recovery/recovery-report.js";
import type { WebhookService } from "../../webhooks/webhook-service.js";
import type { BatchStream } from "../captures/batch-stream.js";
import type { CaptureProcessing } from "../captures/capture-processing.js";
import type { OpenedStore } from "../open-store.js";
import type { ProducerLink } from "../producers/producer-link.js";
import type { Retention } from "../upkeep/retention.js";
import type { StoreGuards } from "../upkeep/store-guards.js";
import type { RecordingStatus } from "./recording-status.js";

/** The parts of the recorder that health looks at. */
export interface HealthSources {
  opened: OpenedStore;
  guards: Pick<StoreGuards, "room" | "shortage" | "watch">;
  status: Pick<RecordingStatus, "failure">;
  retention: Pick<Retention, "fault" | "removed">;
  webhooks: Pick<WebhookService, "dispatcherFailure" | "dispatcherFault">;
  stream: Pick<BatchStream, "aheadBytes" | "isBehind">;
  link: Pick<ProducerLink, "server" | "sharedNamesFault">;
  processing: Pick<CaptureProcessing, "isBehind"> | undefined;
  /** What is wrong with the clock; null if nothing is. */
  clockFault(): string | null;
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
    const disk = this.#sources.guards.room.row;
    const rows = [this.#logRow(), row("disk", disk.status, disk.detail), this.#recorderRow(), this.#dispatcherRow()];
    const text = JSON.stringify(rows);
    if (text === this.#lastSent) return;
    this.#lastSent = text;
    this.#send(rows);
  }

  #logRow(): ComponentRow {
    const { guards, opened } = this.#sources;
    const { failure, recovery } = opened.log;
    if (failure !== null) return row("log", "down", `since ${failure.params.since}: ${failure.message}`);
    const found = [foundByStart(recovery, opened.openedAt), foundEarlier(opened.earlierDamage)];
    const faults = [...found, guards.watch.logFault].filter((one) => one !== null);
    return faults.length === 0 ? row("log", "healthy", null) : row("log", "degraded", faults.join("; "));
  }

  #dispatcherRow(): ComponentRow {
    const { dispatcherFailure, dispatcherFault } = this.#sources.webhooks;
    if (dispatcherFailure !== null) return row("dispatcher", "down", dispatcherFailure);
    return row("dispatcher", dispatcherFault === null ? "healthy" : "degraded", dispatcherFault);
  }

  #recorderRow(): ComponentRow {
    const { failure } = this.#sources.status;
    if (failure !== null) return row("recorder", "down", failure);
    const faults = this.#recorderFaults();
    if (faults.length > 0) return row("recorder", "degraded", faults.join("; "));
    const { runs, bytes } = this.#sources.retention.removed;
    const removed = `; retention has removed captures of ${counted(runs, "run")}, ${bytes} bytes`;
    const connected = `${counted(this.#sources.link.server.connectionCount, "producer")} connected`;
    return row("recorder", "healthy", `${connected}${runs === 0 ? "" : removed}`);
  }

  #recorderFaults(): string[] {
    const { opened, guards, retention, stream, link, processing } = this.#sources;
    const faults = [guards.shortage.fault, guards.watch.placeFault].filter((one) => one !== null);
    const { aheadBytes, isBehind } = stream;
    if (isBehind) faults.push(`producers wait: the view is ${Math.round(aheadBytes / 1024 ** 2)} MiB behind`);
    if (processing?.isBehind) faults.push("captures wait: captures of ended runs are not processed yet");
    const { damagedRuns } = opened;
    if (damagedRuns > 0) faults.push(`${counted(damagedRuns, "active run")} lost records because the log is damaged`);
    const names = [link.sharedNamesFault, usedNames(opened.state.producers.size)];
    const others = [retention.fault, this.#sources.clockFault(), ...names].filter((one) => one !== null);
    return [...faults, ...others];
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

function foundByStart(recovery: RecoveryReport, openedAt: string): string | null {
  const { corruptionCount, lostRecords, isLostCountExact, quarantinedBytes, findings } = recovery;
  if (corruptionCount === 0) return null;
  const known = counted(lostRecords, "record");
  const atLeast = lostRecords === 0 ? "an unknown number of records" : `at least ${known}`;
  const lost = isLostCountExact ? known : atLeast;
  const end = findings.find(({ code }) => code === "log_lost");
  const said = end === undefined ? "" : `; the log has lost its end or all of it: ${end.detail}${describeLost(end)}`;
  return (
    `since ${openedAt}: the start found ${counted(corruptionCount, "damaged place")}: ${lost} lost, ` +
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
