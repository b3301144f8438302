import t from "tap";
import { withoutCaptures } from "../../../core/run/run-files.js";
import type { RunState } from "../../../core/run/run-state.js";
import { GeneratedFiles } from "../../../http/downloads/generated-files.js";
import type { Reply } from "../../../http/replies/reply.js";
import { fileRoutes } from "../../../http/routes/file-routes.js";
import { StorageError } from "../../../storage/storage-error.js";
import { FRAME_ID, RUN_ID, stateWithRun } from "../../helpers/link/cell-messages.js";

/** The routes over one run with a whole frame, whose file is never there; `onOpen` may change the run. */
function routesOver(onOpen: (run: RunState) => RunState) {
  let run = structuredClone(stateWithRun("completed").runs.get(RUN_ID)) as RunState;
  run.frames = run.frames.map((frame) => ({ ...frame, status: "complete", completedAtUs: run.completedAtUs }));
  let opens = 0;
  const view = { runOfFrame: () => run.id };
  const large = { run: async () => run };
  const open = async () => {
    opens++;
    run = onOpen(run);
    throw new StorageError("capture_missing", "it is not there");
  };
  const make = () => Promise.reject(new Error("nothing is made of a file that is not there"));
  const generated = new GeneratedFiles({ make, open, capturePathOf: () => "x", keptBytes: 1 });
  const routes = fileRoutes(view as never, large as never, { open, generated });
  const get = (operationId: string, params: Record<string, string>) =>
    routes.find((route) => route.operationId === operationId)?.handle({ params } as never) as Promise<Reply>;
  return { get, opens: () => opens };
}

const FILE = { run_id: RUN_ID, name: `frame-${FRAME_ID}.npy` };

t.test(
  "a file that retention removes between the look at its run and its opening is 410, its format 404",
  async (t) => {
    const file = routesOver((run) => withoutCaptures(run, 7));
    await t.rejects(file.get("downloadRunFile", FILE), /retention removed the file/);
    t.equal(file.opens(), 1);
    const format = routesOver((run) => withoutCaptures(run, 7));
    await t.rejects(format.get("downloadFrameNpy", { frame_id: FRAME_ID }), /retention removed this capture/);
  },
);

t.test("a file that is missing without a tombstone is looked for once more, and is lost then", async (t) => {
  const { get, opens } = routesOver((run) => run);
  await t.rejects(get("downloadRunFile", FILE), /it is not there/);
  t.equal(opens(), 2);
  await t.rejects(get("downloadFrameNpy", { frame_id: FRAME_ID }), /it is not there/);
});
