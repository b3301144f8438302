import { join } from "node:path";
import t from "tap";
import { someFronts } from "../../helpers/http/fronts-here.js";
import { PROGRAM_ID, programPut } from "../../helpers/link/link-messages.js";
import { EventStream } from "../../helpers/live/event-stream.js";
import { RunSocketClient } from "../../helpers/live/run-socket-client.js";
import { runCommand, ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

for (const { name, environment } of someFronts(t)) {
  t.test(`a key that is removed ends what it follows, and a valid one connects again (${name})`, async (t) => {
    const file = join(temporaryDirectory(t), "keys.json");
    const addKey = async () => (await runCommand(["keys", "add", "--file", file])).stdout.trim();
    const [removed, valid] = [await addKey(), await addKey()];
    const service = await ServiceProcess.startFor(t, {
      args: ["serve", "--api-keys", file, "--live-streams", "3"],
      environment,
    });
    const producer = service.producerFor(t);
    await producer.deliver(programPut());
    const id = producer.nextRunId();
    await producer.deliver({ type: "run.create", id, program_id: PROGRAM_ID });
    const headersOf = (key: string) => ({ Authorization: `Bearer ${key}` });
    const follow = (key: string) => EventStream.open({ port: service.port, headers: headersOf(key) });
    const streams = await Promise.all([removed, valid].map(follow));
    const socket = new RunSocketClient(service.port, id, [], { headers: headersOf(removed) });
    await socket.until(({ messages }) => messages.length === 1);
    t.equal((await follow(valid)).response.statusCode, 503, "--live-streams is the limit");

    const command = ["keys", "remove", "--file", file, "--id", removed.slice(4, 16)];
    t.match(await runCommand(command), { code: 0 });
    t.match(await socket.end(), { code: 1001, reason: /an API key was removed/ });
    for (const stream of streams) await stream.ended();
    t.equal((await follow(removed)).response.statusCode, 401);
    const again = await follow(valid);
    t.teardown(() => again.close());
    await producer.deliver({ type: "run.start", id });
    await again.until(({ rows }) => rows.some((run) => run.status === "running"));
    // A key more is no reason to close anything.
    await addKey();
    await producer.deliver({ type: "run.finish", id, summary: null });
    await again.until(({ rows }) => rows.some((run) => run.status === "completed"));
  });
}
