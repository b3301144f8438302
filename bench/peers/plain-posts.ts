import { Agent, request } from "undici";

const headers = { "Content-Type": "application/json" };

/**
 * The peer of the webhook benchmark: a loop that posts a body with undici and does nothing else. It posts `each` times to every receiver, one after the
 * other to each, to all receivers at the same time. Resolves with the seconds it took.
 */
export async function postPlainly(urls: readonly string[], body: string, each: number): Promise<number> {
  const dispatcher = new Agent({ pipelining: 1 });
  const bytes = Buffer.from(body);
  const startMs = performance.now();
  const toReceiver = async (url: string): Promise<void> => {
    for (let i = 0; i < each; i++) {
      const answer = await request(url, { method: "POST", headers, body: bytes, dispatcher });
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`a receiver answered ${answer.statusCode}`);
    }
  };
  await Promise.all(urls.map(toReceiver));
  const seconds = (performance.now() - startMs) / 1000;
  await dispatcher.close();
  return seconds;
}
