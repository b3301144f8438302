import { type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";

/** Root may write everything: where the tests are root's, another account is asked. */
const uid = process.getuid?.() === 0 ? 65_534 : undefined;
const account = uid === undefined ? {} : { uid, gid: uid };

/** Why no other account can be asked; false where one can. */
export function runsAsOther(): string | false {
  if (process.getuid === undefined) return "no accounts here";
  const probe = ["-e", "require('node:fs').accessSync('dist/http/main.js')"];
  const ended: SpawnSyncReturns<Buffer> = spawnSync("env", ["-i", process.execPath, ...probe], { ...account });
  return ended.status === 0 ? false : "the tests are root's, and another account cannot read them";
}

/** Makes the folder, and all that is in it, the other account's. */
export function giveToOther(folder: string): void {
  if (uid === undefined) return;
  chmodSync(dirname(folder), 0o755);
  chownSync(folder, uid, uid);
  for (const name of readdirSync(folder, { recursive: true })) chownSync(join(folder, String(name)), uid, uid);
}

/** Runs a compiled script as the other account, without what the test runner would have it write. */
export async function runAsOther(script: string, args: readonly string[]) {
  const child = spawn("env", ["-i", process.execPath, script, ...args], {
    ...account,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const code = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, stdout, stderr };
}
