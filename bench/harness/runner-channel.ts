import type { Measured } from "./result.js";

/** What a benchmark's process says to its runner. */
export type BenchmarkMessage = { type: "log"; line: string } | { type: "measured"; measured: Measured };

/** Resolves when the message has left this process. A result is megabytes of histograms; when a process ends, unsent bytes are lost. */
export function sendToRunner(message: BenchmarkMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    if (process.send === undefined)
      return reject(new Error("this process has no runner: start it with child-runner.js"));
    process.send(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error)));
  });
}
