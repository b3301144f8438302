import { execFileSync } from "node:child_process";
import type { ServerResponse } from "node:http";
import t, { type Test } from "tap";
import { createRandom, type Random } from "../../../core/random.js";
import { verifyWebhook } from "../../../core/webhook/verify-webhook.js";
import { ContractClient } from "../../helpers/http/contract-client.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { sized } from "../../helpers/test-size.js";
import { PROGRAM_ID, producerOf } from "../../helpers/webhooks/announcing-cell.js";
import { deliveryPages } from "../../helpers/webhooks/delivery-pages.js";
import { type ReceivedRequest, receiverFor } from "../../helpers/webhooks/receiver.js";

const SEED = Number(process.env.TEST_SEED ?? 11);
const KILLS = sized(2, 100);
const WEBHOOKS = 3;
const SECRET = "a secret";

/** How a read fails when the service is killed before it takes the read, or in the middle of it. */
const KILLED_CODES = new Set(["ECONNREFUSED", "ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** From one start of the service to the next. */
interface Life {
  port: number;
  isKilled: boolean;
  answered: number;
  unanswered: number;
  /** The next one has begun. */
  over: Promise<void>;
  end(): void;
}

interface Entry {
  count: number;
  body: string;
  eventName: string;
  runId: string;
}

/** What the receivers do: each reads the run that an event is of, and answers the event. */
class Readers {
  /** By receiver and event id. */
  readonly received = new Map<string, Entry>();
  readonly faults: string[] = [];
  readonly lives: Life[] = [];
  readonly reads: Promise<void>[] = [];
  readonly #random: Random;
  arrivals = 0;
  onProgress = (): void => {};

  constructor(random: Random) {
    this.#random = random;
  }

  get life(): Life {
    return this.lives.at(-1) as Life;
  }

  /** The service is there, again. */
  begin({ port }: ServiceProcess): void {
    let end = (): void => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    const killed = this.lives.at(-1);
    this.lives.push({ port, isKilled: false, answered: 0, unanswered: 0, over, end });
    killed?.end();
  }

  take({ path, headers, body }: ReceivedRequest, response: ServerResponse): void {
    const event = JSON.parse(body.toString());
    const key = `${path} ${event.event_id}`;
    const known = this.received.get(key);
    if (known !== undefined && known.body !== body.toString()) this.faults.push(`${key} came with other bytes`);
    if (headers["webhook-id"] !== event.event_id) this.faults.push(`${key} under another id`);
    verifyWebhook({ secret: SECRET, headers, body });
    const { event_name: eventName, data } = event;
    this.received.set(key, { count: (known?.count ?? 0) + 1, body: body.toString(), eventName, runId: data.run_id });
    this.reads.push(this.#readRun(data.run_id, data.status));
    // Some answers come late, so that kills fall between the arrival at the receiver and the service's record.
    setTimeout(() => response.writeHead(204).end(), this.#random.integer(0, 40));
    this.arrivals++;
    this.onProgress();
  }

  /** The run must be as its event says; after a kill too, when the service is there again. */
  async #readRun(runId: string, status: string): Promise<void> {
    const inLife = this.life;
    try {
      const response = await fetch(`http://127.0.0.1:${inLife.port}/runs/${runId}`);
      const run = (await response.json()) as { status: string };
      const isLater = status === "running" && ["finalizing", "completed", "failed"].includes(run.status);
      if (response.status !== 200 || (run.status !== status && !isLater))
        this.faults.push(`run ${runId} reads ${response.status} ${run.status}, its event says ${status}`);
      inLife.answered++;
      this.onProgress();
    } catch (error) {
      const { message, cause } = error as { message: string; cause?: { code?: string } };
      if (!inLife.isKilled || !KILLED_CODES.has(String(cause?.code)))
        this.faults.push(`run ${runId} cannot be read while the service lives: ${message} (${cause?.code})`);
      inLife.unanswered++;
      this.onProgress();
      if (!inLife.isKilled) return;
      await inLife.over;
      await this.#readRun(runId, status);
    }
  }

  /** Resolves when so many more events have come. */
  more(count: number): Promise<void> {
    const target = this.arrivals + count;
    return new Promise((resolve) => {
      this.onProgress = () => {
        // At least one read must have ended, so that there is something to judge.
        if (this.arrivals >= target && this.life.answered + this.life.unanswered > 0) resolve();
      };
    });
  }
}

t.test(
  "kill -9 anywhere between an end and its recorded delivery: every event arrives, and only as itself",
  async (t) => {
    t.comment(`TEST_SEED=${SEED}`);
    const random = createRandom(SEED);
    const directory = temporaryDirectory(t);
    let service = await ServiceProcess.start({ args: ["serve"], dataDirectory: directory });
    t.teardown(() => service.dispose());
    const readers = new Readers(random);
    readers.begin(service);
    const receiver = await receiverFor(t, (request, response) => readers.take(request, response));
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
    const producer = await producerOf(t, service, { reconnectFirstMs: 2, reconnectLongestMs: 20 });

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
      await readers.more(random.integer(1, 40));
      readers.life.isKilled = true;
      await service.end("SIGKILL");
      service = await ServiceProcess.start({ args: ["serve"], dataDirectory: directory });
      readers.begin(service);
    }
    isOver = true;
    await working;
    await producer.close();
    await areDelivered(t, new ContractClient(t, service.port), readers, ended);
    await judge(t, readers, ended);
    t.equal((await service.end()).code, 0);
    const checked = execFileSync(process.execPath, ["dist/http/main.js", "check", "--data", directory]).toString();
    t.match(checked, /^ok$/m);
  },
);

type Ended = ReadonlyMap<string, string>;

/** Nothing pending is left. @param ended by run the event of its end */
async function areDelivered(t: Test, client: ContractClient, readers: Readers, ended: Ended): Promise<void> {
  const newest = [...ended.keys()].at(-1);
  const hasEnded = ({ status }: { status: string }): boolean => status === "completed" || status === "failed";
  if (newest !== undefined) await client.until("/runs/{run_id}", hasEnded, { path: { run_id: newest } });
  const hooks = await client.get("/webhooks");
  let deliveries = 0;
  for (const { id } of hooks) {
    const isSettled = (page: readonly { status: string }[]) => page.every(({ status }) => status !== "pending");
    for await (const page of deliveryPages(client, id, 200, isSettled)) {
      deliveries += page.length;
      t.same(
        page.filter(({ status }) => status !== "delivered"),
        [],
      );
    }
  }
  t.equal(deliveries, readers.received.size, "what is listed is what arrived");
}

/** Every end has its event at every receiver, and the run was as the event said. */
async function judge(t: Test, { received, faults, lives, reads, arrivals }: Readers, ended: Ended): Promise<void> {
  await Promise.all(reads);
  const found = new Map<string, number>();
  for (const [key, { eventName, runId }] of received) {
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
  t.equal(lives.length, KILLS + 1);
  t.notOk(
    lives.some(({ answered }) => answered === 0),
    "in every life runs were read on their events",
  );
  const sum = (of: (one: Life) => number): number => lives.reduce((total, one) => total + of(one), 0);
  const [answered, unanswered] = [sum((one) => one.answered), sum((one) => one.unanswered)];
  t.equal(answered, arrivals, "on every event that came");
  t.equal(missing, 0, "each event arrived under one id");
  t.same(
    [...found.values()].filter((count) => count !== 1),
    [],
    "no event has two ids",
  );
  const repeats = [...received.values()].reduce((sum, { count }) => sum + count - 1, 0);
  t.comment(
    `${KILLS} kills, ${ended.size} runs, ${received.size} deliveries: ${missing} missing, ${repeats} repeated under their own ids; ` +
      `${answered} runs read on their events, at least ${Math.min(...lives.map((one) => one.answered))} in each life, ${unanswered} again after a kill`,
  );
}
