import fs, { existsSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import t from "tap";
import { LIMITS } from "../../../core/limits.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { LOOK_INTERVAL_MS } from "../../../workers/recorder/upkeep/store-watch.js";
import { RawProducer, refusedHello } from "../../helpers/link/raw-producer.js";
import { listOf } from "../../helpers/list-of.js";
import { RecorderHarness, temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

t.test("TCP needs the token", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t), {
    cellListen: { host: "127.0.0.1", port: 0 },
    cellToken: "s3cret",
  });
  const address = recorder.ready.cellListen as { host: string; port: number };
  t.ok(address.port > 0);
  for (const token of [undefined, "", "s3cre", "s3cret ", "S3CRET"]) {
    const frames = await refusedHello(address, {
      protocol: 1,
      producer: "p",
      ...(token === undefined ? {} : { token }),
    });
    t.match(frames, listOf({ kind: "refuse", sequence: 0, body: { code: "unauthorized" } }), `token ${token}`);
    t.notMatch(JSON.stringify(frames), /s3cret/);
  }
  t.match(
    await refusedHello(address, { protocol: 9 }),
    listOf({ body: { code: "unauthorized" } }),
    "who has none learns nothing",
  );
  const raw = await RawProducer.connect(address, "p", { token: "s3cret" });
  await raw.accept({ type: "component.put", key: "a", status: "healthy" });
  await raw.close();
  t.ok(await recorder.connect("without-token"), "the socket needs none");
});

t.test("a TCP listener without a token does not start", async (t) => {
  const directory = temporaryDirectory(t);
  await t.rejects(RecorderHarness.start(t, directory, { cellListen: { host: "127.0.0.1", port: 0 } }), /cellToken/);
  t.ok(await RecorderHarness.start(t, directory), "and leaves the directory free");
});

t.test("the socket is for the service's own account, and goes with it", async (t) => {
  const directory = temporaryDirectory(t);
  const recorder = await RecorderHarness.start(t, directory);
  t.equal(statSync(join(directory, "cell.sock")).mode & 0o777, 0o600);
  await recorder.stop();
  t.notOk(existsSync(join(directory, "cell.sock")));
});

t.test("a socket's path: stale ones are replaced, others respected, long ones refused", async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, "s.sock");
  const dead = createServer().listen(path);
  await new Promise((resolve) => dead.once("listening", resolve));
  const data = (name: string) => join(directory, name);
  await t.rejects(RecorderHarness.start(t, data("a"), { cellSocketPath: path }), {
    code: "cell_socket_unusable",
    message: /another process listens there/,
  });
  // A dead service's socket file: closed without being unlinked.
  renameSync(path, `${path}.kept`);
  await new Promise((resolve) => dead.close(resolve));
  renameSync(`${path}.kept`, path);
  const recorder = await RecorderHarness.start(t, data("b"), { cellSocketPath: path });
  t.equal(recorder.ready.cellSocketPath, path);
  t.ok(await recorder.connect("p"));
  const file = join(directory, "file");
  writeFileSync(file, "kept");
  await t.rejects(RecorderHarness.start(t, data("c"), { cellSocketPath: file }), { message: /not a socket/ });
  t.ok(existsSync(file));
  const long = join(directory, "x".repeat(108 - directory.length));
  await t.rejects(RecorderHarness.start(t, data("d"), { cellSocketPath: long }), {
    message: /109 bytes.*107.*--cell-socket/,
  });
});

t.test("a socket that listens again, and then fails, is not taken for another process's", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const { path } = recorder.address;
  const look = async (status: string): Promise<void> => {
    while (recorder.row("recorder").status !== status) {
      recorder.timers.advance(LOOK_INTERVAL_MS);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const { statusOf } = nodeFileSystem;
  const { chmodSync } = fs;
  t.teardown(() => {
    Object.assign(nodeFileSystem, { statusOf });
    Object.assign(fs, { chmodSync });
    syncBuiltinESMExports();
  });
  for (const call of ["stat", "chmod"]) {
    rmSync(path);
    const isNew = () => existsSync(path);
    if (call === "stat") {
      nodeFileSystem.statusOf = async (of) => {
        if (of === path && isNew()) throw new FileSystemError("ENOMEM", "stat", path);
        return statusOf(of);
      };
    } else {
      fs.chmodSync = () => {
        throw Object.assign(new Error("ENOMEM"), { code: "ENOMEM" });
      };
      syncBuiltinESMExports();
    }
    await look("degraded");
    t.match(recorder.row("recorder").detail, /producers cannot connect: .*cell\.sock: .*ENOMEM/, call);
    t.equal(isNew(), false, "nobody connects to a socket that is not watched");
    Object.assign(nodeFileSystem, { statusOf });
    Object.assign(fs, { chmodSync });
    syncBuiltinESMExports();
    await look("healthy");
    await (await recorder.connect(call)).accept({ type: "component.put", key: call, status: "healthy" });
    t.equal(statSync(path).mode & 0o777, 0o600);
  }
});

t.test("more connections than the limit are refused, and end frees a place", async (t) => {
  const recorder = await RecorderHarness.start(t, temporaryDirectory(t));
  const producers: RawProducer[] = [];
  const { producers: most } = LIMITS.linkConnections.socket;
  for (let i = 0; i < most; i++) producers.push(await recorder.connect(`p${i}`));
  t.match(
    await refusedHello(recorder.address, { protocol: 1, producer: "extra" }),
    listOf({ kind: "refuse", sequence: 0, body: { code: "unavailable" } }),
  );
  producers.push(await recorder.connect("p1"));
  t.strictSame(await producers[1]?.rest(), [], "one that takes over needs no further place");
  await producers[0]?.close();
  await recorder.until(() => recorder.lines.some((line) => line.message === "producer disconnected"));
  t.ok(await recorder.connect("p-new"));
});
