/**
 * The process of `startLookupProcess`: its messages are names, its answers `LookupAnswer`s. Ends at once with the process that started
 * it, by whatever way that goes; a look-up that still lasts would otherwise hold its exit (libuv waits for its threads).
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
// A terminal tells the whole group: the service still lets deliveries end, and may need a name for it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
