/** A module for threads of the artefact pool that does, by the path of its input, what a thread must not do. */
import { appendFileSync, existsSync } from "node:fs";
import type { TaskMessage } from "../../../workers/artefacts/pool/artefact-thread.js";
import { threadTask } from "../../../workers/artefacts/pool/piscina-threads.js";

export default threadTask(async ({ input }: TaskMessage): Promise<unknown> => {
  const { path } = input as { path: string };
  const [kind = "", file = ""] = path.split(":");
  const isFirst = file === "" || !existsSync(file);
  if (file !== "") appendFileSync(file, "x");
  if (kind === "crash" || (kind === "crash-once" && isFirst)) process.exit(3);
  if (kind === "spin" || (kind === "spin-once" && isFirst)) for (;;);
  if (kind === "held") await told(file);
  if (kind === "refuse") return { error: { code: "capture_missing", message: "gone" } };
  // It rejects after the answer. Before it, the task would have crashed.
  if (kind === "stray") void told(file).then(() => Promise.reject(new Error("left behind")));
  return { value: Uint8Array.of(kind.length) };
});

async function told(file: string): Promise<void> {
  while (!existsSync(`${file}.go`)) await new Promise((resolve) => setTimeout(resolve, 5));
}
