import { gunzipSync } from "node:zlib";
import t from "tap";
import { checksReply } from "../../../http/downloads/checks-download.js";
import type { MakeArtefact } from "../../../http/downloads/generated-files.js";
import type { ExportTask } from "../../../workers/artefacts/findings/checks-export.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { GET, patternByte } from "../../helpers/http/pattern-stream.js";
import { RawConnection } from "../../helpers/http/raw-http.js";

const HEAD = Buffer.from("head\n");
const PIECE_BYTES = 300_000;
const query = {
  ...{ dataDirectory: "store", untilSequence: 1, programId: "019b76da-a800-7000-8000-0000000000aa" },
  ...{ sinceUs: null, untilUs: null, serialNumber: null, check: null },
};

/** An export of so many pieces, each made when it is asked for, and what became of it. */
function exportOf(pieces: number, failsAt = Number.POSITIVE_INFINITY) {
  const seen = { made: 0, cancelled: 0 };
  const make = (async (_name: string, { from }: ExportTask, { signal }: { signal: AbortSignal }) => {
    await new Promise(setImmediate);
    if (signal.aborted) {
      seen.cancelled++;
      throw new Error("cancelled");
    }
    seen.made++;
    if (from.run >= failsAt) throw new Error("a piece that cannot be made");
    const bytes = Uint8Array.from({ length: PIECE_BYTES }, (_, at) => patternByte(from.run * PIECE_BYTES + at));
    return { bytes, next: from.run + 1 < pieces ? { ...from, run: from.run + 1 } : null };
  }) as unknown as MakeArtefact;
  const reply = (isCompressed: boolean) =>
    checksReply(
      { make, query, format: "csv", contentType: "text/csv; charset=utf-8", start: { head: HEAD as never, names: [] }, isCompressed },
      new AbortController().signal,
    );
  return { seen, reply };
}

const expected = (pieces: number) =>
  Buffer.concat([HEAD, Uint8Array.from({ length: pieces * PIECE_BYTES }, (_, at) => patternByte(at))]);

/** The body of an answer without a length, once it has ended; undefined if it was broken off. */
async function bodyOf(connection: RawConnection): Promise<Buffer | undefined> {
  const whole = () => {
    const text = connection.rest;
    return /^0\r\n\r\n$/m.test(text.slice(-7)) ? text : undefined;
  };
  await Promise.race([connection.closed, until(() => connection.receivedBytes > 6 && whole() !== undefined)]);
  const text = whole();
  if (text === undefined) return undefined;
  const parts: Buffer[] = [];
  for (let at = text.indexOf("\r\n\r\n") + 4; ; ) {
    const end = text.indexOf("\r\n", at);
    const length = Number.parseInt(text.slice(at, end), 16);
    if (length === 0) return Buffer.concat(parts);
    parts.push(Buffer.from(text.slice(end + 2, end + 2 + length), "latin1"));
    at = end + 4 + length;
  }
}

onEveryFront(t, "an export arrives whole, plain and compressed, also at a client that pauses", async (t, serve) => {
  for (const pieces of [1, 12]) {
    for (const isCompressed of [false, true]) {
      const { reply } = exportOf(pieces);
      const { port } = await serve(t, { "/checks": () => reply(isCompressed) });
      const connection = await RawConnection.open(port);
      connection.socket.pause();
      connection.send(GET("/checks"));
      for (let turn = 0; turn < 300; turn++) await new Promise(setImmediate);
      connection.socket.resume();
      await until(() => connection.rest.includes("\r\n\r\n"));
      const head = connection.rest.slice(0, connection.rest.indexOf("\r\n\r\n"));
      t.equal(/^content-encoding: gzip$/im.test(head), isCompressed);
      t.match(head, /^vary: accept-encoding$/im);
      t.match(head, /^content-disposition: attachment; filename="checks-019b76da-.*\.csv"$/im);
      t.notMatch(head, /^content-length/im);
      const body = await bodyOf(connection);
      const plain = body !== undefined && isCompressed ? gunzipSync(body) : body;
      t.ok(plain?.equals(expected(pieces)), `${pieces} pieces, compressed: ${isCompressed}`);
      connection.close();
    }
  }
});

onEveryFront(t, "a client that reads nothing holds a few pieces, and none is made once it has gone", async (t, serve) => {
  for (const isCompressed of [false, true]) {
    const { seen, reply } = exportOf(1_000_000);
    const { port } = await serve(t, { "/checks": () => reply(isCompressed) });
    const connection = await RawConnection.open(port);
    connection.socket.pause();
    connection.send(GET("/checks"));
    let last = -1;
    for (let turn = 0; turn < 2_000; turn++) {
      if (seen.made !== last) turn = 0;
      last = seen.made;
      await new Promise(setImmediate);
    }
    t.ok(seen.made < 200, `${seen.made} pieces were made of a million`);
    connection.close();
    for (let turn = 0; turn < 2_000; turn++) {
      if (seen.made !== last) turn = 0;
      last = seen.made;
      await new Promise(setImmediate);
    }
    const { made } = seen;
    for (let turn = 0; turn < 500; turn++) await new Promise(setImmediate);
    t.equal(seen.made, made, "nothing is made for nobody");
  }
});

onEveryFront(t, "an export whose piece cannot be made is broken off, so that nobody takes it for whole", async (t, serve) => {
  for (const isCompressed of [false, true]) {
    const { reply } = exportOf(12, 5);
    const { port } = await serve(t, { "/checks": () => reply(isCompressed) });
    const connection = await RawConnection.open(port);
    connection.send(GET("/checks"));
    t.equal(await bodyOf(connection), undefined);
    await connection.closed;
  }
});

onEveryFront(t, "a first piece that cannot be made is an error with a status; HEAD has the head alone", async (t, serve) => {
  const failing = exportOf(1, 0);
  const { reply, seen } = exportOf(100);
  const { port } = await serve(t, { "/checks": () => failing.reply(false), "/whole": () => reply(false) });
  const connection = await RawConnection.open(port);
  connection.send(GET("/checks"));
  t.equal((await connection.response())?.status, 500);
  connection.send("HEAD /whole HTTP/1.1\r\nHost: cell:8000\r\n\r\n");
  const head = await connection.response("HEAD");
  t.equal(head?.status, 200);
  t.equal(head?.headers["content-length"], undefined, "nobody knows the length");
  t.ok(seen.made <= 2);
  connection.close();
});
