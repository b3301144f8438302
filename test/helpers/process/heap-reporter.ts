/**
 * Preloaded into a service process (`NODE_OPTIONS=--import=…`): on SIGUSR2 every thread collects its garbage, and the process writes one
 * line to stderr, `{"heap_report": [bytes, …]}`: what heap and buffers of each thread hold then, the main thread first.
 */
import { BroadcastChannel, isMainThread, threadId } from "node:worker_threads";
import { heldBytes } from "./held-memory.js";

/** Threads answer within a slice of their work; one that does not is left out. */
const ANSWER_MS = 500;

interface Report {
  thread: number;
  bytes: number;
}

const questions = new BroadcastChannel("heap-report-questions");
const answers = new BroadcastChannel("heap-report-answers");
if (isMainThread) {
  const reports = new Map<number, number>();
  answers.onmessage = (event) => {
    const { thread, bytes } = (event as { data: Report }).data;
    reports.set(thread, bytes);
  };
  process.on("SIGUSR2", () => {
    reports.clear();
    questions.postMessage(null);
    reports.set(threadId, heldBytes());
    setTimeout(() => {
      const ordered = [...reports].sort(([left], [right]) => left - right);
      process.stderr.write(`${JSON.stringify({ heap_report: ordered.map(([, bytes]) => bytes) })}\n`);
    }, ANSWER_MS);
  });
} else {
  questions.onmessage = () => answers.postMessage({ thread: threadId, bytes: heldBytes() } satisfies Report);
}
(questions as { unref?(): void }).unref?.();
(answers as { unref?(): void }).unref?.();
