import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { BATCH_BYTES, encodeFields, messageFields } from "../../../workers/plant/log-message.js";
import type { StoredMessage } from "../../../workers/plant/plant-client.js";
import { NatsServer, noNatsServer } from "../../helpers/plant/nats-server.js";
import { untilShippedWhole } from "../../helpers/plant/shipping-service.js";
import { startDemo } from "../../helpers/process/demo-results.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

interface RunPage {
  runs: { id: string; status: string }[];
}

/** What the service says of all runs, and the bytes of all their files. */
async function answersOf(port: number): Promise<Map<string, string>> {
  const answers = new Map<string, string>();
  const get = async (path: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { host: "cell" } });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = `${response.status} ${bytes.toString("latin1")}`.replaceAll(`127.0.0.1:${port}`, "cell");
    answers.set(path, text);
    return bytes.toString();
  };
  const { runs } = JSON.parse(await get("/runs?limit=50")) as RunPage;
  await get("/programs");
  for (const { id } of runs) {
    await get(`/runs/${id}`);
    const files = JSON.parse(await get(`/runs/${id}/files`)) as { name: string }[];
    for (const { name } of files) await get(`/runs/${id}/files/${encodeURIComponent(name)}`);
  }
  return answers;
}

function firstDifference(before: string, after: string): string {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at++;
  return `at ${at}: ${before.slice(at - 60, at + 60)} | ${after.slice(at - 60, at + 60)}`;
}

async function plantOf(t: Test): Promise<NatsServer> {
  const server = await NatsServer.startFor(t);
  const limits = ["--replicas", "1", "--capture-days", "90"];
  t.match(await runCommand(["plant", "init", "--plant", server.url, ...limits]), { code: 0 });
  return server;
}

async function untilHealth(t: Test, port: number, expected: RegExp): Promise<void> {
  let plant = "";
  for (let looks = 0; looks < 6_000 && !expected.test(plant); looks++) {
    const { components } = (await (await fetch(`http://127.0.0.1:${port}/health`)).json()) as {
      components: { plant: { status: string; detail: string | null } };
    };
    plant = `${components.plant.status} ${components.plant.detail}`;
    await setTimeout(20);
  }
  t.match(plant, expected);
}

/** As a cell that dies while it sends the next record, which is a large one. */
async function beginRecord(server: NatsServer): Promise<void> {
  await server.with(async (client) => {
    const last = (await client.lastMessage("inspection.log.cell-7.*")) as StoredMessage;
    const previousSequence = Number(last.header("Inspection-Last"));
    const range = { firstSequence: previousSequence + 1, lastSequence: previousSequence + 1, previousSequence };
    const bytes = Buffer.concat([last.bytes.subarray(0, 48), Buffer.alloc(BATCH_BYTES - 48, 7)]);
    const fields = encodeFields(messageFields({ ...range, count: 1, part: 1, parts: 3 }, bytes));
    const expected = { subjects: last.subject, expected: last.streamSequence };
    await client.publish(last.subject, fields, bytes, expected);
  });
}

