import t from "tap";
import { PROCESSED_RUN, processedCell, SURFACE } from "../../helpers/captures/processed-cell.js";
import {
  EXAMPLE_FRAME,
  EXAMPLE_PROGRAM,
  EXAMPLE_REQUESTS,
  EXAMPLE_RUN,
  exampleCell,
} from "../../helpers/example-cell.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { someFronts } from "../../helpers/http/fronts-here.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const inUpperCase = (path: string) => path.replace(UUID, (id) => id.toUpperCase());

for (const here of someFronts(t)) {
  t.test(`every path takes its ids in either case, and answers them in lower case (${here.name})`, async (t) => {
    const cell = exampleCell();
    const client = new ContractClient(t, await cell.listenFor(t, here));
    const paths = Object.values(EXAMPLE_REQUESTS).filter(({ method, path }) => method === "GET" && path.match(UUID));
    t.ok(paths.length >= 9, `${paths.length} paths with an id`);
    for (const { path } of [...paths, { path: `/runs?program_id=${EXAMPLE_PROGRAM}` }]) {
      // The spelling that comes first must not decide how later answers look.
      const upper = await client.raw("GET", inUpperCase(path));
      const lower = await client.raw("GET", path);
      t.equal(upper.status, 200, inUpperCase(path));
      t.equal(upper.body.toString(), lower.body.toString(), path);
      t.equal(upper.headers.etag, lower.headers.etag, path);
      const same = await client.raw("GET", inUpperCase(path), `If-None-Match: ${lower.headers.etag}\r\n`);
      t.equal(same.status, 304, `one tag for both: ${path}`);
    }
    const list = await client.raw("GET", `/runs?program_id=${EXAMPLE_PROGRAM.toUpperCase()}`);
    t.equal((list.json() as { total: number }).total, 1, "the filter finds what it should");
    for (const { method, path, body } of Object.values(EXAMPLE_REQUESTS)) {
      if (method === "GET" || !path.match(UUID)) continue;
      const target = inUpperCase(path);
      const answer = await (body === undefined ? client.raw(method, target) : client.rawJson(method, target, body));
      t.equal(answer.status, path.endsWith("/resend") ? 202 : 200, `${method} ${target}: ${answer.body}`);
    }
    const unknown = EXAMPLE_FRAME.replace(/.$/, "f").toUpperCase();
    const { params } = await client.rawRefusal(`/sensor/frames/${unknown}`, 404, "frame_not_found");
    t.equal(params.value, unknown.toLowerCase(), "an error shows the id as every other answer does");
    await client.rawRefusal("/programs/x", 404, "program_not_found");
  });
}

t.test("downloads take their ids in either case", async (t) => {
  const { cell } = await processedCell();
  const client = new ContractClient(t, await cell.listenFor(t));
  for (const [path, id] of [
    [`/sensor/frames/${SURFACE}/file.npy`, SURFACE],
    [`/runs/${PROCESSED_RUN}/steps/2/cl_sweep.csv`, PROCESSED_RUN],
    [`/runs/${PROCESSED_RUN}/files/frame-${SURFACE}.npy`, PROCESSED_RUN],
  ] as const) {
    const lower = await client.raw("GET", path);
    const upper = await client.raw("GET", path.replace(id, id.toUpperCase()));
    t.equal(lower.status, 200, path);
    t.equal(upper.status, 200, path);
    t.ok(upper.body.equals(lower.body), path);
    t.equal(upper.headers.etag, lower.headers.etag, path);
    t.equal(upper.headers["content-disposition"], lower.headers["content-disposition"], path);
  }
});

t.test("a log line spells an id as all others do; the command line takes either case", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const client = new ContractClient(t, service.port);
  await client.rawRefusal(`/runs/${EXAMPLE_RUN.toUpperCase()}`, 404, "run_not_found");
  await client.rawRefusal(`/runs?limit=0&program_id=${EXAMPLE_RUN.toUpperCase()}`, 422, "invalid_parameter");
  const { stderr } = await service.end();
  t.match(stderr, `"path":"/runs/${EXAMPLE_RUN}"`);
  t.match(stderr, `"query":"limit=0&program_id=${EXAMPLE_RUN}"`);
  t.notMatch(stderr, EXAMPLE_RUN.toUpperCase());
  const data = ["--data", service.dataDirectory, "--run", EXAMPLE_RUN.toUpperCase()];
  t.match(await runCommand(["inspect", ...data]), { code: 1, stderr: /no such record/ }, "it was looked for");
  const exported = await runCommand(["export", ...data, "--to", `${service.dataDirectory}/out`]);
  t.match(exported, { code: 1, stderr: EXAMPLE_RUN }, "it was looked for, in lower case");
});
