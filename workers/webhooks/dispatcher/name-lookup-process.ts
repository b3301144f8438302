/**
 * The process of `startLookupProcess`. It takes names as messages and answers with `LookupAnswer`s. It kills itself
 * when the process that started it ends in any way. Otherwise a look-up under way would delay its exit, since libuv
 * waits for its threads.
 */
import { lookup } from "node:dns";
import { ignoreDebugSignal } from "../../debug-signal.js";
import type { LookupAnswer } from "./name-lookups.js";

ignoreDebugSignal();

process.on("message", (hostname: string) => {
  lookup(hostname, { all: true }, (error, addresses) => {
    const answer: LookupAnswer = { hostname, code: error?.code ?? null, addresses: addresses ?? [] };
    if (process.connected) process.send?.(answer, () => {});
  });
});
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
// A terminal signals the whole process group. The service then still lets deliveries end, and may need a name for them.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
