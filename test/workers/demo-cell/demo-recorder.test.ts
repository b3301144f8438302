import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { lineBytes } from "../../../core/capture/capture.js";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { CaptureReader } from "../../../storage/captures/capture-reader.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import { heightCrcs } from "../../../workers/artefacts/frame/plane-crcs.js";
import type { DemoCellReport } from "../../../workers/demo-cell/demo-cell-messages.js";
import { startDemoCell } from "../../../workers/demo-cell/demo-cell-process.js";
import { readNpy } from "../../../workers/demo-cell/part/npy-reader.js";
import { RecorderHandle } from "../../../workers/recorder/recorder-handle.js";
import { DEFAULT_FINALIZE_TIMEOUT_MS, type RecorderOptions } from "../../../workers/recorder/recorder-messages.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const HEIGHTMAPS = "../shared/data/heightmaps";
const skip = !existsSync(HEIGHTMAPS) && `${HEIGHTMAPS} is absent`;
const RUNS = 8;

t.test(
  "the recorder takes all that the demo cell says, across its own restarts, and stores it bit by bit",
  { skip },
  async (t) => {
    const folder = temporaryDirectory(t);
    const options: RecorderOptions = {
      dataDirectory: folder,
      durability: "full",
      serviceVersion: "0.0.0-test",
      cellSocketPath: null,
      cellListen: null,
      cellToken: null,
      finalizeTimeoutMs: DEFAULT_FINALIZE_TIMEOUT_MS,
      orphanTimeoutMs: null,
      retention: { days: null, bytes: null },
    };
    const logReader = new LogReader({ fileSystem: nodeFileSystem, directory: join(folder, "meta") });
    t.teardown(() => logReader.close());
    const failures: unknown[] = [];
    let onBatch = (): void => {};
    const open = async () => {
      const view = new View({ reader: logReader });
      const recorder = new RecorderHandle(options, {
        onBatch(batch) {
          view.fold.applyBatch(batch);
          onBatch();
        },
        onHealth() {},
        onLog() {},
        onCapturesRemoved() {},
        onFailure: (error) => failures.push(error),
      });
      const { cellSocketPath: socketPath } = await recorder.ready;
      view.fold.finishOpening();
      return { view, recorder, socketPath };
    };

    let service = await open();
    const reports: DemoCellReport[] = [];
    let wake = (): void => {};
    const cell = startDemoCell(
      { socketPath: service.socketPath, seed: 1, runs: RUNS, speed: 15, capturesDirectory: HEIGHTMAPS },
      (report) => {
        reports.push(report);
        wake();
      },
    );
    t.teardown(() => cell.stop());
    const ended = (): number => reports.filter(({ kind }) => kind === "run_ended").length;
    for (const atRun of [1, 3, 5]) {
      while (ended() < atRun) await new Promise<void>((resolve) => (wake = resolve));
      await service.recorder.stop();
      service = await open();
    }
    t.equal(await cell.exited, 0);
    t.same(
      reports.filter(({ kind }) => kind === "refused" || kind === "failed"),
      [],
    );
    const { view } = service;
    while (view.activeRun() !== undefined) await new Promise<void>((resolve) => (onBatch = resolve));

    t.equal(view.runs.size, RUNS, "each run once");
    await isStoredAsSent(t, folder, view, reports);
    await service.recorder.stop();
    t.same(failures, []);
  },
);

/** Every run has its ending, and every whole frame the heights of its file. */
async function isStoredAsSent(t: Test, folder: string, view: View, reports: readonly DemoCellReport[]): Promise<void> {
  const captureReader = new CaptureReader({ fileSystem: nodeFileSystem });
  t.teardown(() => captureReader.close());
  const index = JSON.parse(readFileSync(`${HEIGHTMAPS}/index.json`, "utf8")) as Record<string, unknown>[];
  let compared = 0;
  for (const report of reports) {
    if (report.kind !== "run_ended") continue;
    const run = await view.run(report.runId);
    const expected = { finished: "completed", failed: "failed", cancelled: "cancelled" }[report.ending];
    t.equal(run?.status, expected, report.programName);
    for (const frame of run?.frames ?? []) {
      if (frame.status !== "complete") continue;
      const bytes = lineBytes(frame.planes, frame.width);
      const crcs = heightCrcs(frame.planes, frame.width, frame.batches);
      const extents = frame.batches.map(({ offset, lineCount }, nth) => {
        return { offset, lengthBytes: lineCount * bytes.height, crc32: crcs[nth] as number };
      });
      const path = join(folder, "captures", capturePath(report.runId, "capture"));
      const stored = await captureReader.openExtents(path, extents);
      const entry = index.find(({ name }) => report.programName.endsWith(`: ${String(name)}`));
      const source = readNpy(readFileSync(`${HEIGHTMAPS}/../${String(entry?.height_file)}`));
      t.ok(Buffer.from(await stored.read(0, stored.sizeBytes)).equals(source.data), String(entry?.name));
      stored.close();
      compared++;
    }
  }
  t.ok(compared >= RUNS - 2, `${compared} captures compared`);
}
