import type { CellMessageOf } from "../../core/link/cell-message-schema.js";
import { createRandom, type Random } from "../../core/random.js";
import { MessageRefusedError, ProducerClient } from "../cell-link/producer-client.js";
import type { DemoCellOptions, DemoCellReport } from "./demo-cell-messages.js";
import type { DemoProgram } from "./demo-programs.js";
import { executeRun } from "./demo-run.js";
import { CellStoppedError, Pace } from "./pace.js";
import { batchOf, type Scene, sceneOf } from "./scenes.js";

/** Share of runs that inspect the same part again. */
const REINSPECTED = 0.06;
/** Pause between two runs: the part is changed. */
const CHANGE_PART_MS = 500;
/**
 * Pause between two batches: the fixture is changed. It is long enough for the last run to complete before the display
 * shows other units.
 */
const CHANGE_BATCH_MS = 2_000;
/** How long a stopped cell may take to cancel its run and get that acknowledged. */
const STOP_LIMIT_MS = 3_000;

type ComponentPut = CellMessageOf<"component.put">;
const READER: ComponentPut = { type: "component.put", key: "reader_srl-1", id: "srl-1", status: "healthy" };
const COMPONENTS: ComponentPut[] = [
  { type: "component.put", key: "robot_r1", id: "r1", status: "healthy", enabled: true, required: true },
  { type: "component.put", key: "robot_r2", id: "r2", status: "healthy", enabled: true },
  { type: "component.put", key: "sensor_ljx-1", id: "ljx-1", status: "healthy", required: true },
  { type: "component.put", key: "controller_cl-1", id: "cl-1", status: "healthy" },
  { type: "component.put", key: "camera_iv4-1", id: "iv4-1", status: "healthy" },
  READER,
  { type: "component.put", key: "plc", status: "healthy", detail: "cycle 4 ms", required: true },
];

/**
 * A cell that produces runs over the link until `options.runs` are done (0: for ever) or `signal` aborts. Resolves with
 * the number of runs once all of them are acknowledged. The same seed gives the same content in the same order. Ids and
 * times differ.
 */
export async function runDemoCell(
  options: DemoCellOptions,
  programs: readonly DemoProgram[],
  signal: AbortSignal,
  report: (report: DemoCellReport) => void,
): Promise<number> {
  const client = new ProducerClient({
    address: { path: options.socketPath },
    producer: "demo-cell",
    onWelcome: () => report({ kind: "connected" }),
    onDisconnected(reason) {
      report({ kind: "disconnected", reason });
      if (signal.aborted) client.destroy();
    },
    onRefused: ({ code, message }) => report({ kind: "refused", code, message }),
  });
  let stopTimer: NodeJS.Timeout | undefined;
  // A stopped cell ends its run in order, but does not wait for a service that is gone or does not answer.
  const onAbort = (): void => {
    if (client.isConnected) stopTimer = setTimeout(() => client.destroy(), STOP_LIMIT_MS);
    else client.destroy();
  };
  signal.addEventListener("abort", onAbort);
  const pace = new Pace(options.speed ?? 1, signal);
  const isGuest = options.isGuest ?? false;
  let runs = 0;
  try {
    await client.welcomed();
    await introduce(client, programs, options.seed, isGuest);
    const parts = new PartCounter();
    while (!signal.aborted && (options.runs === 0 || runs < options.runs)) {
      const number = (options.firstNumber ?? 1) + runs++;
      const random = createRandom(Math.imul(options.seed, 0x9e3779b1) ^ number);
      const batch = batchOf(number);
      if (!isGuest) {
        if (batch.isNew) await client.deliver({ type: "cell.put", unit_system: batch.unitSystem });
        await changeReaderState(client, random);
      }
      const scene = sceneOf(number);
      // After the scenes, the programs in turn.
      const program = programs[(scene?.program ?? number - 1) % programs.length] as DemoProgram;
      const serialNumber = parts.next(program, random, scene, number);
      try {
        report(await executeRun(client, pace, { number, program, serialNumber, random, scene, batch }));
      } catch (error) {
        // onRefused has reported it. The cell goes on with the next part.
        if (!(error instanceof MessageRefusedError)) throw error;
      }
      if (options.runs === 0 || runs < options.runs) {
        await pace.work(batchOf(number + 1).isNew ? CHANGE_BATCH_MS : CHANGE_PART_MS);
      }
    }
    await client.close();
  } catch (error) {
    if (!signal.aborted) throw error;
    if (error instanceof CellStoppedError) await client.close();
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(stopTimer);
    client.destroy();
  }
  return runs;
}

async function introduce(
  client: ProducerClient,
  programs: readonly DemoProgram[],
  seed: number,
  isGuest: boolean,
): Promise<void> {
  if (!isGuest) {
    const kiosk = `DEMO-${String(Math.abs(seed) % 10_000).padStart(4, "0")}`;
    await client.deliver({ type: "cell.put", kiosk_serial_number: kiosk, unit_system: "metric" });
    for (const component of COMPONENTS) await client.deliver(component);
  }
  for (const { document } of programs) await client.deliver({ type: "program.put", program: document });
}

/** Now and then the code reader's window is dirty. It is cleaned before the next part. */
async function changeReaderState(client: ProducerClient, random: Random): Promise<void> {
  const detail = `window dirty: ${random.integer(80, 94)} % of codes read`;
  const dirty = random.chance(0.1);
  await client.deliver(dirty ? { ...READER, status: "degraded", detail } : READER);
}

/** Serial numbers of each program's parts. They ascend, and sometimes the last part comes again. */
class PartCounter {
  readonly #counts = new Map<DemoProgram, number>();

  next(program: DemoProgram, random: Random, scene: Scene | undefined, number: number): string {
    const last = this.#counts.get(program) ?? 0;
    // It is drawn for every run. So later draws do not depend on the scene.
    const drawn = random.chance(REINSPECTED);
    const isAgain = scene === undefined ? drawn : scene.isAgain === true;
    // Run 0 belongs to a start before this one, so its part comes before the first.
    const count = number === 0 ? 0 : isAgain && last > 0 ? last : last + 1;
    this.#counts.set(program, count);
    const capture = program.document.metadata?.capture;
    const middle = typeof capture === "string" ? `${capture}-` : "";
    return `${program.parts.serialPrefix}-${middle}${String(count).padStart(6, "0")}`;
  }
}
