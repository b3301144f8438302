import { LIMITS } from "../../core/limits.js";
import { programResponse } from "../../core/run/program-response.js";
import { unknownId } from "../../core/service-errors.js";
import type { View } from "../../storage/view/view.js";
import { jsonInSlices } from "../documents/json-in-slices.js";
import { SharedWork } from "../documents/shared-work.js";
import type { ThreadSlices } from "../documents/thread-slices.js";
import { tagOfHash } from "../replies/conditional-reply.js";
import { jsonBytesReply, jsonReply } from "../replies/reply.js";
import { defineRoute, type Route } from "../requests/route.js";
import { jsonResponse, limitParameter, OFFSET, PROGRAM_ID } from "./declared-parameters.js";

const TAG = "programs";

/** Pages up to this size are made at once. Larger ones are made one after the other, each once for all clients that wait for it. */
const SMALL_BYTES = 256 * 1024;

export function programRoutes(view: View, slices: ThreadSlices): Route[] {
  const work = new SharedWork(slices);
  return [
    defineRoute({
      path: "/programs",
      operationId: "listPrograms",
      tag: TAG,
      summary: "Lists programs, newest first.",
      query: {
        robot_id: { type: "string", description: "Only programs that drive this robot." },
        limit: limitParameter(LIMITS.programsPage),
        offset: OFFSET,
      },
      responses: { 200: jsonResponse("ProgramListResponse", "The page, and the total number of matches.") },
      handle(asked) {
        const { query, baseUrl } = asked;
        const { robot_id: robotId, limit, offset } = query;
        const { total, programs } = view.listPrograms({ robotId, limit, offset });
        const entries = programs.map(({ program, runCount, cells }) =>
          programResponse(program, runCount, baseUrl, cells),
        );
        const page = { programs: entries, total, limit, offset };
        const bytes = programs.reduce((sum, { program }) => sum + program.documentBytes, 0);
        if (bytes <= SMALL_BYTES) return jsonReply(page);
        const key = [view.fold.runsVersion, limit, offset, JSON.stringify(robotId), baseUrl].join(" ");
        return work.get(key, bytes, asked.gone(), async (busy) => {
          const { bytes: json, sha1 } = await jsonInSlices(page, busy);
          return { ...jsonBytesReply(json, true), etag: tagOfHash(sha1) };
        });
      },
    }),
    defineRoute({
      path: "/programs/{program_id}",
      operationId: "getProgram",
      tag: TAG,
      summary: "One program with its steps.",
      pathParameters: { program_id: PROGRAM_ID },
      responses: { 200: jsonResponse("ProgramResponse", "The program.") },
      handle({ params, baseUrl }) {
        const id = params.program_id as string;
        const entry = view.program(id);
        if (entry === undefined) throw unknownId("program", id);
        return jsonReply(programResponse(entry.program, entry.runCount, baseUrl, entry.cells));
      },
    }),
  ];
}
