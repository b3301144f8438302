import { pictureOf } from "../../core/capture/artefact.js";
import type { Extent } from "../../core/capture/capture.js";
import { lowerBound } from "../../core/lower-bound.js";
import type { RunState } from "../../core/run/run-state.js";
import { isTerminal } from "../../core/run/run-state.js";
import { ServiceError, unknownId } from "../../core/service-errors.js";
import type { CaptureKind } from "../../storage/captures/capture-path.js";
import type { CaptureReader } from "../../storage/captures/capture-reader.js";
import { StorageError } from "../../storage/storage-error.js";
import type { View } from "../../storage/view/view.js";
import type { ByteRange } from "../../workers/hub/capture-request.js";
import type { RecorderHandle } from "../../workers/recorder/recorder-handle.js";
import type { OpenStoredExtents, UseStored } from "../downloads/stored-stream.js";

/** A download fetches so many bytes before its client: so several chunks come at a time. */
const AHEAD_BYTES = 4 * 1024 * 1024;
/** Extents that are this close are asked for as one: they are in the same or the next chunk. */
const GAP_BYTES = 512 * 1024;
/** Bytes that do not match their CRCs are fetched once more. */
const MOST_FETCHES = 2;
/** What is fetched for the report page of a run: as much as the page may show. */
const REPORT_FRAMES = 200;
const REPORT_LUMINANCES = 12;
const REPORT_SERIES = 12;

export interface HubCapturesOptions {
  view: View;
  reader: CaptureReader;
  pathOf(runId: string, kind: CaptureKind): string;
  hub(): Pick<RecorderHandle, "wantCaptures" | "capturesRead">;
}

/** Reads stored bytes at a hub: its thread fetches what is missing (workers/hub), and then they are read as on a cell. */
export class HubCaptures {
  readonly #options: HubCapturesOptions;

  constructor(options: HubCapturesOptions) {
    this.#options = options;
  }

  readonly use: UseStored = async (runId, kind, extents, use) => {
    const { view, hub } = this.#options;
    const ranges = joinedRanges(extents);
    if (ranges.length === 0) return use();
    const source = view.sourceOf(runId);
    if (source === undefined) throw unknownId("run", runId);
    const request = { ...source, runId, kind, ranges };
    for (let fetches = 0; ; fetches++) {
      const id = await hub().wantCaptures(fetches < MOST_FETCHES ? request : { ...request, isDamaged: true });
      let isDamaged = false;
      try {
        return await use();
      } catch (error) {
        // Somebody may have removed or changed the files of the cache.
        isDamaged = error instanceof StorageError && /^capture_(?:damaged|missing)$/.test(error.code);
        if (!isDamaged) throw error;
      } finally {
        hub().capturesRead(id, isDamaged);
      }
    }
  };

  /** Each read fetches what it needs, so a range costs its own chunks. The first extent is fetched at once: so the answer's status is right. */
  readonly open: OpenStoredExtents = async (runId, kind, extents) => {
    const { reader, pathOf } = this.#options;
    const path = pathOf(runId, kind);
    const ends = new Float64Array(extents.length);
    let sizeBytes = 0;
    for (const [nth, { lengthBytes }] of extents.entries()) ends[nth] = sizeBytes += lengthBytes;
    const after = (position: number): number => lowerBound(0, ends.length, (nth) => (ends[nth] as number) <= position);
    await this.use(runId, kind, extents.slice(0, after(0) + 1), async () => {});
    return {
      sizeBytes,
      read: (position, length, into) => {
        const first = after(position);
        const touched = extents.slice(first, after(position + length - 1) + 1);
        const fetched = extents.slice(first, after(position + length + AHEAD_BYTES) + 1);
        const before = first === 0 ? 0 : (ends[first - 1] as number);
        return this.use(runId, kind, fetched, async () => {
          const open = await reader.openExtents(path, touched);
          try {
            return await open.read(position - before, length, into);
          } finally {
            open.close();
          }
        });
      },
      close: () => {},
    };
  };

  /** Fetches what the report page shows of a run's captures. The page leaves out what the plant does not have. */
  async fetchForReport(run: RunState): Promise<void> {
    if (run.capturesRemovedAtUs !== null || !isTerminal(run.status)) return;
    const previews = run.frames.slice(0, REPORT_FRAMES).flatMap((frame) => pictureOf(frame, "png")?.preview ?? []);
    const lit = run.frames.filter(({ planes }) => planes.luminance !== undefined).slice(0, REPORT_LUMINANCES);
    const groups = [
      ...previews.map((preview) => [preview]),
      ...lit.map(({ batches }) => batches),
      ...run.series.slice(0, REPORT_SERIES).map(({ appends }) => appends),
    ];
    const fetch = async (extents: readonly Extent[]): Promise<void> => {
      try {
        await this.use(run.id, "capture", extents, async () => {});
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
      }
    };
    await Promise.all(groups.map(fetch));
  }
}

/** The places of these extents in their file, neighbours as one. */
function joinedRanges(extents: readonly Extent[]): ByteRange[] {
  const ranges: ByteRange[] = [];
  const named = extents.filter(({ lengthBytes }) => lengthBytes > 0).sort((left, right) => left.offset - right.offset);
  for (const { offset, lengthBytes } of named) {
    const last = ranges.at(-1);
    const lastEnd = last === undefined ? 0 : last.offset + last.lengthBytes;
    if (last === undefined || offset - lastEnd > GAP_BYTES) ranges.push({ offset, lengthBytes });
    else last.lengthBytes = Math.max(lastEnd, offset + lengthBytes) - last.offset;
  }
  return ranges;
}
