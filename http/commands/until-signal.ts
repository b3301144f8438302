import { onHangUp } from "../../workers/hang-up.js";

/** Signals within this time of the first are one request: a Ctrl-C reaches the service from the terminal, and once more from npm. */
const ONE_REQUEST_MS = 1_000;

/** Resolves when the process is asked to end, by a terminal that closes (SIGHUP) too; a second request ends it at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let askedMs = Number.POSITIVE_INFINITY;
    const ask = (signal: NodeJS.Signals): void => {
      askedMs = Math.min(askedMs, performance.now());
      resolve(signal);
    };
    onHangUp(() => ask("SIGHUP"));
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, () => {
        // Nothing acknowledged is lost: it is on the disk already.
        if (performance.now() - askedMs > ONE_REQUEST_MS) process.exit(1);
        ask(signal);
      });
    }
  });
}
