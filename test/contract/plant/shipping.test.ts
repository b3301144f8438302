import { setTimeout } from "node:timers/promises";
import t from "tap";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { startDemo } from "../../helpers/process/demo-results.js";
import { runCommand } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

t.test("options of the plant that do not fit together, and a plant that is away", async (t) => {
  const refusals: [string[], RegExp][] = [
    [["serve", "--plant", "nats://127.0.0.1:1"], /--plant needs --cell/],
    [["serve", "--cell", "cell-7"], /--cell needs --plant/],
    [["serve", "--plant", "nats://a:1", "--cell", "Cell.7"], /--cell: .*a-z, 0-9, dash and underscore/],
    [["serve", "--plant", "nats://u:p@a:1", "--cell", "cell-7"], /--plant: .*without user and password/],
    [["plant", "init"], /--plant is required/],
    [["serve", "--public-url", "http://cell-7"], /--public-url needs --plant/],
    [["serve", "--plant-rate-bytes", "1MiB"], /--plant-rate-bytes needs --plant/],
    [["serve", "--plant", "nats://a", "--cell", "a", "--plant-captures", "some"], /--plant-captures: .*reports/],
    [["plant", "init", "--plant", "nats://127.0.0.1:1"], /--capture-days or --capture-bytes must be set/],
    [
      ["plant", "init", "--plant", "nats://127.0.0.1:1", "--capture-days", "9"],
      /--plant: no server answers at nats:\/\/127\.0\.0\.1:1: /,
    ],
    [["plant", "verify", "--plant", "nats://127.0.0.1:1", "--data", "none"], /none/],
  ];
  for (const [args, message] of refusals) {
    const { code, stderr } = await runCommand(args);
    t.equal(code, 1, args.join(" "));
    t.match(stderr, message);
    t.equal(stderr.split("\n").length, 2, "one line");
  }
  const { stderr } = await runCommand(["serve", "--plant", "nats://me:s3cret@a:1,nats://me:s3cret@b:1", "--cell", "a"]);
  t.match(stderr, /"nats:\/\/\*\*\*@b:1" is not allowed/);
  t.notMatch(stderr, /s3cret/, "a password is never said again");
});

interface Health {
  status: string;
  components: { plant: { status: string; detail: string | null } };
}

t.test("a service ships to the plant, and says so; without it, it records on", { skip: noNatsServer }, async (t) => {
  const server = await NatsServer.startFor(t);
  const dataDirectory = temporaryDirectory(t);
  const start = () =>
    startDemo(t, {
      args: ["demo", "--runs", "2", "--plant", server.url, "--cell", "cell-7"],
      dataDirectory,
    });
  const textOf = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  const untilPlant = async (port: number, expected: RegExp): Promise<void> => {
    let plant = "";
    for (let looks = 0; looks < 6_000 && !expected.test(plant); looks++) {
      const { components } = JSON.parse(await textOf(port, "/health")) as Health;
      plant = `${components.plant.status} ${components.plant.detail}`;
      await setTimeout(20);
    }
    t.match(plant, expected);
  };
  const withoutStream = await start();
  await untilPlant(
    withoutStream.port,
    /^degraded since .*INSPECTION_LOG is not there: make it with `inspection-service plant init` \(the plant lacks \d+ records, \d+ bytes, the oldest \d+ s old\)$/,
  );
  t.equal((await withoutStream.end()).code, 0, "it also stops cleanly without the plant");
  const init = (days: string) =>
    runCommand(["plant", "init", "--plant", server.url, "--replicas", "1", "--capture-days", days]);
  for (const word of ["made", "there already, as asked for"]) {
    t.match(await init("90"), { code: 0, stdout: `INSPECTION_LOG: ${word}\nINSPECTION_CAPTURES: ${word}\n` });
  }
  t.match(await init("30"), {
    code: 1,
    stderr:
      /INSPECTION_CAPTURES is there with max_age 7776000000000000, where 2592000000000000 was asked for; nothing was changed/,
  });
  const service = await start();
  await untilPlant(service.port, /^healthy null$/);
  const isShipped = (text: string) =>
    /^inspection_plant_lag_records 0$/m.test(text) && /^inspection_plant_shipped_sequence [1-9]/m.test(text);
  let metrics = "";
  for (let looks = 0; looks < 6_000 && !isShipped(metrics); looks++) {
    metrics = await textOf(service.port, "/metrics");
    await setTimeout(20);
  }
  const shipped = Number(/^inspection_plant_shipped_sequence (\d+)$/m.exec(metrics)?.[1]);
  t.ok(shipped > 0, "the log is in the plant");
  const last = (await server.messages()).at(-1);
  t.ok(Number(last?.header("Inspection-Last")) >= shipped);
  t.match(last?.subject, /^inspection\.log\.cell-7\.[0-9a-f-]{36}$/);
  await server.kill();
  await untilPlant(service.port, /^degraded since .*the plant does not take messages: /);
  const { status } = JSON.parse(await textOf(service.port, "/health")) as Health;
  t.equal(status, "degraded");
  t.equal((await service.end()).code, 0);
});
