import { formatTimeUs } from "../timestamps.js";
import type { ProgramState } from "./program.js";

/** @param runCount count of the program's runs of any status; `baseUrl` as in `runResponse`; `cells` those that have it, at a hub */
export function programResponse(program: ProgramState, runCount: number, baseUrl: string, cells?: readonly string[]) {
  const { id } = program.document;
  return {
    ...program.document,
    run_count: runCount,
    ...(cells !== undefined && { cells }),
    created_at: formatTimeUs(program.createdAtUs),
    updated_at: formatTimeUs(program.updatedAtUs),
    links: {
      self: { href: `${baseUrl}/programs/${id}`, method: "GET" },
      runs: { href: `${baseUrl}/programs/${id}/runs`, method: "GET" },
    },
  };
}
