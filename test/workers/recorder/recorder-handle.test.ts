import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { ComponentRow } from "../../../core/health.js";
import type { TaskAnswer, TaskMessage } from "../../../workers/artefacts/pool/artefact-thread.js";
import { RecorderHandle } from "../../../workers/recorder/recorder-handle.js";
import type { RecorderErrorData, RecorderOptions } from "../../../workers/recorder/recorder-messages.js";
import { runWithCaptures } from "../../helpers/captures/kept-captures.js";
import { programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { PLAIN_OPTIONS } from "../../helpers/recorder/plain-options.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

function start(
  dataDirectory: string,
  onBatch: (bytes: number) => void | Promise<void> = () => {},
  options: Partial<RecorderOptions> = {},
  onFailure: (error: RecorderErrorData) => void = () => {},
  onArtefactRequested: (task: TaskMessage) => Promise<TaskAnswer> = () => Promise.reject(new Error("not here")),
) {
  const seen = { health: [] as ComponentRow[], failures: 0, lines: [] as string[] };
  const handle = new RecorderHandle(
    {
      dataDirectory,
      ...PLAIN_OPTIONS,
      ...options,
    },
    {
      onBatch: (batch) => onBatch(batch.bytes.length),
      onHealth: (rows) => {
        seen.health = rows;
      },
      onArtefactRequested,
      onCapturesRemoved: () => {},
      onLog: (line) => seen.lines.push(line.message),
      onFailure: (error) => {
        seen.failures++;
        onFailure(error);
      },
    },
  );
  return { handle, seen };
}

t.test("the thread serves producers, gives the front its batches and health, and ends cleanly", async (t) => {
  const directory = temporaryDirectory(t);
  let bytes = 0;
  const { handle, seen } = start(directory, (length) => {
    bytes += length;
  });
  const ready = await handle.ready;
  t.equal(ready.cellSocketPath, join(directory, "cell.sock"));
  t.strictSame(
    seen.health.map((row) => [row.key, row.status, row.required]),
    [
      ["log", "healthy", true],
      ["disk", seen.health[1]?.status, true],
      ["recorder", "healthy", true],
      ["dispatcher", "healthy", true],
    ],
  );
  const raw = await RawProducer.connect({ path: ready.cellSocketPath }, "p");
  await raw.accept(programPut());
  await raw.close();
  await handle.stop();
  await handle.stop();
  t.ok(bytes > 0);
  t.equal(seen.failures, 0);

  // Everything that the log holds has been taken before `ready`, however slow the front is.
  let slow = 0;
  const again = start(directory, async (length) => {
    await new Promise((resolve) => setImmediate(resolve));
    slow += length;
  });
  const { recovery } = await again.handle.ready;
  t.equal(recovery.corruptionCount, 0);
  t.ok(slow > 0);
  await again.handle.stop();
});

t.test("what was made for the recorder is moved to it, not copied", async (t) => {
  const made: ArrayBuffer[] = [];
  let isFourth = (): void => {};
  const fourth = new Promise<void>((resolve) => {
    isFourth = resolve;
  });
  const make = async ({ name }: TaskMessage): Promise<TaskAnswer> => {
    const [bytes, lineCounts] = [new Uint8Array(1_000_000), new Uint32Array(2)];
    // One at a time: when another one is wanted, the recorder has stored those before.
    if (made.push(name === "countPoints" ? lineCounts.buffer : bytes.buffer) === 4) isFourth();
    if (name === "countPoints") return { value: lineCounts };
    return { value: name === "filter" ? { bits: bytes, lineCounts, points: 0, inliers: 0 } : bytes };
  };
  const { handle, seen } = start(temporaryDirectory(t), undefined, { artefactTasks: 1 }, undefined, make);
  t.teardown(() => handle.stop());
  const raw = await RawProducer.connect({ path: (await handle.ready).cellSocketPath }, "p");
  await runWithCaptures(raw, 1);
  await fourth;
  t.same(
    made.slice(0, 3).map(({ byteLength }) => byteLength),
    [0, 0, 0],
    "this thread has nothing left of them",
  );
  await raw.close();
  t.equal(seen.failures, 0);
});

t.test("what keeps it from starting is told as data", async (t) => {
  const directory = temporaryDirectory(t);
  const first = start(directory);
  await first.handle.ready;
  const second = start(directory);
  await t.rejects(second.handle.ready, {
    name: "RecorderError",
    data: { code: "directory_locked", params: { process_id: process.pid } },
  });
  await second.handle.stop();
  await first.handle.stop();

  const newer = join(directory, "newer");
  mkdirSync(newer);
  writeFileSync(join(newer, "format.json"), '{"format": 99, "service": "inspection-results-service"}');
  await t.rejects(start(newer).handle.ready, {
    name: "RecorderError",
    data: { code: "format_unsupported", params: { format: 99 } },
  });
  const path = join(directory, "x".repeat(120));
  await t.rejects(start(join(directory, "b"), undefined, { cellSocketPath: path }).handle.ready, {
    name: "RecorderError",
    data: { code: "cell_socket_unusable", message: /--cell-socket/ },
  });
  const third = start(directory);
  await third.handle.ready;
  await third.handle.stop();
});

t.test("stop while the log is being opened", async (t) => {
  const { handle } = start(temporaryDirectory(t));
  await handle.stop();
  await handle.ready.then(
    () => t.pass("was ready before"),
    (error) => t.match(error, { data: { code: "recorder_stopped" } }),
  );
});

t.test("a front that fails to take a batch is told as a failure", async (t) => {
  const failure = new Promise<string>((resolve) => {
    const directory = temporaryDirectory(t);
    let isBroken = false;
    const { handle } = start(
      directory,
      () => {
        if (isBroken) throw new Error("the view is broken");
      },
      {},
      (error) => resolve(error.message),
    );
    t.teardown(() => handle.stop());
    void handle.ready.then(async (ready) => {
      isBroken = true;
      const raw = await RawProducer.connect({ path: ready.cellSocketPath }, "p");
      raw.message(programPut());
    });
  });
  t.match(await failure, /the view is broken/);
});
