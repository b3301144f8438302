import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as eventLoopTurn } from "node:timers/promises";
import t, { type Test } from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import type { ServiceLog } from "../../../http/log/service-log.js";
import { jsonReply } from "../../../http/replies/reply.js";
import {
  ApiKeys,
  type ApiKeysError,
  createKey,
  formatKeys,
  parseKeys,
  withoutKeys,
} from "../../../http/requests/api-keys.js";
import { changeKeyFile, readFirstKeys, watchKeys } from "../../../http/requests/key-file.js";
import { nodeFileSystem } from "../../../storage/disk/file-system.js";
import { FileSystemError } from "../../../storage/disk/file-system-error.js";
import { onEveryFront } from "../../helpers/http/handler-server.js";
import { rawRequest } from "../../helpers/http/raw-http.js";
import { listOf } from "../../helpers/list-of.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const AT = "2026-01-31T12:00:00.000Z";

t.test("a key is kept as a hash only, and every one is another", async (t) => {
  const { key, stored } = createKey("read", AT);
  const text = formatKeys([stored]);
  t.match(key, /^isk_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/);
  t.notMatch(text, key.slice(17), "the secret part is nowhere in the file");
  t.same(parseKeys(text), [stored]);
  t.not(createKey("read", AT).key, key);
});

t.test("a command that waits in vain for another one says which file to remove", async (t) => {
  const folder = temporaryDirectory(t);
  const file = join(folder, "keys.json");
  writeFileSync(`${file}.lock`, "");
  const message = `another command is changing ${file}, so this one changed nothing: try again; if no other command is running, remove ${file}.lock`;
  await t.rejects(
    changeKeyFile(file, "createIfMissing", () => [], 0),
    { message: new RegExp(message) },
  );
  t.same(readdirSync(folder), ["keys.json.lock"]);
});

t.test("a file that `keys add` did not write is refused, without showing what it holds", async (t) => {
  const { stored } = createKey("read", AT);
  const cases: [text: string, message: RegExp][] = [
    ["{", /is not JSON/],
    ["[]", /"keys"/],
    ["null", /"keys"/],
    ['{"keys":[1]}', /keys\[0\]\.id/],
    [JSON.stringify({ keys: [{ ...stored, id: "SECRET" }] }), /keys\[0\]\.id/],
    [JSON.stringify({ keys: [stored, { ...stored, scope: "admin" }] }), /keys\[1\]\.scope/],
    [JSON.stringify({ keys: [{ ...stored, sha256: "SECRET" }] }), /keys\[0\]\.sha256/],
    [JSON.stringify({ keys: [{ ...stored, created_at: 1 }] }), /keys\[0\]\.created_at/],
  ];
  for (const [text, message] of cases) {
    t.throws(() => parseKeys(text), { name: "ApiKeysError", message });
    try {
      parseKeys(text);
    } catch (error) {
      t.notMatch((error as ApiKeysError).message, "SECRET");
    }
  }
});

function openFilesBy(t: Test, open: typeof nodeFileSystem.open): void {
  const before = nodeFileSystem.open;
  nodeFileSystem.open = open;
  t.teardown(() => {
    nodeFileSystem.open = before;
  });
}

/** The disk answers once the function that this returns is called. */
function hungDisk(t: Test): () => void {
  const { open } = nodeFileSystem;
  let answer = (): void => {};
  const hung = new Promise<void>((resolve) => {
    answer = resolve;
  });
  openFilesBy(t, (...args) => hung.then(() => open(...args)));
  return answer;
}

t.test("a start that waits for the disk of the key file says so, and goes on when it answers", async (t) => {
  const { key, stored } = createKey("read", AT);
  const path = join(t.testdir({ "keys.json": formatKeys([stored]) }), "keys.json");
  const answer = hungDisk(t);
  const messages: string[] = [];
  const log = { warn: (_: object, message: string) => messages.push(message) } as unknown as ServiceLog;
  const reading = readFirstKeys(path, log, 5);
  while (messages.length === 0) await eventLoopTurn();
  t.match(messages, listOf(/key file does not answer/));
  answer();
  const keys = await reading;
  t.doesNotThrow(() => keys.check(`Bearer ${key}`, "read"));
});

