/** Statistics and exports at hubs of a plant with several cells, over simulated disks, against a plain model. */
import { crc32 } from "node:zlib";
import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { createRandom } from "../../../core/random.js";
import { FindingsReader } from "../../../storage/findings/segment-findings.js";
import { encodeChanges } from "../../../storage/records/change-record.js";
import { EXPORT_BEGINS, type ExportPlace, exportPiece } from "../../../workers/artefacts/findings/checks-export.js";
import { programStatistics } from "../../../workers/artefacts/findings/program-statistics.js";
import { encodeFields, logSubject } from "../../../workers/plant/log-message.js";
import type { LogMessage } from "../../../workers/plant/plant-client.js";
import { SimulatedHub } from "../../helpers/plant/simulated-hub.js";
import { encodedRecord, logMessage } from "../../helpers/plant/simulated-stream.js";
import { endedRun, MEASURED_PROGRAM, type StoredMeasuredRun } from "../../helpers/statistics/measured-store.js";
import { type PlantRun, plantRuns } from "../../helpers/statistics/plant-runs.js";
import { differenceOf, modelStatistics } from "../../helpers/statistics/statistics-model.js";

const SEED = Number(process.env.TEST_SEED ?? 20_261_128);

/** The stream of a plant whose cells ship these runs, one in each message, and the runs as a hub has them. */
function streamOf(runs: readonly PlantRun[]): { messages: LogMessage[]; shown: StoredMeasuredRun[] } {
  const last = new Map<number, { id: string; sequence: number }>();
  const shown: StoredMeasuredRun[] = [];
  const messages = runs.map((run, at) => {
    const { cell, ...given } = run;
    const before = last.get(cell);
    const random = new Uint8Array(10).fill(at % 250);
    const id = generateUuidV7(Math.floor(given.createdAtUs / 1000), random, before?.id ?? null);
    const sequence = (before?.sequence ?? 0) + 1;
    last.set(cell, { id, sequence });
    const stored = {
      ...{ programId: MEASURED_PROGRAM, serialNumber: null, revision: 1, checks: [], defects: [] },
      ...{ status: "completed" as const, startedAtUs: given.createdAtUs + 1_000, ...given, id, sequence: at },
    };
    shown.push(stored);
    const change = { kind: "run_ended", runId: id, run: endedRun(stored) } as const;
    const bytes = encodedRecord({ ...encodeChanges(null, [change], undefined), timeUs: run.completedAtUs }, sequence);
    const range = { firstSequence: sequence, lastSequence: sequence, previousSequence: before?.sequence ?? 0 };
    const header = encodeFields({ ...range, count: 1, part: 1, parts: 1, crc: crc32(bytes) });
    const subject = logSubject(`cell-${cell}`, `${String(cell).repeat(8)}-1111-4111-8111-111111111111`);
    return logMessage(subject, header, bytes, at + 1, run.completedAtUs);
  });
  return { messages, shown };
}

const query = (hub: SimulatedHub) => ({
  ...{ dataDirectory: "/data", untilSequence: hub.hub.log.nextSequence - 1, programId: MEASURED_PROGRAM },
  ...{ sinceUs: null, untilUs: null, serialNumber: null, check: null },
});

/** The bytes of all answers of a hub. */
async function answersOf(hub: SimulatedHub): Promise<string[]> {
  const reader = new FindingsReader(hub.disk);
  const answers = [Buffer.from((await programStatistics(reader, query(hub))).json as Uint8Array).toString()];
  for (const format of ["csv", "ndjson"] as const) {
    let text = "";
    for (let from: ExportPlace | null = EXPORT_BEGINS; from !== null; ) {
      const { bytes, next } = await exportPiece(reader, { query: query(hub), format, namesJson: "", from });
      text += Buffer.from(bytes).toString();
      from = next;
    }
    answers.push(text);
  }
  return answers;
}

t.test("hubs of several cells give the figures of a model, and all the same bytes", async (t) => {
  const random = createRandom(SEED);
  t.comment(`seed ${SEED}`);
  const { messages, shown } = streamOf(plantRuns(random, 250));
  const whole = await SimulatedHub.open();
  await whole.feed(messages, random);
  await whole.close();
  const answers = await answersOf(whole);
  const [statistics, , rows] = answers as [string, string, string];
  const model = modelStatistics(shown, { programId: MEASURED_PROGRAM });
  t.equal(differenceOf(JSON.parse(statistics), model), undefined);
  const times = [...rows.matchAll(/"completed_at":"([^"]+)"/g)].map(([, time]) => time as string);
  t.ok(times.length > 500, `${times.length} rows`);
  t.strictSame(times, times.toSorted());

  const other = await SimulatedHub.open();
  while (other.hub.streamSequence < messages.length) {
    await other.feed(messages, random, random.integer(1, 60));
    await other.crash(random);
  }
  await other.feed(messages, random);
  await other.close();
  t.strictSame(await answersOf(other), answers, `after ${other.counts.crashes} crashes`);
});
