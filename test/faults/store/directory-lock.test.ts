import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { connect, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { openDataDirectory } from "../../../storage/disk/data-directory.js";
import { lockDirectory } from "../../../storage/disk/directory-lock.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { checkStore } from "../../../storage/repair/check-store.js";
import { startHelper } from "../../helpers/process/child-lines.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

t.test("a second process is refused and told who holds the directory", async (t) => {
  const path = temporaryDirectory(t);
  const holder = startHelper("disk/lock-holder-process", [path]);
  t.equal(await holder.line(0), "held");
  const refusal = { code: "directory_locked", data: { params: { process_id: holder.processId } } };
  await t.rejects(openDataDirectory({ path, creates: true }), refusal);

  // Another one that was refused and killed changes nothing.
  const other = startHelper("disk/lock-holder-process", [path]);
  t.match(JSON.parse(await other.line(0)), { code: "directory_locked", params: { process_id: holder.processId } });
  await other.end("SIGKILL");
  await t.rejects(openDataDirectory({ path, creates: true }), refusal);

  // A holder that is stopped does not answer, and holds.
  holder.signal("SIGSTOP");
  await t.rejects(openDataDirectory({ path, creates: true }), refusal);
  holder.signal("SIGCONT");

  await holder.end("SIGKILL");
  const own = await openDataDirectory({ path, creates: true });
  t.same(readdirSync(`${path}/lock`).length, 1, "the dead one's entry is gone");
  await own.release();
  t.same(readdirSync(`${path}/lock`), []);
});

t.test("of many that start at once exactly one gets the directory", async (t) => {
  const path = temporaryDirectory(t);
  let held = 0;
  for (let round = 0; round < 10; round++) {
    const attempts = Array.from({ length: 8 }, () => openDataDirectory({ path, creates: true }));
    const settled = await Promise.allSettled(attempts);
    const winners = settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    for (const result of settled) {
      if (result.status === "rejected" && result.reason.code !== "directory_locked") throw result.reason;
    }
    held += winners.length;
    t.equal(winners.length, 1, `round ${round}`);
    for (const winner of winners) await winner.release();
  }
  t.comment(`10 races of 8: ${held} winners`);
});

t.test("whose lock was removed takes it again, unless another process has the directory by then", async (t) => {
  const path = temporaryDirectory(t);
  const own = await openDataDirectory({ path, creates: true });
  t.equal(await own.restoreLock(), "intact");
  for (const removed of [`${path}/lock/${readdirSync(`${path}/lock`)[0]}`, `${path}/lock`]) {
    rmSync(removed, { recursive: true });
    t.equal(await own.restoreLock(), "restored");
    await t.rejects(openDataDirectory({ path, creates: true }), {
      ...{ code: "directory_locked", data: { params: { process_id: process.pid } } },
    });
    t.equal(await own.restoreLock(), "intact");
  }
  rmSync(`${path}/lock`, { recursive: true });
  const holder = startHelper("disk/lock-holder-process", [path]);
  t.equal(await holder.line(0), "held");
  t.equal(await own.restoreLock(), "lost");
  await own.release();
  await t.rejects(openDataDirectory({ path, creates: true }), { code: "directory_locked" });
  await holder.end("SIGKILL");
});

t.test("no failure while a removed lock is made again leaves an entry that the next attempt meets", async (t) => {
  const path = temporaryDirectory(t);
  const failing = { calls: new Set<string>(), failed: 0 };
  const fail = (call: string): void => {
    if (!failing.calls.has(call)) return;
    failing.failed++;
    throw new FileSystemError("EMFILE", call, "lock");
  };
  let stats = 0;
  const fileSystem: typeof nodeFileSystem = {
    ...nodeFileSystem,
    openDirectory: async (folder) => {
      fail("open");
      return nodeFileSystem.openDirectory(folder);
    },
    rename: async (from, to) => {
      fail("rename");
      await nodeFileSystem.rename(from, to);
    },
    readDirectory: async (folder) => {
      fail("readdir");
      return nodeFileSystem.readDirectory(folder);
    },
    unlink: async (file) => {
      fail("unlink");
      await nodeFileSystem.unlink(file);
    },
    // The third `stat` is that of the new entry.
    statusOf: async (file) => {
      if (++stats === 3) fail("stat");
      return nodeFileSystem.statusOf(file);
    },
  };
  const lock = await lockDirectory(fileSystem, `${path}/lock`);
  for (const calls of [["open"], ["rename"], ["readdir"], ["stat"], ["readdir", "unlink"], ["stat", "unlink"]]) {
    rmSync(`${path}/lock`, { recursive: true });
    for (let nth = 0; nth < 3; nth++) {
      Object.assign(failing, { calls: new Set(calls), failed: 0 });
      stats = 0;
      await t.rejects(lock.restore(), { code: "EMFILE" }, calls.join());
      t.equal(failing.failed, calls.length);
    }
    failing.calls.clear();
    t.equal(await lock.restore(), "restored", calls.join());
    t.equal(await lock.restore(), "intact");
    t.equal(readdirSync(`${path}/lock`).length, 1);
    await t.rejects(lockDirectory(nodeFileSystem, `${path}/lock`), { code: "directory_locked" });
  }
  // What it had before goes with it, even if the old entry cannot be removed.
  rmSync(`${path}/lock`, { recursive: true });
  failing.calls.add("unlink");
  await t.rejects(lock.restore(), { code: "EMFILE" });
  failing.calls.clear();
  t.equal(await lock.restore(), "intact");
  await lock.release();
  t.same(readdirSync(`${path}/lock`), []);
});

t.test("whom nobody could ask does not count as alive", async (t) => {
  const path = temporaryDirectory(t);
  const holder = startHelper("disk/lock-holder-process", [path]);
  t.equal(await holder.line(0), "held");
  await holder.end("SIGKILL");
  const { connect: original } = Socket.prototype;
  t.teardown(() => Object.assign(Socket.prototype, { connect: original }));
  for (const code of ["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"]) {
    Object.assign(Socket.prototype, {
      connect(this: Socket) {
        setImmediate(() => this.destroy(Object.assign(new Error(code), { code })));
        return this;
      },
    });
    await t.rejects(openDataDirectory({ path, creates: true }), { code, operation: "connect" });
    t.equal(readdirSync(`${path}/lock`).length, 1, "only the dead one's");
  }
  Object.assign(Socket.prototype, { connect: original });
  await (await openDataDirectory({ path, creates: true })).release();
});

t.test("a directory that was moved away gets no lock at its old place", async (t) => {
  const path = `${temporaryDirectory(t)}/data`;
  const own = await openDataDirectory({ path, creates: true });
  renameSync(path, `${path}-moved`);
  t.equal(await own.restoreLock(), "lost");
  t.notOk(existsSync(path));
  await own.release();
});

t.test("who asks and never hangs up keeps nobody from letting go", async (t) => {
  const path = temporaryDirectory(t);
  const own = await openDataDirectory({ path, creates: true });
  const entry = `${path}/lock/${readdirSync(`${path}/lock`)[0]}`;
  const asking = connect({ path: entry, allowHalfOpen: true });
  t.teardown(() => asking.destroy());
  asking.resume();
  await once(asking, "end");
  const released = own.release().then(() => "released");
  // The delay runs to its end only if the release hangs.
  t.equal(await Promise.race([released, delay(10_000, "hangs", { ref: false })]), "released");
  await (await openDataDirectory({ path, creates: true })).release();
});

t.test("a holder that is killed while it is asked has not held on", async (t) => {
  const path = temporaryDirectory(t);
  const holder = startHelper("disk/lock-holder-process", [path]);
  t.equal(await holder.line(0), "held");
  // It does not answer, and whoever asks waits a second for it.
  holder.signal("SIGSTOP");
  let isAsked = false;
  const fileSystem: typeof nodeFileSystem = {
    ...nodeFileSystem,
    readDirectory: async (folder) => {
      const entries = await nodeFileSystem.readDirectory(folder);
      // The connections to all of them begin in this turn of the event loop.
      if (!isAsked) setImmediate(() => void holder.end("SIGKILL"));
      isAsked = true;
      return entries;
    },
  };
  const own = await lockDirectory(fileSystem, `${path}/lock`);
  t.equal(readdirSync(`${path}/lock`).length, 1);
  await own.release();
});

t.test("a directory with a long path can be held", async (t) => {
  const path = `${temporaryDirectory(t)}/${"long".repeat(40)}`;
  mkdirSync(path);
  const directory = await openDataDirectory({ path, creates: true });
  await t.rejects(openDataDirectory({ path, creates: true }), { code: "directory_locked" });
  await directory.release();
});

t.test(
  "a folder that comes among the segments, with the name of one, does not keep the log from being read",
  async (t) => {
    const path = temporaryDirectory(t);
    const dataDirectory = await openDataDirectory({ path, creates: true });
    mkdirSync(`${path}/meta/0000000000000777.seg`);
    const result = await checkStore({ dataDirectory });
    await dataDirectory.release();
    t.match(result, { ok: true, summary: { segments: 0 } });
    await t.rejects(openDataDirectory({ path, creates: true }), {
      code: "directory_unusable",
      message: /777\.seg is a folder/,
    });
  },
);
