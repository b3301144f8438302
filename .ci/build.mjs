// Compiles into dist/: everything, or with `product` the service alone, without tests and benchmarks. A file removed from the sources is
// removed from dist too: a stale test or module there would still run.
import "../http/check-node.mjs";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { buildAllValidators } from "./build-validators.mjs";
import { runQuietly, stage } from "./stage.mjs";

const COMPILED = /\.(js(\.map)?|d\.ts)$/;

/** What .ci/build-console.mjs makes: it removes its own stale files. */
const BUNDLED = "http/console-page";

/** What the build makes without the compiler has only a declaration there. */
function hasSource(path) {
  return [".ts", ".d.ts"].some((ending) => existsSync(path.replace(COMPILED, ending)));
}

function removeStale(directory) {
  if (directory === BUNDLED || !existsSync(join("dist", directory))) return;
  for (const entry of readdirSync(join("dist", directory), {
    withFileTypes: true,
  })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      removeStale(path);
    } else if (COMPILED.test(entry.name) && !hasSource(path)) {
      rmSync(join("dist", path));
    }
  }
}

/** A package in .ci/compilers. Tests use another TypeScript: the native compiler has no programming interface. */
function findPackage(name) {
  try {
    return dirname(createRequire(import.meta.resolve("./compilers/package.json")).resolve(`${name}/package.json`));
  } catch {
    console.error("the compilers are not installed: `npm install` installs them, and builds");
    process.exit(1);
  }
}

/** Files of swagger-ui that http/routes/docs-routes.ts serves, with their licences: as a dependency it would bring a package that reports installations. */
function copySwaggerUi() {
  const target = "dist/http/swagger-ui";
  mkdirSync(target, { recursive: true });
  const served = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"];
  for (const name of [...served, "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE"]) {
    copyFileSync(join(swaggerUi, name), join(target, name));
  }
}

/**
 * tap as one module, which the tests find before node_modules: its hundreds of modules cost each file of tests a quarter of a second. tap leaves
 * files in folders named @tapjs out of the stacks that it prints. tap tells by async_hooks which test an uncaught error belongs to, and with them every
 * promise costs several times as much. Without them such an error ends the file, which fails, with the error's stack on stderr.
 */
async function bundleTap() {
  const { build } = await import(join(findPackage("vite"), "dist/node/index.js"));
  const banner = `import asyncHooks from "node:async_hooks"; import { syncBuiltinESMExports } from "node:module";
    asyncHooks.createHook = () => ({ enable() {}, disable() {} }); syncBuiltinESMExports();`;
  const output = { entryFileNames: "tap.mjs", codeSplitting: false, banner };
  const outDir = "dist/node_modules/@tapjs";
  const entry = "node_modules/tap/dist/esm/index.js";
  const options = { ssr: entry, outDir, rolldownOptions: { output } };
  await build({ configFile: false, logLevel: "error", ssr: { noExternal: true }, build: options });
  mkdirSync("dist/node_modules/tap", { recursive: true });
  writeFileSync("dist/node_modules/tap/package.json", '{ "type": "module", "main": "../@tapjs/tap.mjs" }');
}

async function compile() {
  removeStale("");
  const isProduct = process.argv[2] === "product";
  const node = (...args) => runQuietly(process.execPath, args);
  const typed = (project) => node(join(typescript, "bin/tsc"), "-p", project);
  const page = node(".ci/build-console.mjs");
  copySwaggerUi();
  const steps = await Promise.all([typed(".ci/tsconfig.json"), node(".ci/build-kernels.mjs")]);
  const isOk = () => steps.every(({ ok }) => ok);
  if (isOk()) {
    await buildAllValidators();
    steps.push(await node(".ci/build-interface.mjs", ...(isProduct ? [] : ["types"])));
  }
  // All that is not the product may use the types that have just been made. The bundler of the console does not read them.
  if (isOk() && !isProduct) {
    const projects = ["tsconfig.json", "http/console/tsconfig.json", "workers/artefacts/assembly/tsconfig.json"];
    await bundleTap();
    steps.push(...(await Promise.all(projects.map(typed))));
  }
  return [...steps, await page];
}

// `npx` in a clone runs `prepare` without showing its output, and a failure there would break npm's cache for this clone.
if (process.env.npm_lifecycle_event === "prepare" && process.env.npm_command === "exec") process.exit(0);
const typescript = findPackage("typescript");
const swaggerUi = findPackage("swagger-ui-dist");
const results = await stage("compiling", compile);
for (const { output } of results) process.stderr.write(output);
process.exit(results.every(({ ok }) => ok) ? 0 : 1);
