import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Test } from "tap";

/**
 * Runs a contract test once more, in another environment.
 * @param suite its path below test/contract, without `.test`
 * @returns what it printed
 */
export async function contractAgain(t: Test, suite: string, environment: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(process.execPath, [...process.execArgv, `dist/test/contract/${suite}.test.js`], {
    // The file's own limit is for somebody who waits. Here the runner's limit counts.
    env: { ...process.env, ...environment, TAP_TIMEOUT: "21600", TAP_JOB_ID: "", TAP_BAIL: "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
  const [code] = (await once(child, "close")) as [number | null];
  const passed = output.match(/^ +ok \d+ /gm)?.length ?? 0;
  const failed = output.match(/^ *not ok [^\n]*/gm) ?? [];
  t.equal(code, 0, failed.slice(0, 5).join("\n"));
  t.ok(passed > 0);
  t.comment(`${suite}: ${passed} assertions passed, ${failed.length} failed`);
  return output;
}
