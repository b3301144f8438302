import t from "tap";
import { download } from "../../../http/client/download.js";
import { ServiceRequestError } from "../../../http/client/service-client.js";

type Answer = (signal: AbortSignal | null | undefined) => Response;

/** A body that breaks off after the text. */
function broken(text: string): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(Buffer.from(text)),
    pull: (controller) => controller.error(new TypeError("broken off")),
  });
}

/** Answers one request after the other, and keeps what they asked for. */
function network(...answers: Answer[]) {
  const asked: Headers[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const headers = new Headers(init.headers);
    asked.push(headers);
    const answer = answers[asked.length - 1];
    if (answer === undefined) throw new TypeError(`nobody answers ${url}`);
    return answer(init.signal);
  };
  return { asked, connection: { baseUrl: "http://cell", headers: { Authorization: "Bearer k" }, fetch } };
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += Buffer.from(chunk);
  return text;
}

const busy = () => new Response('{"message":"busy"}', { status: 503, headers: { "Retry-After": "0.01" } });

t.test("a download that breaks off goes on where it was, also after a busy answer", async (t) => {
  const headers = { ETag: '"one"' };
  const { asked, connection } = network(
    busy,
    () => new Response(broken("first "), { headers }),
    busy,
    () => new Response(broken("second "), { status: 206, headers }),
    () => new Response("third", { status: 206, headers }),
  );
  t.equal(await textOf(download(connection, "/f", {})), "first second third");
  t.same(
    asked.map((sent) => [sent.get("range"), sent.get("if-match"), sent.get("authorization")]),
    [
      [null, null, "Bearer k"],
      [null, null, "Bearer k"],
      ["bytes=6-", '"one"', "Bearer k"],
      ["bytes=6-", '"one"', "Bearer k"],
      ["bytes=13-", '"one"', "Bearer k"],
    ],
  );
});

t.test("what cannot be continued fails, and never gives wrong bytes", async (t) => {
  const headers = { ETag: '"one"' };
  const first: Answer = () => new Response(broken("first"), { headers });
  const fails = async (what: string, expected: object, ...answers: Answer[]): Promise<void> => {
    const error = await textOf(download(network(...answers).connection, "/f", {})).catch((error: unknown) => error);
    t.match(error, expected, what);
  };
  await fails("another file", { status: 412 }, first, () => new Response("{}", { status: 412 }));
  await fails("a proxy without ranges", { status: 200 }, first, () => new Response("first and rest", { headers }));
  await fails("no tag", { message: "broken off" }, () => new Response(broken("first")));
  await fails("no file", { name: "ServiceRequestError", status: 404 }, () => new Response("{}", { status: 404 }));
  const refusals = Array.from({ length: 9 }, () => busy);
  await fails("always busy", { name: "ServiceRequestError", status: 503, message: "busy" }, ...refusals);
});

t.test("a connection that says nothing any more counts as broken", async (t) => {
  const headers = { ETag: '"one"' };
  const silent: Answer = (signal) => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from("first "));
        signal?.addEventListener("abort", () => controller.error(signal.reason));
      },
    });
    return new Response(body, { headers });
  };
  const { asked, connection } = network(silent, () => new Response("rest", { status: 206, headers }));
  t.equal(await textOf(download(connection, "/f", {}, 20)), "first rest");
  t.equal(asked[1]?.get("range"), "bytes=6-");
});

t.test("an abort ends it at once, and who stops early ends the transfer", async (t) => {
  const leave = new AbortController();
  const { connection } = network(() => new Response(broken("x"), { headers: { ETag: '"one"' } }));
  const chunks = download(connection, "/f", { signal: leave.signal });
  await chunks.next();
  leave.abort();
  const error = await chunks.next().catch((error: unknown) => error);
  t.ok(error instanceof Error && !(error instanceof ServiceRequestError));
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1)),
    cancel: () => {
      isCancelled = true;
    },
  });
  for await (const _ of download(network(() => new Response(endless)).connection, "/f", {})) break;
  t.ok(isCancelled);
});
