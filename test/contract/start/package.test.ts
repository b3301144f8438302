import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";

const run = promisify(execFile);

/** Without the variables that `npm test` sets for its own scripts. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^npm_(lifecycle|package|command)/.test(name)),
);

/** What the sources of the product become. The client is a part of the console; assembly/ becomes kernels.wasm; .d.ts files declare modules that the build makes. */
function compiledModules(): string[] {
  return ["core", "storage", "workers", "http"]
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)))
    .filter((path) => path.endsWith(".ts") && !/^(workers\/artefacts\/assembly|http\/(client|console))\//.test(path))
    .map((path) => `dist/${path.replace(/(\.d)?\.ts$/, ".js")}`);
}

/** What the bundler makes of http/console, with the licences of the libraries. */
function consoleFiles(): string[] {
  const entries = readdirSync("dist/http/console-page", { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

const SWAGGER_UI = [
  ...["LICENSE", "NOTICE", "favicon-32x32.png", "swagger-ui.css", "swagger-ui-bundle.js"],
  "swagger-ui-bundle.js.LICENSE.txt",
];

interface Packed {
  filename: string;
  files: { path: string; mode: number }[];
}

/** Packs dist as the tests find it: `prepack` would compile once more. */
async function pack(folder: string): Promise<Packed> {
  const args = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const { stdout } = await run("npm", args, { env: environment });
  // npm 12 has packages by their names where others have a list.
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, Packed>);
  return packed as Packed;
}

/** As README.md says. @returns why the registry could not be asked, undefined when the package is installed */
async function install(tarball: string, folder: string): Promise<string | undefined> {
  writeFileSync(join(folder, "package.json"), "{}");
  const options = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  try {
    await run("npm", ["install", tarball, ...options], { cwd: folder, env: environment });
    return undefined;
  } catch (error) {
    const code = /E(NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NOTCACHED)/.exec((error as Error).message)?.[0];
    if (code === undefined) throw error;
    return `the registry cannot be asked: ${code}`;
  }
}

t.test("the package has what runs the service, and nothing else", async (t) => {
  const folder = temporaryDirectory(t);
  const packed = await pack(folder);
  const paths = packed.files.map(({ path }) => path).sort();
  const others = ["CHANGELOG.md", "LICENSE", "README.md", "package.json", "dist/core/webhook/verify-webhook.d.ts"];
  const workers = readdirSync("workers", { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const guides = ["http", "http/commands", "http/demo", "storage", ...workers.map(({ name }) => `workers/${name}`)];
  const expected = [
    ...others,
    ...guides.map((folder) => `${folder}/README.md`),
    "storage/BACKUP.md",
    "storage/log/FORMAT.md",
    "workers/cell-link/MESSAGES.md",
    "workers/cell-link/SESSION.md",
    "http/server/nginx.conf",
    "dist/workers/artefacts/kernels.wasm",
    ...SWAGGER_UI.map((name) => `dist/http/swagger-ui/${name}`),
    ...consoleFiles(),
    "http/check-node.mjs",
    "http/inspection-service.mjs",
    ...compiledModules(),
  ];
  t.strictSame(paths, expected.sort());
  const lost = paths
    .filter((path) => path.endsWith(".md") && path !== "README.md")
    .flatMap((page) => linksOf(page).filter((to) => !paths.includes(to)));
  t.same([...new Set(lost)], ["http/client/README.md"], "its pages lead to its pages, but for what is not in it");
  t.equal(
    readFileSync("dist/core/webhook/verify-webhook.d.ts", "utf8").includes("import"),
    false,
    "the declaration needs no other",
  );

  const missing = await install(join(folder, packed.filename), folder);
  t.test("installed in an empty folder", missing === undefined ? {} : { skip: missing }, async (t) => {
    const installed = readdirSync(join(folder, "node_modules"));
    t.same(
      installed.filter((name) =>
        ["typescript", "tap", "assemblyscript", "inspection-compilers", "vite", "preact"].includes(name),
      ),
      [],
      "no tool came with it",
    );
    const lock = readFileSync(join(folder, "node_modules/.package-lock.json"), "utf8");
    const { packages } = JSON.parse(lock) as { packages: Record<string, { hasInstallScript?: true }> };
    const scripted = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
    // Both belong to the old build of uWebSockets.js, which works without them. Nothing else has a script to run.
    t.match(scripted.sort(), listOf(/\/bufferutil$/, /\/utf-8-validate$/));
    const help = await run("npx", ["inspection-service", "--help"], { cwd: folder, env: environment });
    t.match(help.stdout, /^Usage: inspection-service/);

    writeFileSync(
      join(folder, "receiver.mjs"),
      'import { verifyWebhook } from "inspection-results-service/verify"; console.log(typeof verifyWebhook);',
    );
    const receiver = await run(process.execPath, ["receiver.mjs"], { cwd: folder });
    t.equal(receiver.stdout, "function\n");

    await servesRun(t, resolve(folder, "node_modules/.bin/inspection-service"));
  });
});

/** The pages that a page leads to. */
function linksOf(page: string): string[] {
  const links = readFileSync(page, "utf8").matchAll(/\]\(([^)#:]+\.md)/g);
  return [...links].map(([, to]) => join(dirname(page), to as string));
}

/** The demo cell makes the run, so missing kernels and threads that do not start are found too. */
async function servesRun(t: Test, script: string): Promise<void> {
  const service = await ServiceProcess.startFor(t, { script, args: ["demo", "--runs", "1", "--seed", "7"] });
  const get = (path: string) => fetch(`http://127.0.0.1:${service.port}${path}`);
  t.equal((await get("/livez")).status, 200);
  t.equal((await get("/docs/swagger-ui-bundle.js")).status, 200);
  t.match(await (await get("/console")).text(), /^<!doctype html>/);
  const newest = async () => {
    const list = (await (await get("/runs")).json()) as { runs: { id: string; status: string }[] };
    return list.runs[0];
  };
  let made = await newest();
  while (made === undefined || !/^(completed|failed|cancelled)$/.test(made.status)) {
    await pause(50);
    made = await newest();
  }
  const files = (await (await get(`/runs/${made.id}/files`)).json()) as { name: string }[];
  const formats = new Set(files.map(({ name }) => name.replace(/^(frame|step)-[0-9a-f-]+[.]?/, "")));
  for (const format of ["npy", "ply", "raw.ply", "png"]) t.ok(formats.has(format), format);
  for (const { name } of files) {
    const answer = await get(`/runs/${made.id}/files/${name}`);
    t.equal(answer.status, 200, name);
    t.ok((await answer.arrayBuffer()).byteLength > 0, name);
  }
  t.equal((await service.end()).code, 0);
}
