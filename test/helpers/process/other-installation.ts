import { cpSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** Of the compiled product, where this test runs. */
const COMPILED = "dist";
const FOLDERS = ["core", "storage", "workers", "http"];
const KERNELS = join("workers", "artefacts", "kernels.wasm");

/** Begins as a module does, and goes on with a section that no engine knows: what a machine without its instructions says is the same error. */
const REFUSED_MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 0x7f, 1, 0);

/**
 * Another installation of the product, in a folder of the repository, so that it finds its packages: one whose kernels in WebAssembly are not
 * there, or do not compile. The way to what is in it: `await import(urlOf("http/downloads/artefact-work.js"))`.
 */
export function installationWithout(kernels: "absent" | "refused", folder: string): (path: string) => string {
  for (const part of FOLDERS) {
    cpSync(join(COMPILED, part), join(folder, part), {
      recursive: true,
      filter: (path) => !/\.(wasm|map|sha256|d\.ts)$/.test(path),
    });
  }
  if (kernels === "refused") writeFileSync(join(folder, KERNELS), REFUSED_MODULE);
  return (path) => pathToFileURL(resolve(folder, path)).href;
}
