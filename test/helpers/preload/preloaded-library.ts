import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Test } from "tap";

/** `false` where libraries can be made; else why a test that needs one is skipped. */
export const hasNoCompiler = spawnSync("gcc", ["--version"], { stdio: "ignore" }).status === 0 ? false : "no gcc";

/** Compiles `test/helpers/preload/<name>.c` to a library for LD_PRELOAD, in a folder of its own; gives its path. */
export function preloadedLibrary(t: Test, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const library = join(folder, `${name}.so`);
  const compiled = spawnSync("gcc", ["-shared", "-fPIC", "-o", library, `test/helpers/preload/${name}.c`, "-ldl"], {
    encoding: "utf8",
  });
  if (compiled.status !== 0) throw new Error(compiled.stderr);
  return library;
}
