import { formatTimeUs } from "../timestamps.js";
import type { ProgramState } from "./program.js";

/** @param runCount count of the program's runs of any status; `baseUrl` as in `runResponse` */
export function programResponse(program: ProgramState, runCount: number, baseUrl: string) {
  const { id } = program.document;
  return {
    ...program.document,
    run_count: runCount,
    created_at: formatTimeUs(program.createdAtUs),
    updated_at: formatTimeUs(program.updatedAtUs),
    links: {
      self: { href: `${baseUrl}/programs/${id}`, method: "GET" },
      runs: { href: `${baseUrl}/programs/${id}/runs`, method: "GET" },
    },
  };
}
