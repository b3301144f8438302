import type { QualityCheck } from "../../../core/run/quality.js";
import type { ContractClient } from "../http/contract-client.js";
import type { StoredMeasuredRun } from "./measured-store.js";

/** A program's ended runs as the rest of the interface shows them, the first to end first. */
export async function shownRuns(client: ContractClient, programId: string): Promise<StoredMeasuredRun[]> {
  const { runs } = await client.get("/programs/{program_id}/runs", {
    path: { program_id: programId },
    query: { limit: 1000 },
  });
  const ended = runs.filter(({ completed_at: time }) => time != null);
  const us = (time: string) => Date.parse(`${time.slice(0, 19)}Z`) * 1000 + Number(time.slice(20, 26));
  const found = await Promise.all(
    ended.map(async (run, sequence) => {
      const { quality_report: report } = await client.get("/runs/{run_id}/quality-report", {
        path: { run_id: run.id },
      });
      const { defects } = await client.get("/runs/{run_id}/defects", { path: { run_id: run.id } });
      return {
        ...{
          id: run.id,
          sequence,
          programId,
          serialNumber: run.serial_number ?? null,
          revision: run.revision ?? 1,
        },
        status: run.status as StoredMeasuredRun["status"],
        createdAtUs: us(run.created_at),
        startedAtUs: run.started_at == null ? null : us(run.started_at),
        completedAtUs: us(run.completed_at as string),
        checks: (report?.checks ?? []) as QualityCheck[],
        defects: defects as StoredMeasuredRun["defects"],
      };
    }),
  );
  return found.sort((a, b) => a.completedAtUs - b.completedAtUs);
}
