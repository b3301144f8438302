import t from "tap";
import { wallClockUs } from "../../../core/service-clock.js";
import { LOOK_INTERVAL_MS } from "../../../workers/recorder/upkeep/store-watch.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const YEAR_US = 365 * 86_400_000_000;

t.test(
  "while the wall clock is out of all bounds messages are taken and health says so; then all is well again",
  async (t) => {
    let shiftUs = 0;
    const recorder = await RecorderHarness.start(t, temporaryDirectory(t), { wallUs: () => wallClockUs() + shiftUs });
    await (await recorder.connect("cell")).accept(programPut());
    // Anew each time: a link that is quiet while the test's timers advance is closed.
    const createRun = async () => {
      const raw = await recorder.connect("cell");
      await raw.accept({ type: "run.create", id: nextId(), program_id: PROGRAM_ID });
      raw.socket.destroy();
    };
    const look = async (status: string) => {
      while (recorder.row("recorder").status !== status) {
        recorder.timers.advance(LOOK_INTERVAL_MS);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return recorder.row("recorder").detail;
    };
    for (const years of [235, 400, 9_000, -70]) {
      shiftUs = years * YEAR_US;
      const before = recorder.recordTimesUs.at(-1) as number;
      await createRun();
      const during = recorder.recordTimesUs.at(-1) as number;
      t.ok(during > before && during < before + 1_000, `${years} years: times go on from the last`);
      t.match(await look("degraded"), years > 0 ? /the machine's clock is wrong/ : /ahead of the machine's/);
      shiftUs = 0;
      await look("healthy");
      const right = wallClockUs();
      await createRun();
      t.ok((recorder.recordTimesUs.at(-1) as number) >= right, "the right clock takes over");
    }
  },
);

t.test("a clock that was ahead once stays there, and health says how far", async (t) => {
  let shiftUs = 3 * YEAR_US;
  const directory = temporaryDirectory(t);
  const options = { wallUs: () => wallClockUs() + shiftUs };
  let recorder = await RecorderHarness.start(t, directory, options);
  const raw = await recorder.connect("cell");
  await raw.accept(programPut());
  t.equal(recorder.row("recorder").status, "healthy", "nobody can tell");
  shiftUs = 0;
  await raw.accept({ type: "run.create", id: nextId(), program_id: PROGRAM_ID });
  const [first, second] = recorder.recordTimesUs.slice(-2) as [number, number];
  t.equal(second, first + 1);
  await recorder.stop();
  recorder = await RecorderHarness.start(t, directory, options);
  t.match(recorder.row("recorder"), { status: "degraded", detail: /109[45] days ahead of the machine's.*reset-clock/ });
});
