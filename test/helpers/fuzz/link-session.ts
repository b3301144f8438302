/** A producer's session over the cell link, to fuzz from. */
import { encodeFrame, type FrameToSend } from "../../../workers/cell-link/frame-codec.js";
import { frameBegin, frameLines, LINE_BYTES, PROGRAM_ID, programPut, seriesAppend } from "../link/link-messages.js";

const RUN_ID = "019bb000-0000-7000-8000-00000000000a";
const FRAME_ID = "019bb000-0000-7000-8000-00000000000b";

export const HELLO: FrameToSend = { kind: "hello", sequence: 0, body: { protocol: 1, producer: "corpus" } };

/** A short run, frame by frame; message n has the sequence number n. */
export const SESSION: readonly FrameToSend[] = [
  HELLO,
  ...(
    [
      [programPut()],
      [{ type: "run.create", id: RUN_ID, program_id: PROGRAM_ID, serial_number: "S", metadata: { a: "µ" } }],
      [{ type: "run.start", id: RUN_ID }],
      [frameBegin(FRAME_ID, RUN_ID)],
      [frameLines(FRAME_ID, 0, 2), new Uint8Array(2 * LINE_BYTES).fill(7)],
      [{ type: "frame.end", id: FRAME_ID }],
      [seriesAppend(RUN_ID), new Uint8Array(16).fill(1)],
      [{ type: "check.add", run_id: RUN_ID, check: { name: "gap", status: "failed", value: 1.5 } }],
      [{ type: "file.put", run_id: RUN_ID, name: "a.pdf", content_type: "a/b" }, Uint8Array.of(1, 2, 3)],
      [{ type: "event.add", run_id: RUN_ID, event_type: "e", data: { deep: [[[1]]] } }],
      [{ type: "run.finish", id: RUN_ID, results: { mean: 0.25 } }],
    ] as [object, Uint8Array?][]
  ).map(
    ([body, payload], at): FrameToSend => ({ kind: "message", sequence: at + 1, body, ...(payload && { payload }) }),
  ),
  { kind: "ping", sequence: 9 },
];

export function streamOf(frames: readonly FrameToSend[]): Uint8Array {
  return Buffer.concat(frames.flatMap((frame) => encodeFrame(frame)));
}
