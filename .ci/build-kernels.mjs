// Compiles the kernels of workers/artefacts into one WebAssembly module: those of kernels/, which TypeScript compiles too, against the
// memory of assembly/, and what exists in AssemblyScript only. Left alone when no source of it has changed.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const folder = "workers/artefacts";
const target = `dist/${folder}/kernels.wasm`;
const stamp = `${target}.sha256`;

function sourceDigest() {
  const hash = createHash("sha256")
    .update(readFileSync("package-lock.json"))
    .update(readFileSync(new URL(import.meta.url)));
  for (const directory of ["kernels", "assembly"]) {
    for (const name of readdirSync(join(folder, directory), { recursive: true }).sort()) {
      if (name.endsWith(".ts")) hash.update(name).update(readFileSync(join(folder, directory, name)));
    }
  }
  return hash.digest("hex");
}

/**
 * Sources as AssemblyScript takes them: its own of that name where there is one, no type-only imports, no extension in module names, and
 * comparisons made numbers as it does that.
 */
function readSource(name, baseDirectory) {
  const path = join(baseDirectory, name);
  const own = path.replace(`${folder}/kernels/`, `${folder}/assembly/`);
  const source = existsSync(own) ? own : path;
  if (!existsSync(source)) return null;
  return readFileSync(source, "utf8")
    .replaceAll(/\btype [fi]\d+,\s*/g, "")
    .replaceAll(/\bNumber\(/g, "i32(")
    .replaceAll(/(from "\.[^"]*)\.js"/g, '$1"');
}

async function buildKernels() {
  const digest = sourceDigest();
  if (existsSync(target) && existsSync(stamp) && readFileSync(stamp, "utf8") === digest) return true;
  const { default: asc } = await import("assemblyscript/asc");
  const outputs = new Map();
  const { error, stderr } = await asc.main(
    [
      `${folder}/assembly/kernels.ts`,
      "--outFile=kernels.wasm",
      "--runtime=stub",
      "--noAssert",
      "--enable=simd,threads,bulk-memory,sign-extension,mutable-globals,nontrapping-f2i",
      "--importMemory",
      "--sharedMemory",
      "--initialMemory=1",
      "--maximumMemory=32768",
      "-O3",
      "--converge",
    ],
    {
      readFile: readSource,
      writeFile: (name, contents) => outputs.set(name, contents),
      listFiles: () => [],
    },
  );
  if (error !== null) {
    console.error(`${error.message}\n${stderr.toString()}`);
    return false;
  }
  mkdirSync(dirname(target), { recursive: true });
  // Whatever an interrupted build leaves, no digest vouches for it.
  rmSync(stamp, { force: true });
  writeFileSync(target, outputs.get("kernels.wasm"));
  writeFileSync(stamp, digest);
  return true;
}

process.exit((await buildKernels()) ? 0 : 1);
