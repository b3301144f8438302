import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import t, { type Test } from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RECEIVER_CERTIFICATE, RECEIVER_PRIVATE_KEY, TEST_AUTHORITY } from "../../helpers/http/test-authority.js";
import { listOf } from "../../helpers/list-of.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { isFullSize } from "../../helpers/test-size.js";
import { PROGRAM_ID, producerOf } from "../../helpers/webhooks/announcing-cell.js";
import { receiverFor } from "../../helpers/webhooks/receiver.js";

const SECRET = "a secret";

async function start(t: Test, args: readonly string[] = [], environment: Record<string, string> = {}) {
  const service = await ServiceProcess.startFor(t, { args: ["serve", ...args], environment });
  return { service, client: new ContractClient(t, service.port) };
}

/** Two tests use it. */
const plain = await start(t);

t.test(
  "a receiver with a certificate of the factory's own authority: with --webhook-ca only, and only under its name",
  async (t) => {
    let received = 0;
    const server = createServer({ cert: RECEIVER_CERTIFICATE, key: RECEIVER_PRIVATE_KEY }, (request, response) => {
      received++;
      request.resume().on("end", () => response.writeHead(204).end());
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.teardown(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const folder = t.testdir();
    const file = join(folder, "ca.pem");
    writeFileSync(file, TEST_AUTHORITY);
    const test = async (client: ContractClient, url: string) => {
      const { id } = await client.post("/webhooks", {
        // Leaves time for a first look-up and handshake on a loaded machine.
        body: { name: "mes", url, subscribed_events: ["ProgramFailed"], secret: SECRET, delivery_timeout_seconds: 9 },
      });
      return client.post("/webhooks/{webhook_id}/test", { path: { webhook_id: id } });
    };
    t.match(await test(plain.client, `https://localhost:${port}/`), { delivered: false, error: /certificate/ });
    t.equal(received, 0, "nothing was sent");
    // Unusable certificates in Node's own variable do no harm.
    const broken = join(folder, "broken.pem");
    writeFileSync(broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for (const unusable of isFullSize ? [join(folder, "absent.pem"), broken] : [broken]) {
      const trusting = await start(t, ["--webhook-ca", file], { NODE_EXTRA_CA_CERTS: unusable });
      const before = received;
      t.match(await test(trusting.client, `https://localhost:${port}/`), { delivered: true, status_code: 204 });
      t.match(await test(trusting.client, `https://127.0.0.1:${port}/`), { delivered: true, status_code: 204 });
      t.match(await test(trusting.client, `https://127.0.0.2:${port}/`), { delivered: false, status_code: null });
      t.match(await test(trusting.client, `http://127.0.0.1:${port}/`), { delivered: false });
      t.equal(received, before + 2);
    }

    const another = join(folder, "another.pem");
    writeFileSync(another, rootCertificates[0] as string);
    const added = await start(t, ["--webhook-ca", another], { NODE_EXTRA_CA_CERTS: file });
    const byNode = await test(added.client, `https://localhost:${port}/`);
    t.match(byNode, { delivered: true }, "beside what Node trusts by itself");

    const data = join(folder, "data");
    writeFileSync(file, "no certificate");
    const refused = await runCommand(["serve", "--data", data, "--port", "0", "--webhook-ca", file]);
    t.match(refused, { code: 1, stderr: /--webhook-ca: .*ca\.pem has no certificate in PEM/ });
    const absent = await runCommand(["serve", "--data", data, "--port", "0", "--webhook-ca", join(folder, "absent")]);
    t.match(absent, { code: 1, stderr: /--webhook-ca: .*absent does not exist/ });
  },
);

t.test(
  "a delivery that failed leaves a completed run's outcome as it was: WARN notes it, IGNORE does not",
  async (t) => {
    const { service, client } = plain;
    // Each delivery fails only after the outcome before it has been read.
    let refuse = (): void => {};
    const receiver = await receiverFor(t, (_, response) => {
      refuse = () => response.writeHead(500).end("no");
    });
    const producer = await producerOf(t, service);
    let events = 0;
    for (const mode of ["IGNORE", "WARN"] as const) {
      const { id: webhookId } = await client.post("/webhooks", {
        body: {
          name: mode,
          url: receiver.url,
          subscribed_events: ["ProgramCompleted"],
          max_retries: 0,
          delivery_timeout_seconds: 9,
          on_failure_mode: mode,
        },
      });
      const runId = producer.nextRunId();
      const path = { run_id: runId };
      await producer.deliver({ type: "run.create", id: runId, program_id: PROGRAM_ID, serial_number: mode });
      await producer.deliver({ type: "run.start", id: runId });
      await producer.deliver({ type: "event.add", run_id: runId, event_type: "note", data: {} });
      await producer.deliver({ type: "check.add", run_id: runId, check: { name: "flatness", status: "passed" } });
      await producer.deliver({ type: "run.finish", id: runId, summary: "flat", results: { outcome: "fine" } });
      await receiver.received(++events);
      const outcome = async () => {
        const { webhook_deliveries, webhook_delivery, event_log, ...run } = await client.get("/runs/{run_id}", {
          path,
        });
        const report = await client.get("/runs/{run_id}/quality-report", { path });
        const list = await client.get("/runs", { query: { serial_number: mode } });
        return { run, report, list, defects: await client.get("/runs/{run_id}/defects", { path }) };
      };
      const before = await outcome();
      t.match(before, {
        run: { status: "completed", error_message: null, results: { outcome: "fine" } },
        report: { quality_report: { status: "passed", summary: "flat" } },
        list: { total: 1, runs: listOf({ id: runId, status: "completed", error_message: null }) },
      });
      refuse();
      const failed = await client.until("/runs/{run_id}", (json) => json.webhook_delivery?.pending === 0, { path });
      t.match(failed.webhook_deliveries, listOf({ webhook_id: webhookId, on_failure_mode: mode, status: "failed" }));
      t.same(await outcome(), before, `${mode}: the outcome and updated_at`);
      const noted = failed.event_log?.filter(({ event_type }) => event_type === "webhook_delivery_failed") ?? [];
      t.equal((failed.event_log?.length ?? 0) - noted.length, 1, "what the cell noted");
      if (mode === "IGNORE") t.same(noted, [], "IGNORE notes nothing");
      else {
        const data = { webhook_id: webhookId, event_name: "ProgramCompleted", status: "failed", last_status_code: 500 };
        t.match(noted, listOf({ data }), "WARN notes it");
      }
      await client.delete("/webhooks/{webhook_id}", { path: { webhook_id: webhookId } });
    }
    t.equal(receiver.requests.length, 2, "each failed once");
    t.match(await service.end(), { code: 0 });
  },
);