t.test("a key file on a disk that does not answer refuses every key, until it answers", async (t) => {
  const { key, stored } = createKey("read", AT);
  const path = join(t.testdir({ "keys.json": formatKeys([stored]) }), "keys.json");
  const answer = hungDisk(t);
  const keys = new ApiKeys([stored]);
  const messages: string[] = [];
  const note = (_: unknown, message: string) => messages.push(message);
  const timer = watchKeys(path, keys, { info: note, warn: note, error: note } as unknown as ServiceLog, 5);
  t.teardown(() => clearInterval(timer));
  while (keys.fault === null) await eventLoopTurn();
  t.match(keys.fault, /^since .*the key file keys\.json cannot be read \(ETIMEDOUT\)/);
  t.throws(() => keys.check(`Bearer ${key}`, "read"), ServiceError);
  answer();
  while (keys.fault !== null) await eventLoopTurn();
  keys.check(`Bearer ${key}`, "read");
  t.match(messages, listOf(/cannot be used/, /can be used again/));
});

t.test("a shortage while the key file is read leaves the keys as they are; another error does not", async (t) => {
  const keys = new ApiKeys([createKey("read", AT).stored]);
  const codes = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "ENOBUFS"];
  const left = [...codes];
  openFilesBy(t, (path) => Promise.reject(new FileSystemError(left.shift() ?? "EACCES", "open", path)));
  const warned: string[] = [];
  const warn = ({ err }: { err: FileSystemError }) => warned.push(err.code);
  const timer = watchKeys("keys.json", keys, { warn, error: () => {} } as unknown as ServiceLog, 1);
  t.teardown(() => clearInterval(timer));
  while (keys.fault === null) await eventLoopTurn();
  t.match(keys.fault, /EACCES/);
  t.same(warned, codes);
});

t.test("a key is taken out of a line however it is encoded, and other text is left as it came", async (t) => {
  const { key } = createKey("read", AT);
  const shown = `${key.slice(0, 17)}…`;
  const hex = (text: string, upper: boolean) =>
    [...Buffer.from(text)].map((byte) => `%${upper ? byte.toString(16).toUpperCase() : byte.toString(16)}`).join("");
  for (let at = 0; at < key.length; at++) {
    const one = key.slice(0, at) + hex(key[at] as string, at % 2 === 0) + key.slice(at + 1);
    for (const text of [one, encodeURIComponent(one), encodeURIComponent(encodeURIComponent(one))]) {
      const line = withoutKeys(`a=1&k=${text}`);
      t.equal(line, `a=1&k=${shown}`, text);
    }
  }
  t.equal(withoutKeys(hex(key, false)), shown);
  t.equal(withoutKeys(`${key}/%zz/${key}`), `${shown}/%zz/${shown}`);
  for (const text of ["", "%", "%zz", "a%20b", "isk_", "%69sk_", "isk_0123456789ab", "%c3%a9", "100%25"]) {
    t.equal(withoutKeys(text), text);
  }
});

t.test(
  "a key is taken out of a line however often it was encoded, in time that grows with the line alone",
  async (t) => {
    const { key } = createKey("read", AT);
    const shown = `${key.slice(0, 17)}…`;
    const everyByte = (text: string) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join("");
    let once = `%69${key.slice(1)}`;
    let tail = `${key.slice(0, -1)}${everyByte(key.slice(-1))}`;
    for (let depth = 1; depth <= 10; depth++) {
      for (const text of [once, tail, encodeURI(once)])
        t.equal(withoutKeys(`/${text}`), `/${shown}`, `${depth}: ${text}`);
      once = encodeURIComponent(once);
      tail = encodeURIComponent(tail);
    }
    for (let text = key, depth = 1; depth <= 7; depth++) {
      text = everyByte(text);
      t.equal(withoutKeys(text), shown, `every byte, ${depth} times`);
    }
    // Each decoded digit completes the escape before it. To decode the whole text each time would take 7,000 rounds.
    const nested = `%2${"%3".repeat(7_000)}569${key.slice(1)}`;
    t.equal(withoutKeys(nested), shown);
  },
);

