import { oneOf } from "../../core/json/described-schema.js";
import { RUN_STATUS_MEANINGS } from "../../core/run/run-state.js";
import { ServiceError, unknownId } from "../../core/service-errors.js";
import { parseTimeBoundUs } from "../../core/timestamps.js";
import type { View } from "../../storage/view/view.js";
import type { RunDocuments } from "../documents/run-documents.js";
import { ThreadSlices } from "../documents/thread-slices.js";
import type { LiveClients } from "../live/live-clients.js";
import { RunEvents } from "../live/run-events.js";
import { RunSocket, refusedSocket } from "../live/run-socket.js";
import { RunStream, streamStart } from "../live/run-stream.js";
import { checkHandshake } from "../live/socket-handshake.js";
import type { LiveSocket } from "../replies/reply.js";
import { defineRoute, type HandlerRequest, type Route } from "../requests/route.js";
import { CELL, RUN_ID, SERIAL_NUMBER } from "./declared-parameters.js";

const TAG = "live";
const LAST_EVENT_ID = "last-event-id";
/**
 * Time for all live clients together in one turn of the event loop. It is apart from that of other long work: a list of runs must not wait until
 * hundreds of clients have been told of a change.
 */
const LIVE_SLICE_MS = 0.1;

export interface LiveRouteOptions {
  view: View;
  documents: RunDocuments;
  live: LiveClients;
  serviceVersion: string;
}

export function liveRoutes(options: LiveRouteOptions): Route[] {
  const slices = new ThreadSlices(LIVE_SLICE_MS);
  return [runChangesRoute(options, slices), runSocketRoute(options, slices)];
}

function runChangesRoute({ view, live, serviceVersion }: LiveRouteOptions, slices: ThreadSlices): Route {
  const events = new RunEvents();
  return defineRoute({
    path: "/runs/changes",
    operationId: "followRuns",
    tag: TAG,
    summary: "Streams the runs that change, as Server-Sent Events.",
    description: CHANGES_TEXT,
    query: {
      program_id: { type: "string", format: "uuid", description: "Only runs of the program with this id." },
      status: oneOf(RUN_STATUS_MEANINGS, "Only runs in this state. A run that leaves the state is sent once more."),
      serial_number: SERIAL_NUMBER,
      cell: CELL,
      updated_since: {
        type: "string",
        format: "date-time",
        description:
          "Send the runs updated after this time first. Without it, and without Last-Event-ID, the mark is now.",
      },
    },
    headers: {
      "Last-Event-ID": {
        description: "The `id` of the last event that the client has. It wins over `updated_since`.",
        schema: { type: "string", format: "date-time" },
      },
    },
    responses: {
      200: {
        description: "The events, until the client leaves or the service stops.",
        contentType: "text/event-stream",
        schema: { type: "string", description: "Server-Sent Events in UTF-8." },
      },
    },
    errors: ["forbidden"],
    live: "stream",
    handle(request) {
      const { program_id, status, serial_number, updated_since, cell: cells } = request.query;
      const start = streamStart(view, lastEventUs(request) ?? updated_since);
      const filter = { programId: program_id, status, serialNumber: serial_number, cells };
      const client = live.admit("changes");
      const { baseUrl } = request;
      return {
        status: 200,
        contentType: "text/event-stream",
        headers: [
          ["Cache-Control", "no-store"],
          // nginx would hold events back.
          ["X-Accel-Buffering", "no"],
        ],
        body: null,
        live: new RunStream({ client, view, events, slices, filter, start, baseUrl, serviceVersion }),
        closeConnection: true,
      };
    },
  });
}

/** @throws ServiceError invalid_parameter */
function lastEventUs(request: HandlerRequest): number | undefined {
  const value = request.header(LAST_EVENT_ID);
  if (value === undefined || value === "") return undefined;
  const timeUs = parseTimeBoundUs(value, "down");
  if (timeUs !== undefined) return timeUs;
  const allowed = "the id of an event of this stream, such as 2026-01-31T12:00:00.000000Z";
  throw new ServiceError("invalid_parameter", `the header Last-Event-ID must be ${allowed}`, {
    field: LAST_EVENT_ID,
    in: "header",
    value: value.slice(0, 200),
    allowed,
  });
}

function runSocketRoute({ view, documents, live }: LiveRouteOptions, slices: ThreadSlices): Route {
  return defineRoute({
    path: "/runs/{run_id}/live",
    operationId: "followRun",
    tag: TAG,
    summary: "Opens a WebSocket that tells each change of one run.",
    description: SOCKET_TEXT,
    pathParameters: { run_id: RUN_ID },
    headers: {
      "Sec-WebSocket-Protocol": {
        description: "Optional: `inspection.v1`, and in a browser `bearer.` with the API key after it.",
        schema: { type: "string" },
      },
    },
    responses: { 101: { description: "The connection is a WebSocket from now on." } },
    errors: ["forbidden", "upgrade_required"],
    live: "socket",
    handle(request) {
      const runId = request.params.run_id as string;
      const head = view.runHead(runId);
      if (head === undefined) throw unknownId("run", runId);
      checkHandshake((name) => request.header(name));
      return { status: 101, body: null, socket: socketOf(head.id, request.baseUrl) };
    },
  });

  function socketOf(runId: string, baseUrl: string): LiveSocket {
    try {
      return new RunSocket({ client: live.admit("run"), view, documents, slices, runId, baseUrl });
    } catch (error) {
      if (error instanceof ServiceError) return refusedSocket(error.message);
      throw error;
    }
  }
}

const CHANGES_TEXT = `
What \`GET /runs?updated_since=\` gives, pushed. Read it with \`curl -N\`, \`EventSource\` or \`fetch\`.

- \`ready\` comes first. Its \`id\` is the mark from which the stream goes on.
- \`run\`: a run has changed. \`data\` is its ProgramRunSummaryResponse, always the newest state: several changes may be told as one. \`id\` is
  its \`updated_at\`.
- \`reset\`: the mark is later than anything that the service knows. \`data\` says why. List the runs anew.

Connect first, wait for \`ready\`, then list the runs, then apply the changes by \`id\` of the run. This order misses nothing. After a break,
connect again with the last event's \`id\` in \`Last-Event-ID\`. If there is a filter, remove a run from your list when it no longer matches. Such a
run can come although you never had it.

A comment line comes at least every 15 s. A stream ends when the client leaves, at a stop of the service, and when
an API key is removed: connect again. A client that reads nothing for a
minute while events wait for it is cut off.
`.trim();

const SOCKET_TEXT = `
\`links.websocket\` of a run is the address. The first message comes at once, then one after each change, at most ten a second:
\`{"type": "run", "run": ProgramRunResponse}\`, always the newest state. After the terminal state the service closes with code 1000 and the
status as the reason.

Other codes: 1001 at a stop of the service, or when an API key is removed; 1009 after a message of more than 1 KiB (some builds of
uWebSockets.js close without a code after one of more than 128 KiB), other messages are ignored; 1011 if the run cannot be
read; 1013 if it cannot be read just now, if there are too many live clients, or if the client reads a large message too slowly while the run
changes. The service pings every 30 s, and drops a client that did not answer the last ping. A large message comes in several frames.

Without the headers of a WebSocket's handshake, the answer is an error.
`.trim();
