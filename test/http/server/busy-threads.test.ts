import { execFileSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { jsonBytesReply } from "../../../http/replies/reply.js";
import { onEveryFront } from "../../helpers/http/handler-server.js";
import { rawRequest } from "../../helpers/http/raw-http.js";

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n`;

/** Keeps every thread that compresses or reads files busy, until the function that it returns is called. */
function busyThreads(t: Test): () => Promise<void> {
  const folder = t.testdir();
  // One for each thread, and one that waits: libuv's default is four.
  const paths = Array.from({ length: 5 }, (_, nth) => join(folder, `fifo-${nth}`));
  execFileSync("mkfifo", paths);
  // Opening a FIFO for reading waits for a writer.
  const opened = paths.map((path) => open(path, "r"));
  let freed: Promise<void> | undefined;
  const free = async () => {
    const writers = paths.map((path) => openSync(path, "r+"));
    for (const file of await Promise.all(opened)) await file.close();
    for (const writer of writers) closeSync(writer);
  };
  const freeOnce = () => {
    freed ??= free();
    return freed;
  };
  t.teardown(freeOnce);
  return freeOnce;
}

for (const deadlineMs of [300, 60_000]) {
  onEveryFront(
    t,
    `an answer that cannot be compressed now comes as it is (deadline ${deadlineMs} ms)`,
    async (t, serve) => {
      const body = Buffer.from(JSON.stringify("abcdefgh".repeat(4_000)));
      const kept = jsonBytesReply(body, true);
      const { port } = await serve(
        t,
        { "/now": () => kept, "/later": async () => jsonBytesReply(body) },
        { deadlineMs },
      );
      const free = busyThreads(t);
      const startedMs = performance.now();
      const answers = await Promise.all(["/now", "/later", "/now"].map((path) => rawRequest(port, GET(path))));
      // No thread is free yet. The bound is far above both limits, for slow machines, and below the deadline.
      t.ok(performance.now() - startedMs < 15_000);
      for (const answer of answers) {
        t.equal(answer?.status, 200);
        t.equal(answer?.headers["content-encoding"], undefined);
        t.match(answer?.headers, { vary: "Accept-Encoding", etag: /^W\// });
        t.same(answer?.body, body);
      }
      await free();
      const after = await rawRequest(port, GET("/now"));
      t.equal(after?.headers["content-encoding"], "gzip");
      t.same(gunzipSync(after?.body ?? body), body);
    },
  );
}
