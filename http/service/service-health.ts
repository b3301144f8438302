import { type ComponentRow, since } from "../../core/health.js";
import { ReadDamage } from "../../storage/log/read-damage.js";
import { withRelativePaths } from "../../storage/relative-paths.js";
import type { RecorderErrorData } from "../../workers/recorder/recorder-messages.js";
import type { ServiceLog } from "../log/service-log.js";
import { SeenShortage } from "./seen-shortage.js";

interface ServiceHealthOptions {
  dataDirectory: string;
  log: ServiceLog;
  /** Why no API key is accepted, for people; null while keys are accepted. */
  keyFault(): string | null;
  nowUs(): number;
}

/** The health rows of the service's own components: those of the recorder, with the faults that the front has seen. */
export class ServiceHealth {
  readonly readDamage: ReadDamage;
  readonly shortage: SeenShortage;
  readonly #options: ServiceHealthOptions;
  #ownRows: readonly ComponentRow[] = [];

  constructor(options: ServiceHealthOptions) {
    const { log, nowUs } = options;
    this.#options = options;
    this.readDamage = new ReadDamage(({ data }) => log.error({ error: data }, "stored bytes cannot be read"), nowUs);
    this.shortage = new SeenShortage(nowUs);
  }

  setOwnRows(rows: readonly ComponentRow[]): void {
    this.#ownRows = rows;
  }

  /** @returns since when and why nothing is recorded any more */
  recorderFailed(error: RecorderErrorData): string {
    const nowUs = this.#options.nowUs();
    this.#ownRows = rowsWithoutRecorder(this.#ownRows, since(nowUs, error.message));
    return since(nowUs, error.message);
  }

  rows(artefacts: ComponentRow): ComponentRow[] {
    const withKeyFault = withFault(this.#ownRows, "recorder", this.#options.keyFault());
    const withReadFaults = [this.readDamage.detail, this.shortage.detail].reduce(
      (rows, fault) => withFault(rows, "log", fault),
      withKeyFault,
    );
    return [...withReadFaults, artefacts].map((row) => shownRow(row, this.#options.dataDirectory));
  }
}

/** Components that end with the recorder. */
const ENDED_WITH_IT = ["log", "recorder", "dispatcher"];

/** The rows after the recorder has failed: its own components are down, the other rows stay as they were. */
export function rowsWithoutRecorder(rows: readonly ComponentRow[], detail: string): ComponentRow[] {
  const down = { id: null, status: "down", detail, enabled: null, required: true } as const;
  const others = rows.filter(({ key }) => !ENDED_WITH_IT.includes(key));
  return [...ENDED_WITH_IT.map((key) => ({ ...down, key })), ...others];
}

/** The row with paths relative to the data directory: the folders of the machine are only for the log. */
function shownRow(row: ComponentRow, dataDirectory: string): ComponentRow {
  return row.detail === null ? row : { ...row, detail: withRelativePaths(row.detail, dataDirectory) };
}

/** The rows with a fault added to the row of this key, which becomes degraded unless it is worse already. */
function withFault(rows: readonly ComponentRow[], key: string, fault: string | null): readonly ComponentRow[] {
  if (fault === null) return rows;
  return rows.map((row) => {
    if (row.key !== key) return row;
    const status = row.status === "healthy" ? "degraded" : row.status;
    return { ...row, status, detail: row.detail === null ? fault : `${row.detail}; ${fault}` };
  });
}
