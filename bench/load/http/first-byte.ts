import { type Agent, get } from "node:http";

/** Milliseconds from a GET to the first bytes of its body; resolves when all of the body is there. */
export function firstByteMs(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    get(url, { agent }, (response) => {
      let firstMs = 0;
      response.once("data", () => {
        firstMs = performance.now() - startMs;
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode === 200) resolve(firstMs);
        else reject(new Error(`GET ${url} answered ${response.statusCode}`));
      });
    }).on("error", reject);
  });
}
