import t from "tap";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";

const INSTANCE = "7d0e2f41-6b1c-4c58-9a55-0f2d7c4b8e13";
const component = (key: string) => ({ type: "component.put", key, status: "healthy" });

t.test("producers lists the names of a store and removes one, whose sequence numbers then begin anew", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const { dataDirectory } = service;
  const data = ["--data", dataDirectory];
  for (const [name, count] of [
    ["gone.sensor", 3],
    ["robot", 1],
  ] as const) {
    const raw = await RawProducer.connect({ path: service.cellSocketPath }, name, { instance: INSTANCE });
    for (let nth = 0; nth < count; nth++) await raw.accept(component(`${name}-${nth}`));
    await raw.close();
  }
  const served = await runCommand(["producers", "list", ...data]);
  t.match(served, { code: 1, stderr: /in use|served|process/ }, "a store that is being served is left alone");
  await service.end("SIGTERM");

  const listed = await runCommand(["producers", "list", ...data]);
  t.equal(listed.code, 0);
  t.match(listed.stdout, /^gone\.sensor 3 20\d\d-\S+Z\nrobot 1 20\d\d-\S+Z\n$/);
  t.match(await runCommand(["producers", "remove", ...data]), { code: 1, stderr: /--name is required/ });
  t.match(await runCommand(["producers", "remove", ...data, "--name", "other"]), {
    code: 1,
    stderr: /no producer other/,
  });
  t.match(await runCommand(["producers", "remove", ...data, "--name", "gone.sensor"]), { code: 0, stdout: "" });
  t.match((await runCommand(["producers", "list", ...data])).stdout, /^robot 1 \S+\n$/);
  t.match(await runCommand(["check", ...data]), { code: 0 });

  const again = await ServiceProcess.startFor(t, { dataDirectory });
  const address = { path: again.cellSocketPath };
  const fresh = await RawProducer.connect(address, "gone.sensor", { instance: INSTANCE });
  t.match(fresh.welcome, { committed: 0, yours: 0 });
  await fresh.accept(component("again"));
  t.match((await RawProducer.connect(address, "robot", { instance: INSTANCE })).welcome, { committed: 1, yours: 1 });
  await again.end("SIGTERM");
});
