// Bundles the console (http/console) into dist/http/console-page, with a .br and a .gz beside each text, and the licences of the libraries in it.
// Left alone when none of its sources has changed.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const folder = "http/console";
/** What the console uses from the other rooms. */
const shared = ["http/client", "http/requests/console-pages.ts"];
const target = "dist/http/console-page";
const stamp = "dist/http/console.sha256";

function filesBelow(directory) {
  if (statSync(directory).isFile()) return [directory];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function sourceDigest() {
  const hash = createHash("sha256")
    .update(readFileSync("package-lock.json"))
    .update(readFileSync(new URL(import.meta.url)));
  for (const path of [folder, ...shared].flatMap(filesBelow)) {
    if (/(?<!\.d)\.(tsx?|css|html|svg|json)$/.test(path)) hash.update(path).update(readFileSync(path));
  }
  return hash.digest("hex");
}

/** A text as browsers accept it. A .gz or .br that saves nothing is not written. */
function compress(path) {
  const bytes = readFileSync(path);
  const brotli = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
  for (const [ending, smaller] of [
    ["gz", gzipSync(bytes, { level: 9 })],
    ["br", brotliCompressSync(bytes, brotli)],
  ]) {
    if (smaller.length < bytes.length) writeFileSync(`${path}.${ending}`, smaller);
  }
}

const digest = sourceDigest();
if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== digest || !existsSync(join(target, "index.html"))) {
  const vite = createRequire(new URL("./compilers/package.json", import.meta.url)).resolve("vite");
  const { build } = await import(pathToFileURL(vite).href);
  rmSync(stamp, { force: true });
  rmSync(target, { recursive: true, force: true });
  await build({
    configFile: false,
    root: resolve(folder),
    // Relative, and index.html has a <base>: the service may be served below a path.
    base: "./",
    publicDir: false,
    logLevel: "error",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    worker: { format: "es" },
    build: {
      outDir: resolve(target),
      target: "es2022",
      // An inlined file would be a data: URL, which the policy of the page refuses.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      license: { fileName: "LICENSES.md" },
      // The part with three is loaded only when it is looked at.
      chunkSizeWarningLimit: 1_000,
    },
  });
  for (const path of filesBelow(target)) if (/\.(js|css|html|svg)$/.test(path)) compress(path);
  mkdirSync("dist/http", { recursive: true });
  writeFileSync(stamp, digest);
}
