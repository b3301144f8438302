import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t, { type Test } from "tap";
import { temporaryDirectory } from "./helpers/recorder/recorder-harness.js";

/** What a fresh clone has of what is run before anything is built. */
function freshClone(t: Test): string {
  const folder = temporaryDirectory(t);
  mkdirSync(join(folder, "http"));
  for (const path of ["package.json", "package-lock.json", "http/check-node.mjs", "http/inspection-service.mjs"]) {
    cpSync(path, join(folder, path));
  }
  cpSync(".ci", join(folder, ".ci"), { recursive: true, filter: (path) => !path.includes("node_modules") });
  return folder;
}

/** @param version what Node is to say that it is */
function runNode(folder: string, args: readonly string[], version = process.versions.node) {
  const said = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`;
  const preload = ["--import", `data:text/javascript,${encodeURIComponent(said)}`];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...preload, ...args], {
    cwd: folder,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

t.test("a Node that is too old is told so in one line, before anything is installed or built", async (t) => {
  const folder = freshClone(t);
  for (const version of ["12.22.12", "18.20.8", "20.18.3", "21.7.3", "22.11.0"]) {
    const stderr = `inspection-service needs Node 20.19 or newer 20.x, or 22.12 or newer; this is Node ${version}.\n`;
    for (const args of [
      [".ci/setup.mjs", "product"],
      [".ci/setup.mjs"],
      [".ci/build.mjs"],
      ["http/inspection-service.mjs", "serve"],
    ]) {
      t.same(runNode(folder, args, version), { status: 1, stdout: "", stderr }, `${version}: ${args.join(" ")}`);
    }
  }
  t.equal(existsSync(join(folder, "node_modules")), false);
  for (const version of ["20.19.0", "22.12.0", "23.0.0"]) {
    t.match(runNode(folder, ["http/inspection-service.mjs"], version).stderr, /not built yet/, version);
  }
  const { engines } = JSON.parse(readFileSync("package.json", "utf8")) as { engines: { node: string } };
  t.equal(engines.node, "^20.19 || >=22.12");
});

t.test("the command in a clone where nothing is built says what to do, in one line", async (t) => {
  const { status, stdout, stderr } = runNode(freshClone(t), ["http/inspection-service.mjs", "serve"]);
  t.equal(status, 1);
  t.equal(stdout, "");
  t.match(stderr, /^inspection-service is not built yet: .*`npm install`.*\n$/);
});

t.test("the command is executable: npx in a clone runs the file as git has it", async (t) => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  t.equal(spawnSync("http/inspection-service.mjs", ["--version"], { encoding: "utf8" }).stdout, `${version}\n`);
});

t.test("npm start compiles the product and the example cell alone, without any tool of tests", async (t) => {
  const compilers = createRequire(pathToFileURL(".ci/compilers/package.json"));
  const tsc = compilers.resolve("typescript/package.json").replace("package.json", "bin/tsc");
  const { stdout } = spawnSync(process.execPath, [tsc, "-p", ".ci/tsconfig.json", "--listFilesOnly"], {
    encoding: "utf8",
  });
  const files = stdout.trim().split("\n");
  t.ok(files.some((path) => path.endsWith("/http/main.ts")));
  t.same(
    files.filter((path) =>
      /\/bench\/|\.test\.ts$|node_modules\/(openapi-|tap\/)/.test(path.replace(process.cwd(), "")),
    ),
    [],
  );
});
