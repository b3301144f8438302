import { gunzipSync } from "node:zlib";
import t from "tap";
import { createRandom } from "../../../core/random.js";
import { checksReply } from "../../../http/downloads/checks-download.js";
import type { MakeArtefact } from "../../../http/downloads/generated-files.js";
import type { PieceRequest } from "../../../http/downloads/generated-stream.js";
import type { ExportTask } from "../../../workers/artefacts/findings/checks-export.js";
import { onEveryFront, until } from "../../helpers/http/handler-server.js";
import { GET } from "../../helpers/http/pattern-stream.js";
import { RawConnection } from "../../helpers/http/raw-http.js";

const HEAD = Buffer.from("head\n");
const PIECE_BYTES = 300_000;
const query = {
  ...{ dataDirectory: "store", untilSequence: 1, programId: "019b76da-a800-7000-8000-0000000000aa" },
  ...{ sinceUs: null, untilUs: null, serialNumber: null, check: null },
};

/** An export of so many pieces, each made when it is asked for, and what became of it. */
function exportOf(pieces: number, failsAt = Number.POSITIVE_INFINITY) {
  const seen = { made: 0, cancelled: 0, reused: 0 };
  const make = (async (
    _name: string,
    { from }: ExportTask,
    { signal, room }: PieceRequest & { signal: AbortSignal },
  ) => {
    if (room !== undefined) {
      seen.reused++;
      // It moves to the thread that makes the piece.
      structuredClone(room, { transfer: [room] });
    }
    await new Promise(setImmediate);
    if (signal.aborted) {
      seen.cancelled++;
      throw new Error("cancelled");
    }
    seen.made++;
    if (from.sequence >= failsAt) throw new Error("a piece that cannot be made");
    return {
      bytes: pieceOf(from.sequence),
      next: from.sequence + 1 < pieces ? { ...from, sequence: from.sequence + 1 } : null,
    };
  }) as unknown as MakeArtefact;
  const reply = (isCompressed: boolean) =>
    checksReply(
      {
        make,
        query,
        format: "csv",
        contentType: "text/csv; charset=utf-8",
        ...{ head: HEAD, namesJson: "" },
        isCompressed,
      },
      new AbortController().signal,
    );
  return { seen, reply };
}

/** It does not get smaller by compression, so that a client that reads nothing holds up a compressed export too. */
const RANDOM = createRandom(36).bytes(PIECE_BYTES);
const pieceOf = (nth: number) => {
  const bytes = RANDOM.slice();
  bytes[0] = nth;
  return bytes;
};
const expected = (pieces: number) => Buffer.concat([HEAD, ...Array.from({ length: pieces }, (_, nth) => pieceOf(nth))]);

const ASK = GET("/checks");

/** Waits until no piece has been made for so many turns of the event loop. */
async function standstill(seen: { made: number }): Promise<void> {
  let last = seen.made;
  for (let turns = 0; turns < 2_000; turns++) {
    await new Promise(setImmediate);
    if (seen.made !== last) turns = 0;
    last = seen.made;
  }
}

onEveryFront(t, "an export arrives whole, plain and compressed, also at a client that pauses", async (t, serve) => {
  for (const pieces of [1, 12]) {
    for (const isCompressed of [false, true]) {
      const { reply, seen } = exportOf(pieces);
      const { port } = await serve(t, { "/checks": () => reply(isCompressed) });
      const connection = await RawConnection.open(port);
      connection.socket.pause();
      connection.send(ASK);
      for (let turn = 0; turn < 300; turn++) await new Promise(setImmediate);
      connection.socket.resume();
      const answer = await connection.response();
      const { headers, body } = answer ?? { headers: {} as Record<string, string>, body: Buffer.alloc(0) };
      t.equal(headers["content-encoding"], isCompressed ? "gzip" : undefined);
      t.equal(headers.vary, "Accept-Encoding");
      t.match(headers["content-disposition"], /^attachment; filename="checks-019b76da-.*\.csv"$/);
      t.equal(headers["content-length"], undefined);
      if (headers.connection === "close") t.equal(headers["keep-alive"], undefined, "not also told to keep it");
      const plain = isCompressed ? gunzipSync(body) : body;
      t.ok(plain.equals(expected(pieces)), `${pieces} pieces, compressed: ${isCompressed}`);
      t.equal(seen.reused, isCompressed ? 0 : Math.max(0, pieces - 2), "two memories serve all pieces");
      connection.close();
    }
  }
});

onEveryFront(
  t,
  "a client that reads nothing holds a few pieces, and none is made once it has gone",
  async (t, serve) => {
    for (const isCompressed of [false, true]) {
      const { seen, reply } = exportOf(1_000_000);
      const { port } = await serve(t, { "/checks": () => reply(isCompressed) });
      const connection = await RawConnection.open(port);
      connection.socket.pause();
      connection.send(ASK);
      await until(() => seen.made > 1);
      await standstill(seen);
      t.ok(seen.made < 200, `${seen.made} pieces were made of a million`);
      connection.close();
      await standstill(seen);
      const { made } = seen;
      for (let turn = 0; turn < 500; turn++) await new Promise(setImmediate);
      t.equal(seen.made, made, "nothing is made for nobody");
    }
  },
);

onEveryFront(
  t,
  "an export whose piece cannot be made is broken off, so that nobody takes it for whole",
  async (t, serve) => {
    for (const isCompressed of [false, true]) {
      const { reply } = exportOf(12, 5);
      const { port } = await serve(t, { "/checks": () => reply(isCompressed) });
      const connection = await RawConnection.open(port);
      connection.send(ASK);
      t.equal(await connection.response(), undefined);
    }
  },
);

onEveryFront(
  t,
  "a first piece that cannot be made is an error with a status; HEAD has the head alone",
  async (t, serve) => {
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
    if (head?.headers.connection === "close") t.equal(head.headers["keep-alive"], undefined);
    t.ok(seen.made <= 2);
    connection.close();
  },
);