onEveryFront(
  t,
  "who has no key, or one without the scope, is refused; nothing of a key is logged",
  async (t, serve) => {
    const read = createKey("read", AT);
    const manage = createKey("manage", AT);
    const apiKeys = new ApiKeys([read.stored, manage.stored]);
    const handlers = {
      "/open": { scope: "none" as const, handle: () => jsonReply("open") },
      "/read": { scope: "read" as const, handle: () => jsonReply("read") },
      "POST /write": { scope: "manage" as const, handle: () => jsonReply("written") },
    };
    const { port, lines } = await serve(t, handlers, { apiKeys, level: "trace" });
    const ask = async (target: string, authorization?: string) => {
      const line = authorization === undefined ? "" : `Authorization: ${authorization}\r\n`;
      return rawRequest(port, `${target} HTTP/1.1\r\nHost: x\r\n${line}\r\n`, target.split(" ")[0]);
    };
    t.equal((await ask("GET /open"))?.status, 200);
    t.equal((await ask("GET /read", `Bearer ${read.key}`))?.json(), "read");
    t.equal((await ask("GET /read", `bearer  ${read.key}`))?.json(), "read");
    t.equal((await ask("GET /read", `Bearer ${manage.key}`))?.json(), "read");
    t.equal((await ask("POST /write", `Bearer ${manage.key}`))?.json(), "written");
    const other = createKey("manage", AT).key;
    const mixed = `${manage.key.slice(0, 17)}${other.slice(17)}`;
    for (const wrong of [
      undefined,
      "",
      "Bearer",
      `Basic ${read.key}`,
      read.key,
      `Bearer ${other}`,
      `Bearer ${mixed}`,
      `Bearer ${read.key}x`,
      `Bearer ${read.key}, Bearer ${read.key}`,
      `Bearer ${"x".repeat(3000)}`,
    ]) {
      for (const target of ["GET /read", "POST /write", "HEAD /read"]) {
        const response = await ask(target, wrong);
        t.equal(response?.status, 401, `${target} ${wrong?.slice(0, 20)}`);
        t.equal(response?.headers["www-authenticate"], "Bearer");
        if (!target.startsWith("HEAD")) t.match(response?.json(), { code: "unauthorized", retryable: false });
      }
    }
    const weak = await ask("POST /write", `Bearer ${read.key}`);
    t.equal(weak?.status, 403);
    t.match(weak?.json(), { code: "forbidden", params: { scope: "read", needed: "manage" } });
    t.equal((await ask("OPTIONS /write"))?.status, 204, "a browser asks without a key");
    t.equal((await ask("GET /nowhere"))?.status, 404);

    // Some send a key where other services take it: it is refused there, and must not stand in the line that says so.
    const encoded = manage.key.replace("-", "%2D");
    for (const wrong of [`/read?api_key=${manage.key}`, `/read?a=${read.key}&b=${manage.key}`, `/read?k=${encoded}`]) {
      t.equal((await ask(`GET ${wrong}`))?.status, 401);
    }
    t.equal((await ask(`GET /${manage.key}`))?.status, 404);
    const prefixed = `%69sk%5F${manage.key.slice(4)}`;
    for (const wrong of [`/${prefixed}`, `/read?k=${prefixed}`, `/read?k=${encodeURIComponent(prefixed)}`]) {
      t.ok([401, 404].includes((await ask(`GET ${wrong}`))?.status ?? 0), wrong);
    }
    t.equal((await ask(`GET /read?api_key=${manage.key}`, `Bearer ${read.key}`))?.status, 200);

    apiKeys.replace([read.stored]);
    t.equal((await ask("GET /read", `Bearer ${manage.key}`))?.status, 401, "removed");
    const logged = JSON.stringify(lines);
    t.match(logged, `api_key=${manage.key.slice(0, 17)}…`, "its id is");
    for (const key of [read.key, manage.key, encoded, other])
      t.notOk(logged.includes(key.slice(17)), "no key in the log");
  },
);
