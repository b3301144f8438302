import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { generateUuidV7 } from "../../../core/identifiers.js";
import { ProducerClient } from "../../../workers/cell-link/producer-client.js";
import { frontsHere } from "../../helpers/http/fronts-here.js";
import { RawConnection, rawRequest } from "../../helpers/http/raw-http.js";
import { resetConnection } from "../../helpers/http/reset-connection.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { sized } from "../../helpers/test-size.js";
import { until } from "../../helpers/until.js";

const IDLE = sized(200, 5_000);
const SLOW = sized(10, 200);
const FILE_BYTES = 20_000_000;
/** Bytes that every slow reader takes, twice a second. */
const SIP_BYTES = 10_000;
/** What 200 slow readers may cost: two slices of 256 KiB each, as much again of the runtime's, and the sockets. */
const GROWTH_LIMIT_BYTES = 400_000_000;
/** What 5,000 idle connections may cost: 20 KB each. */
const IDLE_GROWTH_LIMIT_BYTES = 100_000_000;

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: cell:8000\r\n\r\n`;

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

async function storeFile(service: ServiceProcess): Promise<string> {
  const client = new ProducerClient({ address: { path: service.cellSocketPath }, producer: "test" });
  await client.welcomed();
  const program = generateUuidV7(Date.now(), Buffer.alloc(10, 7), null);
  await client.send({
    type: "program.put",
    program: { id: program, name: "P", status: "active", steps: [{ type: "wait" }] },
  });
  const id = client.nextRunId();
  await client.send({ type: "run.create", id, program_id: program });
  const file = { type: "file.put", run_id: id, name: "large.bin", content_type: "application/octet-stream" };
  await client.send(file, Buffer.alloc(FILE_BYTES, "x"));
  await client.close();
  return `/runs/${id}/files/large.bin`;
}

for (const { name, environment } of frontsHere(t)) {
  t.test(`${IDLE} idle connections and ${SLOW} slow readers of 20 MB hold bounded memory (${name})`, async (t) => {
    const descriptorLimit = String(sized(2_048, 12_288));
    const service = await ServiceProcess.startFor(t, { args: ["serve"], environment, descriptorLimit });
    const path = await storeFile(service);
    // Warm, so that what is counted is what the clients cost.
    for (let count = sized(50, 500); count > 0; count--) await rawRequest(service.port, get("/runs"));
    const before = residentBytes(service.pid);

    const idle: RawConnection[] = [];
    while (idle.length < IDLE) idle.push(await RawConnection.open(service.port));
    const idleGrowth = residentBytes(service.pid) - before;
    t.ok(
      idle.every(({ socket }) => !socket.destroyed),
      "all are open",
    );
    t.ok(idleGrowth < IDLE_GROWTH_LIMIT_BYTES, `grew by ${Math.round(idleGrowth / 1e6)} MB`);
    for (const connection of idle) connection.close();

    const slow: RawConnection[] = [];
    for (let n = 0; n < SLOW; n++) {
      const connection = await RawConnection.open(service.port);
      connection.socket.on("readable", () => {});
      connection.socket.pause();
      connection.send(get(path));
      slow.push(connection);
    }
    const sips = setInterval(() => {
      for (const { socket } of slow) socket.read(SIP_BYTES);
    }, 500);
    let most = 0;
    for (let look = sized(4, 24); look > 0; look--) {
      await sleep(500);
      most = Math.max(most, residentBytes(service.pid));
    }
    t.equal((await rawRequest(service.port, get("/runs")))?.status, 200, "others are served beside them");
    clearInterval(sips);
    t.ok(most - before < GROWTH_LIMIT_BYTES, `grew by ${Math.round((most - before) / 1e6)} MB`);
    for (const connection of slow) resetConnection(connection.socket);
    const open = async () => {
      const metrics = (await rawRequest(service.port, get("/metrics")))?.body.toString() ?? "";
      return Number(/^inspection_http_open_requests (\d+)$/m.exec(metrics)?.[1]);
    };
    // The one that asks is open too.
    await until("no open request but this one", async () => (await open()) <= 1);
    t.equal((await service.end()).code, 0);
  });
}
