/**
 * What a team would write instead of the service's front: Fastify over better-sqlite3, with every answer's JSON made beforehand and kept
 * ready, so that nothing is serialised for a request. A process of its own: `node fastify-server.js DATABASE` prints `listening on
 * http://…` and serves until SIGTERM.
 */
import { parseUtcTimeUs } from "../../core/timestamps.js";
import { loadFastify } from "./fastify.js";
import { loadSqlite, openDurableDatabase } from "./sqlite.js";
import { listsOf } from "./sqlite-lists.js";

const JSON_TYPE = "application/json; charset=utf-8";

const peer = loadSqlite();
if ("why" in peer) throw new Error(peer.why);
const web = loadFastify();
if ("why" in web) throw new Error(web.why);

const database = openDurableDatabase(peer.sqlite, process.argv[2] as string);
const { list } = listsOf(database);
const detail = database.prepare("SELECT json FROM document WHERE id = ?").pluck();
const app = web.fastify();

const uuid = { type: "string", pattern: "^[0-9a-f-]{36}$" };
app.get("/runs/:id", { schema: { params: { type: "object", properties: { id: uuid } } } }, ({ params }, reply) => {
  const json = detail.get(params.id);
  if (json === undefined) return reply.code(404).send({ code: "run_not_found" });
  return reply.type(JSON_TYPE).send(json);
});

const querystring = {
  type: "object",
  properties: {
    program_id: uuid,
    status: { type: "string" },
    serial_number: { type: "string", minLength: 1 },
    updated_since: { type: "string" },
    limit: { type: "integer", minimum: 50, maximum: 50 },
    offset: { type: "integer", minimum: 0, default: 0 },
  },
};
app.get("/runs", { schema: { querystring } }, ({ query }, reply) => {
  const text = (name: string): string | undefined => query[name] as string | undefined;
  const since = text("updated_since");
  const filters = {
    programId: text("program_id"),
    status: text("status"),
    serialNumber: text("serial_number"),
    updatedSinceUs: since === undefined ? undefined : parseUtcTimeUs(since),
  };
  const wanted = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
  return reply.type(JSON_TYPE).send(list({ filters: wanted, offset: query.offset as number, text: "" }));
});

process.stdout.write(`listening on ${await app.listen({ host: "127.0.0.1", port: 0 })}\n`);
process.on("SIGTERM", () => process.exit(0));
