import type { DataDirectory } from "../../storage/disk/data-directory.js";
import { FileSystemError } from "../../storage/disk/file-system-error.js";
import type { FileSystem } from "../../storage/disk/file-system-interface.js";
import { tolerantLookups } from "../../storage/disk/tolerant-reads.js";
import { type CommittedBatch, forEachRecord } from "../../storage/log/log-batch.js";
import type { CheckFinding, CheckFindingCode } from "../../storage/repair/check-finding.js";
import type { FoldCheck } from "../../storage/repair/check-store.js";
import { MemorySnapshot } from "../../storage/snapshot/memory-snapshot.js";
import { findSnapshotDamage } from "../../storage/snapshot/snapshot-damage.js";
import { snapshotsIn } from "../../storage/snapshot/snapshot-folder.js";
import { snapshotSequenceOf } from "../../storage/snapshot/snapshot-format.js";
import { foldTables } from "./fold-rows.js";
import { type Folded, nothingFolded, readFolded } from "./make-snapshot.js";

/** The newest snapshot, and what was found of it; `not_compared`: the log is damaged. */
export interface SnapshotSummary {
  /** In the data directory. */
  file: string;
  sizeBytes: number;
  verdict: "agrees" | "differs" | "not_compared" | "of_no_use";
}

/**
 * Checks the newest snapshot of a store while its log is read from the start: every CRC of it, that it is of this log, and that it and
 * the log behind it add up to what the whole log does.
 *
 * A damaged snapshot costs no answer and is damage all the same: no crash leaves one, and the disk that did may have done more. One that does
 * not fit, of another log or version, is none: it is removed at the next start. One that fits and says something else than the log is a
 * fault.
 */
export class SnapshotCheck implements FoldCheck {
  /** Undefined when there is no snapshot. */
  static async open(fileSystem: FileSystem, directory: DataDirectory): Promise<SnapshotCheck | undefined> {
    // What cannot be listed or has no size that could be asked for is told by the check of all files.
    const lookups = tolerantLookups(fileSystem, () => {});
    const { newest } = await snapshotsIn(lookups, directory.snapshotPath);
    if (newest === null) return undefined;
    const check = new SnapshotCheck(`snapshot/${newest}`);
    const path = `${directory.snapshotPath}/${newest}`;
    check.#sizeBytes = await lookups.sizeOf(path);
    try {
      const damage = await findSnapshotDamage(fileSystem, path);
      if (damage !== null) {
        check.#isDamaged = true;
        const advice =
          "everything in it is in the log too: remove the file, or let the next start put it in quarantine";
        check.#find("snapshot_damaged", `${damage}; ${advice}`);
        return check;
      }
      check.#folds = { loaded: await readFolded(fileSystem, directory.metaPath, path), fresh: nothingFolded() };
      check.#verdict = "not_compared";
      check.#compareName(newest, check.#folds.loaded);
    } catch (error) {
      if (!(error instanceof FileSystemError)) check.#find("snapshot_unusable", messageOf(error));
      else if (error.path === path) check.#find("unreadable", messageOf(error));
      // Of a segment that the snapshot was to be held against, which the check of the log tells.
      else check.#verdict = "not_compared";
    }
    return check;
  }

  readonly #file: string;
  readonly #findings: CheckFinding[] = [];
  #sizeBytes = 0;
  #isDamaged = false;
  #folds: { loaded: Folded; fresh: Folded } | null = null;
  #verdict: SnapshotSummary["verdict"] = "of_no_use";

  private constructor(file: string) {
    this.#file = file;
  }

  take(batch: CommittedBatch): void {
    if (this.#folds === null) return;
    const { loaded, fresh } = this.#folds;
    try {
      fold(fresh, batch);
      const behind = partBehind(batch, loaded);
      if (behind !== null) fold(loaded, behind);
    } catch {
      // A record that cannot be decoded, which the check of the log itself tells: there is nothing to compare with.
      this.#folds = null;
    }
  }

  async finish(isLogIntact: boolean): Promise<{ findings: CheckFinding[]; isDamaged: boolean; isFault: boolean }> {
    let isFault = false;
    // What damage took from the log, the snapshot may still have.
    if (this.#folds !== null && isLogIntact) {
      this.#verdict = "agrees";
      const [left, right] = [await columnsOf(this.#folds.loaded), await columnsOf(this.#folds.fresh)];
      this.#folds = null;
      const fresh = foldTables(right);
      for await (const { name, rows } of foldTables(left)) {
        const { rows: expected } = (await fresh.next()).value as { rows: string[] };
        const at = firstDifference(rows, expected);
        if (at === null) continue;
        isFault = true;
        this.#verdict = "differs";
        const said = `${rows[at] ?? "nothing"}, and the log ${expected[at] ?? "nothing"}`;
        this.#find("snapshot_differs", `${name}, ${rows.length} rows, ${expected.length} by the log: it says ${said}`);
      }
    }
    return { findings: this.#findings, isDamaged: this.#isDamaged, isFault };
  }

  /** Once `finish` has resolved. */
  get summary(): SnapshotSummary {
    return { file: this.#file, sizeBytes: this.#sizeBytes, verdict: this.#verdict };
  }

  /** No opening believes the name, but it takes the file with the highest for the newest. */
  #compareName(name: string, { start }: Folded): void {
    const sequence = snapshotSequenceOf(name);
    if (start === null || start.sequence === sequence) return;
    this.#find(
      "snapshot_misnamed",
      `by its name it ends at record ${sequence}, by its head, which counts, at ${start.sequence}`,
    );
  }

  #find(code: CheckFindingCode, message: string): void {
    this.#findings.push({ code, file: this.#file, offset: 0, lengthBytes: this.#sizeBytes, message });
  }
}

function fold({ view, state }: Folded, batch: CommittedBatch): void {
  view.applyBatch(batch);
  forEachRecord(batch, (record, location) => state.replay(record, location));
}

/** The part of a batch that lies behind what was loaded; null for nothing. */
function partBehind(batch: CommittedBatch, { start }: Folded): CommittedBatch | null {
  if (start === null || batch.segmentBase > start.segmentBase) return batch;
  if (batch.segmentBase < start.segmentBase) return null;
  const skipped = Math.max(0, start.offset - batch.offset);
  if (skipped >= batch.bytes.length) return null;
  return { ...batch, bytes: batch.bytes.subarray(skipped), offset: batch.offset + skipped };
}

async function columnsOf({ view, state }: Folded): Promise<MemorySnapshot> {
  const columns = new MemorySnapshot();
  await view.writeSnapshot(columns);
  await state.writeSnapshot(columns);
  return columns;
}

function firstDifference(rows: readonly string[], expected: readonly string[]): number | null {
  const count = Math.max(rows.length, expected.length);
  for (let at = 0; at < count; at++) if (rows[at] !== expected[at]) return at;
  return null;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
