import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { capturePath } from "../../../storage/captures/capture-path.js";
import { runWithCaptures, untilAllFormats } from "../../helpers/captures/kept-captures.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";

t.test("report writes the page that the interface answers, also while the store is served", async (t) => {
  const service = await ServiceProcess.startFor(t);
  const data = service.dataDirectory;
  const client = new ContractClient(t, service.port);
  const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
  const run = await runWithCaptures(producer, 1);
  const check = { name: "gap <b>", status: "failed", value: 1.5, nominal: 1, threshold: 0.2 };
  await producer.accept({ type: "check.add", run_id: run.id, check });
  await untilAllFormats(client, run);
  await producer.accept({ type: "run.finish", id: run.id });
  await client.until("/runs/{run_id}", ({ status }) => status === "completed", { path: { run_id: run.id } });
  const served = await client.raw("GET", `/runs/${run.id}/report.html`);
  t.equal(served.status, 200);
  const report = (to: string, id = run.id) => runCommand(["report", "--data", data, "--run", id, "--to", to]);
  const early = join(data, "early.html");
  t.match(await report(early), {
    code: 0,
    stderr: "",
    stdout: /^run \S+ \(completed\): \d+ bytes in \S+early\.html\n$/,
  });
  t.ok(readFileSync(early).equals(served.body), "the same bytes");
  await service.end();

  const late = join(data, "late.html");
  t.match(await report(late), { code: 0, stderr: "" });
  t.ok(readFileSync(late).equals(served.body));
  const printed = await runCommand(["report", "--data", data, "--run", run.id]);
  t.match(printed, { code: 0, stderr: "", stdout: /^<!doctype html>[\s\S]*gap &lt;b&gt;[\s\S]*<\/html>\n$/ });

  t.match(await report(late), {
    code: 1,
    stdout: "",
    stderr: /--to: \S+late\.html exists already; nothing is overwritten/,
  });
  const nowhere = join(data, "no.html");
  t.match(await report(nowhere, run.frameId), { code: 1, stdout: "", stderr: /--run: the store in \S+ has no run/ });
  t.match(await report(nowhere, "no-id"), { code: 1, stderr: /--run: "no-id" is not allowed/ });
  t.match(await runCommand(["report", "--data", data]), { code: 1, stdout: "", stderr: /--run is required/ });
  const inNoFolder = await report(join(data, "absent", "no.html"));
  t.match(inNoFolder, { code: 1, stdout: "", stderr: /ENOENT/ });
  t.notMatch(inNoFolder.stderr, /^\s+at /m, "no stack");
  t.notOk(existsSync(nowhere));

  const captures = join(data, "captures", capturePath(run.id, "capture"));
  writeFileSync(captures, Buffer.alloc(readFileSync(captures).length));
  const damaged = join(data, "damaged.html");
  t.match(await report(damaged), { code: 1, stderr: /do not match their CRC/ });
  t.match(readFileSync(damaged, "utf8"), "Stored captures of this run are damaged or missing.");
});
