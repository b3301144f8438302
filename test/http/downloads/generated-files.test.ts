import { join } from "node:path";
import t from "tap";
import type { FrameState } from "../../../core/capture/capture.js";
import { plyHeader } from "../../../core/capture/ply-header.js";
import { createRandom } from "../../../core/random.js";
import type { RunState } from "../../../core/run/run-state.js";
import { GeneratedFiles } from "../../../http/downloads/generated-files.js";
import type { OpenStoredExtents } from "../../../http/downloads/stored-stream.js";
import { countCloudPoints, packCloud } from "../../../workers/artefacts/cloud/point-cloud.js";
import { newKernelMemory } from "../../../workers/artefacts/kernel-memory.js";
import { ArtefactPool } from "../../../workers/artefacts/pool/artefact-pool.js";
import { heightSource, planeSource, surfaceFrame } from "../../helpers/captures/made-frames.js";
import { storedFrame } from "../../helpers/captures/stored-frame.js";
import { RUN_ID } from "../../helpers/link/cell-messages.js";

const seed = Number(process.env.TEST_SEED ?? 20_261_126);
t.comment(`TEST_SEED=${seed}`);
const WIDTH = 1_200;
const LINES = 1_400;
const CLIENTS = 6;
const READS = 60;
/** Room for one piece and a half: the pieces that are read push each other out. */
const KEPT_BYTES = 9_000_000;
const THREADS = 2;

t.test("every client has its own bytes, however they come and go", async (t) => {
  const random = createRandom(seed);
  const made = surfaceFrame(seed, WIDTH, LINES);
  const { source } = storedFrame(join(t.testdir(), "capture"), made);
  const memory = await newKernelMemory();
  const cloudSource = () => {
    memory.reset();
    const luminance = planeSource(memory, made.luminance as Uint8Array, WIDTH);
    return {
      planes: made.planes,
      geometry: made.geometry,
      heights: heightSource(memory, made),
      luminance,
      mask: null,
    };
  };
  const counts = await countCloudPoints(memory, cloudSource());
  const points = counts.reduce((sum, count) => sum + count, 0);
  const { at, lengthBytes } = await packCloud(memory, cloudSource(), 0, LINES);
  const { frameId: id, geometry, planes, batches } = source;
  const whole = Buffer.concat([plyHeader({ id, planes, ...geometry }, points, false), memory.bytes(at, lengthBytes)]);

  const pool = new ArtefactPool({ threads: THREADS, queueLimit: 100, taskTimeoutMs: () => 60_000, report: () => {} });
  t.teardown(() => pool.close());
  let packed = 0;
  const extent = { offset: 0, lengthBytes: 4 * LINES, crc32: 0 };
  const stored = { read: async () => new Uint8Array(counts.buffer), close: () => {} };
  const files = new GeneratedFiles({
    make(name, input, { signal }) {
      if (name === "packPoints") packed++;
      return pool.run(name, input, { priority: "client", ...(signal && { signal }) });
    },
    open: (async () => stored) as unknown as OpenStoredExtents,
    capturePathOf: () => source.path,
    keptBytes: KEPT_BYTES,
  });
  const cloud = { kind: "cloud", points, lineCounts: extent, mask: null, atUs: 1 } as const;
  const frame = { id, ...geometry, planes, batches, artefacts: { "raw.ply": cloud } } as unknown as FrameState;
  const run = { id: RUN_ID } as RunState;

  const client = async (): Promise<void> => {
    const into = new Uint8Array(256 * 1024);
    for (let nth = 0; nth < READS; ) {
      const body = await files.cloud(run, frame, "raw.ply");
      t.equal(body.totalBytes, whole.length, { diagnostic: false });
      let position = random.integer(0, whole.length - 1);
      for (let reads = random.integer(1, 12); reads > 0 && position < whole.length; reads--, nth++) {
        const gone = new AbortController();
        const length = Math.min(random.integer(1, into.length), whole.length - position);
        const reading = body.read(position, length, gone.signal, random.chance(0.8) ? into : undefined);
        if (random.chance(0.1)) gone.abort();
        const part = await reading.catch(() => null);
        if (part === null) break;
        if (!whole.subarray(position, position + part.length).equals(part)) t.fail(`at ${position}: other bytes`);
        position += part.length;
      }
      body.release();
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  t.ok(files.keptBytes <= KEPT_BYTES);
  const pieces = Math.ceil(whole.length / (4 * 1024 * 1024));
  t.ok(packed > pieces, `${packed} pieces made of ${pieces}: some were pushed out, and made again`);
});
