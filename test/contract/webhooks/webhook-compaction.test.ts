import t from "tap";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { RawProducer } from "../../helpers/link/raw-producer.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { isFullSize, sized } from "../../helpers/test-size.js";
import { startReceiver } from "../../helpers/webhooks/receiver.js";

const RUNS = sized(10, 400);
const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const SCRIPT = new URL("../../helpers/compaction/compacting-service.js", import.meta.url).pathname;

t.test(
  "deliveries are the same across compaction, a snapshot and starts, and can be retried behind them",
  async (t) => {
    let status = 503;
    const receiver = await startReceiver(({ path }, response) =>
      response.writeHead(path === "/failing" ? status : 204).end(`${path} ${"answer ".repeat(50)}`),
    );
    t.teardown(() => receiver.close());
    let service = await ServiceProcess.start({ script: SCRIPT });
    const owner = service;
    t.teardown(async () => {
      await service.dispose();
      await owner.dispose();
    });
    const client = () => new ContractClient(t, service.port);
    const ids: string[] = [];
    for (const path of ["taking", "failing", "deleted"]) {
      const hook = await client().post("/webhooks", {
        body: {
          name: path,
          url: `${receiver.url}/${path}`,
          subscribed_events: ["ProgramStarted", "ProgramCompleted"],
          max_retries: 1,
          retry_backoff_seconds: 0,
          on_failure_mode: "WARN",
        },
      });
      ids.push(hook.id);
    }
    const producer = await RawProducer.connect({ path: service.cellSocketPath }, "controller");
    const program = { id: PROGRAM_ID, name: "Disc", status: "active", steps: [{ type: "wait" }] };
    await producer.accept({ type: "program.put", program });
    const runs: string[] = [];
    for (let n = 0; n < RUNS; n++) {
      const id = `019bb${String(n).padStart(3, "0")}-0000-7000-8000-000000000001`;
      await producer.accept({ type: "run.create", id, program_id: PROGRAM_ID });
      await producer.accept({ type: "run.start", id });
      for (let k = 0; k < 6; k++) {
        await producer.accept({ type: "event.add", run_id: id, event_type: "e", data: { padding: "x".repeat(300) } });
      }
      await producer.accept({ type: "run.finish", id });
      runs.push(id);
      if (n === RUNS / 2) await client().delete("/webhooks/{webhook_id}", { path: { webhook_id: ids[2] as string } });
    }
    producer.socket.destroy();
    // The last one's end is emitted when its finalizing is over, in this life or in the next.
    await client().until("/runs", ({ total }) => total === RUNS, { query: { status: "completed", limit: 1 } });

    /** Every delivery with its attempts, and every run. */
    const answers = async (): Promise<Map<string, unknown>> => {
      const all = new Map<string, unknown>();
      for (const id of ids) {
        const page = await client().until(
          "/webhooks/{webhook_id}/deliveries",
          (deliveries) => deliveries.every(({ status }) => status !== "pending"),
          { path: { webhook_id: id }, query: { limit: 200 } },
        );
        all.set(id, page);
        for (const { id } of page) {
          const detail = await client().answer("get", "/webhook-deliveries/{delivery_id}", {
            path: { delivery_id: id },
          });
          all.set(id, detail.text);
        }
      }
      for (const id of runs)
        all.set(id, (await client().answer("get", "/runs/{run_id}", { path: { run_id: id } })).text);
      return all;
    };
    const first = await answers();
    const failed = (first.get(ids[1] as string) as { id: string; status: string; attempts: number }[]).filter(
      (one) => one.status === "failed" && one.attempts === 2,
    );
    t.equal(failed.length, Math.min(200, 2 * RUNS));
    const { stderr } = await service.end();
    const compactions = stderr.split("\n").filter((line) => line.includes("compacted a segment of the log")).length;
    t.ok(compactions >= 1, `${compactions} compactions`);

    for (const script of isFullSize ? [SCRIPT, undefined] : [SCRIPT]) {
      service = await ServiceProcess.start({
        dataDirectory: service.dataDirectory,
        ...(script !== undefined && { script }),
      });
      const again = await answers();
      t.equal(again.size, first.size);
      for (const [key, answer] of first)
        if (JSON.stringify(again.get(key)) !== JSON.stringify(answer)) t.fail(`${key} is another`);
      status = 204;
      const { id } = failed.pop() as { id: string };
      const retried = await client().post("/webhook-deliveries/{delivery_id}/retry", { path: { delivery_id: id } });
      t.match(retried, {
        status: "delivered",
        attempts: 3,
        attempt_history: [3, 2, 1].map((nth) => ({ attempt_number: nth })),
      });
      for (const [key, answer] of await answers()) first.set(key, answer);
      t.match(await service.end(), { code: 0 });
    }
    t.comment(`${compactions} compactions, ${first.size - RUNS - ids.length} deliveries: the same behind each start`);
    const check = await runCommand(["check", "--data", service.dataDirectory]);
    t.match(check, { code: 0, stdout: /, 0 damages\nok/ });
  },
);
