import { rmSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { programPut } from "../helpers/link/link-messages.js";
import { RawProducer } from "../helpers/link/raw-producer.js";
import { ServiceProcess } from "../helpers/process/service-process.js";
import { until } from "../helpers/until.js";

async function health(service: ServiceProcess) {
  const response = await fetch(`http://127.0.0.1:${service.port}/health`);
  const { components } = (await response.json()) as { components: Record<string, { status: string; detail: string }> };
  return { status: response.status, recorder: components.recorder };
}

/** A service whose log is taken away, which ends its recording within seconds. */
async function failing(t: Test, exitAfter: string): Promise<ServiceProcess> {
  const service = await ServiceProcess.startFor(t, { args: ["serve", "--exit-after-failure", exitAfter] });
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "cell");
  await producer.accept(programPut());
  rmSync(join(service.dataDirectory, "meta"), { recursive: true });
  await producer.close();
  await until("503 of /health", async () => (await health(service)).status === 503);
  return service;
}

t.test("a process that records no more says so and exits with 1, for its supervisor; 0 keeps it", async (t) => {
  const [ends, stays] = await Promise.all([failing(t, "700ms"), failing(t, "0")]);
  const { code, stderr } = await ends.end("SIGCONT");
  t.equal(code, 1);
  t.match(stderr, /"recording has failed: the service ends in 0\.7 s, so that a supervisor restarts it"/);
  t.match(stderr, /^inspection-service: nothing was recorded since \d{4}-.*somebody removed or replaced/m);
  // Its recording ended at about the same time.
  t.match(await health(stays), { status: 503, recorder: { status: "down", detail: /^since \d{4}-/ } });
  const stayed = await stays.end();
  t.notMatch(stayed.stderr, /a supervisor/);
  t.equal(stayed.code, 1, "what a stop says of it is as before");
});
