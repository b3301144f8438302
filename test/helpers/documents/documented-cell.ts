import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import {
  frameBegin,
  frameLines,
  LINE_BYTES,
  nextId,
  PROGRAM_ID,
  programPut,
  seriesAppend,
} from "../link/link-messages.js";
import type { ServiceProcess } from "../process/service-process.js";
import { until } from "../until.js";

const LINES = 8;

/** Names that the documents use for ids and the like, with what they stand for in this cell. */
export type Names = Record<string, string>;

/** Has the service keep one run of which every request of the documents finds something. Resolves when all its formats are made. */
export async function documentedCell(service: ServiceProcess): Promise<Names> {
  const base = `http://127.0.0.1:${service.port}`;
  const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "documents" });
  await producer.welcomed();
  const run = producer.nextRunId();
  const frame = nextId();
  await producer.deliver(programPut(PROGRAM_ID, 1));
  await producer.deliver({ type: "run.create", id: run, program_id: PROGRAM_ID, serial_number: "SN-0042" });
  await producer.deliver({ type: "run.start", id: run });
  await producer.deliver({ type: "step.start", run_id: run, index: 1 });
  await producer.deliver(frameBegin(frame, run, 1, LINES));
  await producer.deliver(frameLines(frame, 0, LINES), Buffer.alloc(LINES * LINE_BYTES, 1));
  await producer.deliver({ type: "frame.end", id: frame });
  await producer.deliver(seriesAppend(run), Buffer.alloc(16));
  const file = { type: "file.put", run_id: run, name: "report.pdf", content_type: "application/pdf" };
  await producer.deliver(file, Buffer.alloc(500, 32));
  await producer.deliver({ type: "step.finish", run_id: run, index: 1, status: "completed" });
  await producer.deliver({ type: "run.finish", id: run });
  await producer.close();
  const url = `${base}/runs/${run}`;
  let etag = "";
  await until("seven files of the run", async () => {
    const answer = await fetch(url);
    const { files, status } = (await answer.json()) as { files: { name: string }[]; status: string };
    etag = answer.headers.get("etag") ?? "";
    // Five of the frame, one of the series, and the report.
    return status === "completed" && files.length === 7;
  });
  return {
    ...{ RUN: run, FRAME: frame, PROGRAM: PROGRAM_ID, STEP: "1", NAME: "report.pdf", SERIAL: "SN-0042" },
    ...{ MARK: "2026-01-31T12:00:00.000000Z", ETAG: etag },
  };
}
