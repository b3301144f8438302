import { spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Test } from "tap";

export function succeeds(command: string, args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

function mount(path: string, size: string): boolean {
  return succeeds("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", path]);
}

/** False, or why it cannot be tried here: for `skip`. */
export function mountsDisks(): string | false {
  const path = mkdtempSync(join(tmpdir(), "small-disk-"));
  const isMounted = mount(path, "1m") && succeeds("umount", [path]);
  rmdirSync(path);
  return isMounted ? false : "no file system can be mounted here";
}

/** The path of a disk of this size (such as `24m`), until the test ends. */
export function mountDisk(t: Test, size: string): string {
  const path = mkdtempSync(join(tmpdir(), "small-disk-"));
  if (!mount(path, size)) throw new Error(`no disk of ${size} at ${path}`);
  t.teardown(() => {
    succeeds("umount", [path]);
    rmdirSync(path);
  });
  return path;
}
