import { LIMITS } from "../../core/limits.js";
import { programResponse } from "../../core/run/program-response.js";
import { unknownId } from "../../core/service-errors.js";
import type { View } from "../../storage/view/view.js";
import { jsonReply } from "../replies/reply.js";
import { defineRoute, type Route } from "../requests/route.js";
import { jsonResponse, limitParameter, OFFSET, PROGRAM_ID } from "./declared-parameters.js";

const TAG = "programs";

export function programRoutes(view: View): Route[] {
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
      handle({ query, baseUrl }) {
        const { limit, offset } = query;
        const { total, programs } = view.listPrograms({ robotId: query.robot_id, limit, offset });
        const entries = programs.map(({ program, runCount }) => programResponse(program, runCount, baseUrl));
        return jsonReply({ programs: entries, total, limit, offset });
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
        return jsonReply(programResponse(entry.program, entry.runCount, baseUrl));
      },
    }),
  ];
}
