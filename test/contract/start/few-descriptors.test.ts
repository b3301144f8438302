import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { until } from "../../helpers/until.js";

const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
/** More than the process may have descriptors. */
const IDLE_CLIENTS = 330;
const DESCRIPTORS = 256;

const skip = spawnSync("prlimit", ["--version"]).status === 0 ? false : "prlimit is not here";
const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: cell\r\nConnection: close\r\n\r\n`;

/** Runs with a file each, so that the store opens files all the time, until it is told to end; how many were acknowledged. */
function produce(producer: ProducerClient) {
  let isOver = false;
  const runs: string[] = [];
  const done = (async () => {
    await producer.welcomed();
    const program = { id: PROGRAM_ID, name: "Disc", status: "active", robot_ids: [], steps: [{ type: "wait" }] };
    await producer.deliver({ type: "program.put", program });
    while (!isOver) {
      const id = producer.nextRunId();
      await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
      await producer.deliver({ type: "run.start", id });
      const file = { type: "file.put", run_id: id, name: "report.pdf", content_type: "application/pdf" };
      await producer.deliver(file, Buffer.from(`report of ${id}`));
      await producer.deliver({ type: "run.cancel", id });
      runs.push(id);
    }
  })();
  const end = (): Promise<void> => {
    isOver = true;
    return done;
  };
  return { runs, end };
}

/** Clients that all connect at once and say nothing. When a connection is closed, they open another. */
function idle(port: number) {
  const open = new Set<RawConnection>();
  let isOver = false;
  const keepOpen = async (): Promise<void> => {
    while (!isOver) {
      try {
        const connection = await RawConnection.open(port);
        open.add(connection);
        await connection.closed;
        open.delete(connection);
      } catch {
        // Refused by the system.
      }
      await sleep(300);
    }
  };
  const clients = Array.from({ length: IDLE_CLIENTS }, keepOpen);
  return {
    async leave(): Promise<void> {
      isOver = true;
      for (const connection of open) connection.close();
      await Promise.all(clients);
    },
  };
}

for (const { name, environment } of frontsHere(t)) {
  t.test(`idle clients beyond ${DESCRIPTORS} descriptors hold up no recording (${name})`, { skip }, async (t) => {
    const wrap = ["prlimit", `--nofile=${DESCRIPTORS}`];
    const service = await ServiceProcess.startFor(t, { wrap, environment });
    const producer = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "honest" });
    const produced = produce(producer);
    const crowd = idle(service.port);
    const before = produced.runs.length;
    // The time that it takes to fill all places, and to close the first idle connections.
    const endMs = performance.now() + 3_000;
    const hasGoneOn = () => performance.now() >= endMs && produced.runs.length >= before + 10;
    await until("ten runs beside the idle clients", hasGoneOn);
    await crowd.leave();
    await produced.end();
    await producer.close();
    await until("the service is healthy", async () => {
      const health = (await ask(service.port, "/health"))?.json() as { status?: string } | undefined;
      return health?.status === "healthy";
    });
    const id = produced.runs.at(-1) as string;
    const file = await ask(service.port, `/runs/${id}/files/report.pdf`);
    t.equal(file?.body.toString(), `report of ${id}`, "what was acknowledged is there");
    t.match((await ask(service.port, "/runs?limit=1"))?.json(), { total: produced.runs.length });
    t.match(await service.end(), { code: 0, stderr: /too many are open \(--max-connections\)/ });
  });
}

async function ask(port: number, path: string) {
  try {
    return await rawRequest(port, GET(path));
  } catch {
    return undefined;
  }
}

for (const { name, environment } of frontsHere(t)) {
  t.test(`--max-connections bounds the clients, and others get in when they leave (${name})`, async (t) => {
    const service = await ServiceProcess.startFor(t, { args: ["serve", "--max-connections", "20"], environment });
    const crowd = idle(service.port);
    const status = async () => (await ask(service.port, "/livez"))?.status;
    await until("all places are taken", async () => (await status()) === undefined);
    await crowd.leave();
    await until("it is served", async () => (await status()) === 200);
    t.match(await service.end(), { code: 0, stderr: /too many are open \(--max-connections\)/ });
  });
}
