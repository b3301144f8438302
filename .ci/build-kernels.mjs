// Compiles the kernels of workers/artefacts/assembly into one WebAssembly module. Left alone when no source of it has changed.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const folder = "workers/artefacts/assembly";
const target = "dist/workers/artefacts/kernels.wasm";
const stamp = `${target}.sha256`;

function sourceDigest() {
  const hash = createHash("sha256");
  const sources = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".ts"));
  const paths = ["package-lock.json", ".ci/build-kernels.mjs", ...sources.sort().map((name) => join(folder, name))];
  for (const path of paths) hash.update(path).update(readFileSync(path));
  return hash.digest("hex");
}

async function buildKernels() {
  const digest = sourceDigest();
  if (existsSync(target) && existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return true;
  const { default: asc } = await import("assemblyscript/asc");
  mkdirSync(dirname(target), { recursive: true });
  // Remove the digest first: an interrupted build must not look complete.
  rmSync(stamp, { force: true });
  const { error, stderr } = await asc.main([
    join(folder, "kernels.ts"),
    `--outFile=${target}`,
    "--runtime=stub",
    "--noAssert",
    "--enable=simd,threads,bulk-memory,sign-extension,mutable-globals,nontrapping-f2i",
    "--importMemory",
    "--sharedMemory",
    "--initialMemory=1",
    "--maximumMemory=32768",
    // Vectors cross between sources; what the module exports has none.
    "--disableWarning=112",
    "-O3",
    "--converge",
  ]);
  if (error !== null) {
    console.error(`${error.message}\n${stderr.toString()}`);
    return false;
  }
  writeFileSync(stamp, digest);
  return true;
}

process.exit((await buildKernels()) ? 0 : 1);
