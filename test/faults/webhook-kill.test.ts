import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../core/random.js";
import { verifyWebhook } from "../../core/verify-webhook.js";
import { ProducerClient } from "../../workers/cell-link/producer-client.js";
import { ContractClient } from "../helpers/contract-client.js";
import { startReceiver } from "../helpers/receiver.js";
import { ServiceProcess } from "../helpers/service-process.js";
import { sized } from "../helpers/test-size.js";

const SEED = Number(process.env.TEST_SEED ?? 11);
const KILLS = sized(4, 100);
const WEBHOOKS = 3;
const PROGRAM_ID = "019b76da-a800-7000-8000-000000000001";
const SECRET = "a secret";

interface Entry {
  count: number;
  body: string;
  eventName: string;
  runId: string;
}

t.test(
  "kill -9 anywhere between an end and its recorded delivery: every event arrives, and only as itself",
  async (t) => {
    t.comment(`TEST_SEED=${SEED}`);
    const random = createRandom(SEED);
    const directory = mkdtempSync(join(tmpdir(), "webhook-kill-"));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    let service = await ServiceProcess.start({ args: ["serve"], dataDirectory: directory });
    t.teardown(() => service.dispose());

    /** By receiver and event id, and what went wrong. */
    const ledger = new Map<string, Entry>();
    const faults: string[] = [];
    let arrivals = 0;
    let onArrival = (): void => {};
    const reads: Promise<void>[] = [];
    /** What a receiver does on an event: it reads the run, which must be as the event says. */
    const readRun = async (runId: string, status: string): Promise<void> => {
      try {
        const response = await fetch(`http://127.0.0.1:${service.port}/runs/${runId}`);
        const run = (await response.json()) as { status: string };
        const isLater = status === "running" && ["finalizing", "completed", "failed"].includes(run.status);
        if (run.status !== status && !isLater)
          faults.push(`run ${runId} reads ${run.status}, its event says ${status}`);
      } catch {
        // The service was killed meanwhile.
      }
    };
    const receiver = await startReceiver(({ path, headers, body }, response) => {
      const event = JSON.parse(body.toString());
      const key = `${path} ${event.event_id}`;
      const known = ledger.get(key);
      if (known !== undefined && known.body !== body.toString()) faults.push(`${key} came with other bytes`);
      if (headers["webhook-id"] !== event.event_id) faults.push(`${key} under another id`);
      verifyWebhook({ secret: SECRET, headers, body });
      const { event_name: eventName, data } = event;
      ledger.set(key, { count: (known?.count ?? 0) + 1, body: body.toString(), eventName, runId: data.run_id });
      reads.push(readRun(data.run_id, data.status));
      // Some answers come late, so that kills fall between the receiver's ledger and the service's record.
      setTimeout(() => response.writeHead(204).end(), random.integer(0, 40));
      arrivals++;
      onArrival();
    });
    t.teardown(() => receiver.close());
    const client = new ContractClient(t, service.port);
    for (let nth = 0; nth < WEBHOOKS; nth++) {
      await client.post("/webhooks", {
        body: {
          name: `w${nth}`,
          url: `${receiver.url}/${nth}`,
          secret: SECRET,
          delivery_timeout_seconds: 9,
          subscribed_events: ["ProgramStarted", "ProgramCompleted", "ProgramFailed"],
        },
      });
    }
    const producer = new ProducerClient({
      ...{ address: { path: service.cellSocketPath }, producer: "cell", reconnectFirstMs: 2, reconnectLongestMs: 20 },
    });
    t.teardown(() => producer.destroy());
    const program = { id: PROGRAM_ID, name: "Disc", status: "active", steps: [{ type: "wait" }] };
    await producer.deliver({ type: "program.put", program });

    const ended = new Map<string, string>();
    let isOver = false;
    const working = (async () => {
      while (!isOver) {
        const id = producer.nextRunId();
        await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
        await producer.deliver({ type: "run.start", id });
        const fails = random.chance(0.3);
        await producer.deliver(
          fails ? { type: "run.fail", id, error_message: "collision" } : { type: "run.finish", id },
        );
        ended.set(id, fails ? "ProgramFailed" : "ProgramCompleted");
      }
    })();
    for (let kill = 0; kill < KILLS; kill++) {
      const target = arrivals + random.integer(1, 40);
      await new Promise<void>((resolve) => {
        onArrival = () => {
          if (arrivals >= target) resolve();
        };
      });
      await service.end("SIGKILL");
      service = await ServiceProcess.start({ args: ["serve"], dataDirectory: directory });
    }
    isOver = true;
    await working;
    await producer.close();

    // Nothing pending is left, and every end has its event at every receiver.
    const last = new ContractClient(t, service.port);
    const newest = [...ended.keys()].at(-1);
    const hasEnded = ({ status }: { status: string }): boolean => status === "completed" || status === "failed";
    if (newest !== undefined) await last.until("/runs/{run_id}", hasEnded, { path: { run_id: newest } });
    const hooks = await last.get("/webhooks");
    let deliveries = 0;
    for (const { id } of hooks) {
      for (let query: { limit: number; before?: string } = { limit: 200 }; ; ) {
        const page = await last.until(
          "/webhooks/{webhook_id}/deliveries",
          (listed) => listed.every(({ status }) => status !== "pending"),
          { path: { webhook_id: id }, query },
        );
        const oldest = page.at(-1);
        if (oldest === undefined) break;
        query = { limit: 200, before: oldest.created_at };
        deliveries += page.length;
        t.same(
          page.filter(({ status }) => status !== "delivered"),
          [],
        );
      }
    }
    t.equal(deliveries, ledger.size, "what is listed is what arrived");
    await Promise.all(reads);
    const found = new Map<string, number>();
    for (const [key, { eventName, runId }] of ledger) {
      const at = `${key.split(" ")[0]} ${eventName} ${runId}`;
      found.set(at, (found.get(at) ?? 0) + 1);
    }
    let missing = 0;
    for (const [runId, eventName] of ended) {
      for (let nth = 0; nth < WEBHOOKS; nth++) {
        for (const name of ["ProgramStarted", eventName]) if (found.get(`/${nth} ${name} ${runId}`) !== 1) missing++;
      }
    }
    t.same(faults, []);
    t.equal(missing, 0, "each event arrived under one id");
    t.same(
      [...found.values()].filter((count) => count !== 1),
      [],
      "no event has two ids",
    );
    const repeats = [...ledger.values()].reduce((sum, { count }) => sum + count - 1, 0);
    t.comment(
      `${KILLS} kills, ${ended.size} runs, ${ledger.size} deliveries: ${missing} missing, ${repeats} repeated under their own ids`,
    );
    t.equal((await service.end()).code, 0);
    const checked = execFileSync(process.execPath, ["dist/http/main.js", "check", "--data", directory]).toString();
    t.match(checked, /^ok$/m);
  },
);