for (const policy of ["all", "reports"] as const) {
  t.test(`a cell's store is made anew from the plant: ${policy}`, { skip: noNatsServer }, async (t) => {
    const server = await plantOf(t);
    const [lost, data] = [temporaryDirectory(t), join(temporaryDirectory(t), "restored")];
    const start = (dataDirectory: string, runs: number, ...more: string[]) =>
      startDemo(t, {
        args: [
          "demo",
          "--runs",
          String(runs),
          "--plant",
          server.url,
          "--cell",
          "cell-7",
          "--plant-captures",
          policy,
          ...more,
        ],
        dataDirectory,
      });
    const before = await start(lost, 2);
    await untilShippedWhole(before.port, 2, server);
    let answers = await answersOf(before.port);
    // Until two rounds say the same, with everything shipped between them: so nothing that is compared is lost.
    for (let text = ""; ; answers = await answersOf(before.port)) {
      const now = JSON.stringify([...answers]);
      if (now === text) break;
      text = now;
      await untilShippedWhole(before.port, 2, server);
    }
    await before.end("SIGKILL");
    await beginRecord(server);
    const restore = (...args: string[]) => runCommand(["plant", "restore", "--data", data, ...args]);
    const at = ["--plant", server.url];
    t.match(await restore(...at, "--cell", "cell-8"), { code: 1, stderr: /the plant has nothing of the cell cell-8/ });
    t.notOk(existsSync(data), "nothing is made");
    const restored = await restore(...at, "--cell", "cell-7");
    t.match(restored, { code: 0, stdout: /this store was restored from the plant, which had records up to \d+; / });
    if (policy === "all")
      t.match(restored.stdout, /not in the plant: captures of 0 runs, reports of 0 runs; failed because of it: 0 runs/);
    else t.match(restored.stdout, /not in the plant: captures of [1-9]\d* runs?, reports of 0 runs; /);
    t.match(await restore(...at, "--cell", "cell-7"), { code: 1, stderr: /is not empty/ });
    t.match(await runCommand(["check", "--data", data]), { code: 0, stdout: /, 0 of damage\nok\n$/ });
    const after = await start(data, 2, "--seed", "2");
    await untilHealth(t, after.port, /^degraded since .*restored from the plant, which had records up to \d+;/);
    if (policy === "all") {
      const now = await answersOf(after.port);
      let same = 0;
      for (const [path, text] of answers) {
        if (path.startsWith("/runs?") || path === "/programs") continue;
        if (now.get(path) === text) same++;
        else t.fail(`${path}: ${firstDifference(text, now.get(path) ?? "")}`);
      }
      t.ok(same > 6);
      t.comment(`${same} answers of ${answers.size} compared: 0 differ`);
    }
    t.match(await restore("--acknowledge"), { code: 0, stdout: "acknowledged\n" });
    await untilHealth(t, after.port, /^healthy null$/);
    t.match(await restore("--acknowledge"), { code: 1, stdout: /nothing to acknowledge/ });
    await untilShippedWhole(after.port, 4, server);
    t.equal((await after.end()).code, 0);
    t.match(await runCommand(["plant", "verify", ...at, "--data", data]), {
      code: 0,
      stdout: /, 0 differences\nok\n$/,
    });
    t.match(await runCommand(["check", "--data", data]), { code: 0 });
    t.strictSame(readdirSync(join(data, "quarantine")), []);
  });
}

t.test("captures that came under an older name of the cell are restored", { skip: noNatsServer }, async (t) => {
  const server = await plantOf(t);
  const [lost, data] = [temporaryDirectory(t), join(temporaryDirectory(t), "restored")];
  const at = ["--plant", server.url];
  const first = await startDemo(t, {
    args: ["demo", "--runs", "2", ...at, "--cell", "cell-7", "--plant-captures", "all"],
    dataDirectory: lost,
  });
  await untilShippedWhole(first.port, 2, server);
  await first.end();
  // Under the new name the log is shipped again from its beginning, and no capture.
  const serve = (dataDirectory: string, ...more: string[]) =>
    ServiceProcess.startFor(t, { args: ["serve", ...more], dataDirectory });
  const renamed = await serve(lost, ...at, "--cell", "cell-8", "--plant-captures", "none");
  const answers = await answersOf(renamed.port);
  await untilHealth(t, renamed.port, /^healthy null$/);
  await untilShippedWhole(renamed.port, 2, server);
  await renamed.end();
  const restored = await runCommand(["plant", "restore", ...at, "--data", data, "--cell", "cell-8"]);
  t.match(restored, { code: 0, stdout: /not in the plant: captures of 0 runs, reports of 0 runs; / });
  const now = await answersOf((await serve(data)).port);
  // The runs themselves change: the demo's receiver is gone, and its deliveries fail.
  const files = [...answers].filter(([path]) => path.includes("/files"));
  for (const [path, text] of files)
    t.ok(now.get(path) === text, `${path}: ${firstDifference(text, now.get(path) ?? "")}`);
  t.ok(files.length > 6);
  t.comment(`${files.length} answers with captures of the old name: 0 differ`);
});

t.test("a stray message is not taken for the cell's store", { skip: noNatsServer }, async (t) => {
  const server = await plantOf(t);
  const data = join(temporaryDirectory(t), "restored");
  const plant = ["--plant", server.url, "--cell", "cell-7"];
  const cell = await startDemo(t, {
    args: ["demo", "--runs", "1", ...plant],
    dataDirectory: temporaryDirectory(t),
  });
  await untilShippedWhole(cell.port, 1, server);
  await cell.end();
  await server.with(async (client) => {
    const subjects = "inspection.log.cell-7.*";
    const last = (await client.lastMessage(subjects)) as StoredMessage;
    const expected = last.streamSequence;
    await client.publish("inspection.log.cell-7.test", {}, Buffer.from("x"), { subjects, expected });
  });
  const restored = await runCommand(["plant", "restore", ...plant, "--data", data]);
  t.match(restored, { code: 0, stdout: /which had records up to [1-9]\d*; / });
});
