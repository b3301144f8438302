import t from "tap";
import { someFronts } from "../../helpers/http/fronts-here.js";
import { RawConnection } from "../../helpers/http/raw-http.js";
import { nextId, PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";

interface Page {
  total: number;
  runs: { id: string; status: string; updated_at: string }[];
}

for (const { name, environment } of someFronts(t)) {
  t.test(`a page is never older than what its run showed before, and its tag goes with it (${name})`, async (t) => {
    const service = await ServiceProcess.startFor(t, { args: ["serve"], environment });
    const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
    await producer.accept(programPut());
    const connection = await RawConnection.openFor(t, service.port);
    const get = async (path: string, tag = "") => {
      connection.send(`GET ${path} HTTP/1.1\r\nHost: x\r\n${tag === "" ? "" : `If-None-Match: ${tag}\r\n`}\r\n`);
      const response = await connection.response();
      if (response === undefined) throw new Error(`no answer to ${path}`);
      return response;
    };
    const paths = ["/runs", "/runs?limit=1", `/programs/${PROGRAM_ID}/runs?limit=2`];
    const tags = new Map<string, string>();
    for (let count = 1; count <= 10; count++) {
      const id = nextId();
      const steps = [
        { message: { type: "run.create", id, program_id: PROGRAM_ID }, status: "pending" },
        { message: { type: "run.start", id }, status: "running" },
        { message: { type: "run.cancel", id }, status: "cancelled" },
      ];
      for (const { message, status } of steps) {
        await producer.accept(message);
        let run: Page["runs"][number];
        do run = (await get(`/runs/${id}`)).json() as typeof run;
        while (run.status !== status);
        for (const path of paths) {
          const fresh = await get(path, tags.get(path));
          t.equal(fresh.status, 200, `${path}: it changed, so its tag did`);
          const page = fresh.json() as Page;
          t.match(page.runs[0], { id, status, updated_at: run.updated_at }, path);
          t.equal(page.total, count, path);
          tags.set(path, fresh.headers.etag as string);
          t.equal((await get(path, tags.get(path))).status, 304, `${path}: nothing changed since`);
        }
      }
    }
    t.equal((await service.end()).code, 0);
  });
}
