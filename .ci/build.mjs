// Compiles everything into dist/. A file removed from the sources is removed from dist too: a stale test or module
// there would still run.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildKernels } from "./build-kernels.mjs";
import { buildAllValidators, VALIDATORS } from "./build-validators.mjs";

const COMPILED = /\.(js(\.map)?|d\.ts)$/;

function removeStale(directory) {
  if (!existsSync(join("dist", directory))) return;
  for (const entry of readdirSync(join("dist", directory), {
    withFileTypes: true,
  })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      removeStale(path);
    } else if (COMPILED.test(entry.name) && !VALIDATORS.includes(path) && !existsSync(path.replace(COMPILED, ".ts"))) {
      rmSync(join("dist", path));
    }
  }
}

removeStale("");
const result = spawnSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.json"], {
  stdio: ["ignore", 2, 2],
});
if (result.status !== 0) process.exit(result.status ?? 1);
await buildAllValidators();
process.exit((await buildKernels()) ? 0 : 1);
