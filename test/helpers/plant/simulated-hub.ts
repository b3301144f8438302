import type { Random } from "../../../core/random.js";
import { runResponse } from "../../../core/run/run-response.js";
import { LogReader } from "../../../storage/log/log-reader.js";
import { View } from "../../../storage/view/view.js";
import { HubLog } from "../../../workers/hub/hub-log.js";
import type { LogMessage } from "../../../workers/plant/plant-client.js";
import { HintFiles } from "../../../workers/recorder/upkeep/hint-files.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";
import { createDisk, META, QUARANTINE } from "../store/log-harness.js";

/** Small, so that a stream of some hundred messages fills several. */
const SEGMENT_BYTES = 24 * 1024;
const BASE_URL = "http://plant";

/** The log and the view of a hub, in this thread, over a simulated disk. */
export class SimulatedHub {
  static async open(disk?: SimulatedDisk): Promise<SimulatedHub> {
    const fileSystem = disk ?? (await createDisk());
    const view = new View({ isHub: true, reader: new LogReader({ fileSystem, directory: META }) });
    const committed: ((base: number) => void)[] = [];
    const hub = await HubLog.open({
      ...{ fileSystem, metaPath: META, quarantinePath: QUARANTINE, segmentBytes: SEGMENT_BYTES },
      onReplayed: async (batch) => view.fold.applyBatch(batch),
      onCommitted: (batch) => {
        view.fold.applyBatch(batch);
        for (const tell of committed) tell(batch.segmentBase);
      },
    });
    view.fold.finishOpening();
    const quiet = { spend: () => {}, onReadDamage: () => {}, line: () => {} };
    const hints = new HintFiles({ fileSystem, directory: META, log: hub.log, ...quiet });
    hints.start();
    committed.push((base) => hints.committed(base));
    return new SimulatedHub(fileSystem, hub, view, hints);
  }

  disk: SimulatedDisk;
  hub: HubLog;
  view: View;
  #hints: HintFiles;
  /** How often the hub was refused a record, and ended without notice. */
  counts = { refusals: 0, crashes: 0, cuts: 0 };

  private constructor(disk: SimulatedDisk, hub: HubLog, view: View, hints: HintFiles) {
    this.disk = disk;
    this.hub = hub;
    this.view = view;
    this.#hints = hints;
  }

  /** Gives the hub all messages from where it goes on, or the next ones. @param refusals how likely its log refuses a record */
  async feed(messages: readonly LogMessage[], random: Random, most = Infinity, refusals = 0): Promise<void> {
    const { log } = this.hub;
    const append = log.append.bind(log);
    log.append = (input) => {
      if (random.chance(refusals)) throw new RangeError("no memory");
      return append(input);
    };
    const resume = (): number => {
      const { fromSequence, partSequences } = this.hub.resume();
      for (const place of partSequences) this.hub.take(messages[place - 1] as LogMessage);
      return fromSequence - 1;
    };
    let at = resume();
    for (const end = at + most; at < Math.min(end, messages.length); at++) {
      try {
        this.hub.take(messages[at] as LogMessage);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        this.counts.refusals++;
        // As after any other failure, the stream is read anew.
        at = resume() - 1;
      }
      if (random.chance(0.3)) await this.committed();
    }
    log.append = append;
  }

  async committed(): Promise<void> {
    const { log } = this.hub;
    if (log.nextSequence > 1) await log.whenCommitted(log.nextSequence - 1);
  }

  async close(): Promise<void> {
    await this.committed();
    await this.#hints.stop();
    await this.hub.log.close();
  }

  async reopen(): Promise<void> {
    const { hub, view, disk } = await SimulatedHub.open(this.disk);
    Object.assign(this, { hub, view, disk });
  }

  /** Ends at once, anywhere, perhaps also with a torn log, and starts again. */
  async crash(random: Random): Promise<void> {
    if (random.chance(0.3)) await this.close();
    for (let turns = random.integer(0, 6); turns > 0; turns--) await turn();
    this.disk = this.disk.crash(random.pick(["drop", "keep", "tear"]), random);
    this.counts.crashes++;
    await this.hub.log.close().catch(() => {});
    if (random.chance(0.5)) this.counts.cuts += cutTail(this.disk, random);
    await this.reopen();
  }

  /** The bytes of everything that it has: lists of each filter given, programs, rows of health, each run, all changes. */
  async answers(filters: readonly object[]): Promise<Map<string, string>> {
    const { view } = this;
    const answers = new Map<string, string>();
    const ids: string[] = [];
    for (const filter of filters) {
      const { total, read } = view.runPage({ offset: 0, limit: 10_000, ...filter }, BASE_URL);
      const page = (await read()).runs.map((json) => Buffer.from(json).toString());
      answers.set(`list ${JSON.stringify(filter)}`, `${total} ${page.join()}`);
      ids.push(...page.map((json) => JSON.parse(json).id as string));
    }
    for (const id of new Set(ids)) {
      const run = await view.run(id);
      answers.set(`run ${id}`, JSON.stringify(run && runResponse(run, BASE_URL)));
    }
    answers.set("programs", JSON.stringify(view.listPrograms({ offset: 0, limit: 1_000 })));
    answers.set("health", JSON.stringify(view.components()));
    answers.set("changes", changesAfter(view, 0).join());
    return answers;
  }
}

/** Follows all changes from a mark on, and returns the times in the order in which they came. */
export function changesAfter(view: View, markUs: number): number[] {
  const times: number[] = [];
  for (let mark = markUs; ; ) {
    const changes = view.runChanges({ filter: {}, markUs: mark, currentUs: -1 });
    times.push(...changes.timesUs);
    if (changes.isLast) return times;
    mark = changes.markUs;
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The newest segment loses its end, also within a message: the stream still has it. @returns 1 if there was something to cut */
function cutTail(disk: SimulatedDisk, random: Random): number {
  const path = disk
    .paths()
    .filter((name) => name.endsWith(".seg"))
    .at(-1) as string;
  const bytes = disk.bytesOf(path);
  const kept = bytes.length - random.integer(1, 4_000);
  if (kept < 4_096) return 0;
  disk.setBytes(path, bytes.subarray(0, kept));
  return 1;
}
