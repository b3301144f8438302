/** A page of the list of runs: entries from memory, from the cache, and from records that are still to be read. */
import { uuidV7TimeUs } from "../../core/identifiers.js";
import { LIMITS } from "../../core/limits.js";
import { type RunSummary, summarizeRun } from "../../core/run/run-state.js";
import { type GiveWay, type StoredRun, summaryJson } from "./run-records.js";
import type { ViewTables } from "./view-fold.js";
import type { RunListQuery } from "./view-runs.js";

/** A page of list entries that is still to be read. */
export interface RunPage {
  readonly total: number;
  /** Bytes of the records that must be read. */
  readonly unreadBytes: number;
  /** Rough size of the other entries in bytes. */
  readonly knownBytes: number;
  /** @param giveWay needed for a large page */
  read(giveWay?: GiveWay): Promise<ReadRunPage>;
}

export interface ReadRunPage {
  readonly runs: readonly Uint8Array[];
  /** False when a record cannot be read, so that its entry has only what the indexes know. */
  readonly isWhole: boolean;
}

/** The error message of a list entry when the run's record cannot be read. */
const DAMAGED_RECORD = "the run's stored record is damaged: in this entry, rely only on ids, status and updated_at";

/** As `View.runPage`. */
export function runPageOf(tables: ViewTables, query: RunListQuery, baseUrl: string): RunPage {
  const { total, ordinals } = tables.runs.query(query);
  return { total, ...pageOf(tables, ordinals, baseUrl) };
}

/** The entries of these runs, as they are now. */
export function pageOf(tables: ViewTables, ordinals: readonly number[], baseUrl: string): Omit<RunPage, "total"> {
  const { runs, records, activeRuns } = tables;
  const unread: StoredRun[] = [];
  let unreadBytes = 0;
  let knownBytes = 0;
  const entries = ordinals.map((ordinal) => {
    const location = runs.location(ordinal);
    if (location === undefined) {
      const run = activeRuns.state(runs.id(ordinal));
      knownBytes += Math.min(run.documentBytes, LIMITS.runMetadataBytes);
      return summarizeRun(run, runs.qualityStatus(ordinal));
    }
    const updatedAtUs = runs.updatedAtUs(ordinal);
    const cached = records.cachedSummaryJson(ordinal, updatedAtUs, baseUrl);
    knownBytes += cached?.length ?? 0;
    if (cached !== undefined) return cached;
    unreadBytes += location.length;
    unread.push({ id: runs.id(ordinal), ordinal, updatedAtUs, cell: runs.cell(ordinal), location });
    return undefined;
  });
  const read = async (giveWay?: GiveWay): Promise<ReadRunPage> => {
    const found = unread.length === 0 ? [] : await records.readSummariesJson(unread, baseUrl, giveWay);
    let next = 0;
    const jsons: Uint8Array[] = [];
    for (const [at, entry] of entries.entries()) {
      const known = entry ?? found[next++] ?? knownSummary(tables, ordinals[at]!);
      jsons.push(known instanceof Uint8Array ? known : summaryJson(known, baseUrl));
      const pause = giveWay?.();
      if (pause !== undefined) await pause;
    }
    return { runs: jsons, isWhole: !found.includes(undefined) };
  };
  return { unreadBytes, knownBytes, read };
}

/** The list entry of a run whose consolidated record cannot be read: what the indexes know, with an error message. */
function knownSummary({ runs, cell }: ViewTables, ordinal: number): RunSummary {
  const id = runs.id(ordinal);
  const { programId, serialNumber, timeUs } = runs.entry(ordinal);
  const cellName = runs.cell(ordinal);
  return {
    id,
    ...(cellName !== undefined && { cell: cellName }),
    programId,
    programName: cell.programs.get(programId)?.document.name ?? "",
    status: runs.status(ordinal),
    qualityStatus: runs.qualityStatus(ordinal),
    serialNumber,
    revision: 1,
    metadata: null,
    createdAtUs: uuidV7TimeUs(id),
    updatedAtUs: timeUs,
    startedAtUs: null,
    completedAtUs: null,
    errorMessage: DAMAGED_RECORD,
    progress: { totalSteps: 0, completedSteps: 0, currentStep: null },
  };
}
