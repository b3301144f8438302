import { execFile } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { listOf } from "../../helpers/list-of.js";
import { ServiceProcess } from "../../helpers/process/service-process.js";
import { temporaryDirectory } from "../../helpers/recorder/recorder-harness.js";
import { isFullSize } from "../../helpers/test-size.js";

const run = promisify(execFile);

/** Without the variables that `npm test` sets for its own scripts. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^npm_(lifecycle|package|command)/.test(name)),
);

/** Paths of other Node binaries, separated by colons; `.ci/run` installs some. */
const OTHER_NODES = (process.env.TEST_NODE_BINARIES ?? "").split(":").filter((path) => path !== "");

const QUICK = "dist/test/helpers/process/quick-demo-cell.js";

/** What the sources of the product become. assembly/ becomes kernels.wasm; .d.ts files declare modules that the build makes, or types alone. */
function compiledModules(): string[] {
  return ["core", "storage", "workers", "http"]
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)))
    .filter((path) => path.endsWith(".ts") && !/^(workers\/artefacts\/assembly|http\/console)\//.test(path))
    .filter((path) => path !== "http/client/interface-types.d.ts")
    .map((path) => `dist/${path.replace(/(\.d)?\.ts$/, ".js")}`);
}

/** What the bundler makes of http/console, with the licences of the libraries. */
function consoleFiles(): string[] {
  const entries = readdirSync("dist/http/console-page", { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

/** The declarations that those of package.json's exports need. */
function declarations(): string[] {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
    exports: Record<string, string | { types: string }>;
  };
  const found = new Set<string>();
  const take = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    const imports = readFileSync(path, "utf8").matchAll(/from "(\.[^"]+)\.js"/g);
    for (const [, to] of imports) take(join(dirname(path), `${to}.d.ts`));
  };
  for (const entry of Object.values(exports)) if (typeof entry !== "string") take(join(entry.types));
  return [...found];
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
  const others = ["CHANGELOG.md", "LICENSE", "README.md", "package.json", ...declarations()];
  const workers = readdirSync("workers", { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const parts = [
    "http/client",
    "http/commands",
    "http/demo",
    "http/demo/plant",
    "storage",
    ...workers.map(({ name }) => `workers/${name}`),
  ];
  const guides = ["http", ...parts];
  const expected = [
    ...others,
    ...guides.map((folder) => `${folder}/README.md`),
    "storage/BACKUP.md",
    "storage/log/FORMAT.md",
    "workers/cell-link/MESSAGES.md",
    "workers/cell-link/SESSION.md",
    "workers/plant/PLANT.md",
    "workers/plant/SCALE.md",
    "http/server/nginx.conf",
    "http/STATISTICS.md",
    "http/package/README.md",
    ...filesIn("http/monitoring", "http/client/examples", "workers/cell-link/examples", "workers/webhooks/examples"),
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
  t.same([...new Set(lost)], [], "its pages lead to its pages");

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

    await typesFit(t, folder);
    // Every Node of this machine serves in newer-node.test.ts; in a commit's size the newest one uses the exports too.
    const others = isFullSize ? OTHER_NODES : OTHER_NODES.slice(-1);
    for (const binary of [process.execPath, ...others]) await exportsWork(t, folder, binary);
    await servesRun(t, folder);
  });
});

/** The files of these folders, for people. */
function filesIn(...folders: string[]): string[] {
  return folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
}

/** A program that uses all exports. It makes a run with a file, and reads what it made. */
const PROGRAM = `
  import { createServiceClient, ServiceRequestError, type RunEvent } from "inspection-results-service/client";
  import { MessageRefusedError, ProducerClient } from "inspection-results-service/producer";
  import { verifyWebhook } from "inspection-results-service/verify";
  declare const process: { argv: string[] };
  const [, , baseUrl = "", path = ""] = process.argv;
  const producer = new ProducerClient({ address: { path }, producer: "packed" });
  await producer.welcomed();
  const program = { id: "019b76da-a800-7000-8000-0000000000ff", name: "Packed", status: "active", steps: [] };
  await producer.deliver({ type: "program.put", program });
  const id: string = producer.nextRunId();
  const client = createServiceClient({ baseUrl });
  const leave = new AbortController();
  const changes = client.changes({ signal: leave.signal });
  const first: RunEvent | void = (await changes.next()).value;
  await producer.deliver({ type: "run.create", id, program_id: program.id, serial_number: "SN-1" });
  await producer.deliver({ type: "run.start", id });
  const file = { type: "file.put", run_id: id, name: "note.txt", content_type: "text/plain" };
  await producer.deliver(file, new TextEncoder().encode("a packed note"));
  await producer.deliver({ type: "run.finish", id });
  const refused = await producer.deliver({ type: "run.start", id }).catch((error: unknown) => error);
  await producer.close();
  const second = (await changes.next()).value;
  leave.abort();
  let note = "";
  const decoder = new TextDecoder();
  for await (const chunk of client.download(\`/runs/\${id}/files/note.txt\`)) note += decoder.decode(chunk);
  const serials: unknown[] = [];
  const mark = await client.sync({}, (runs) => serials.push(...runs.map((run) => run.serial_number)));
  const { data } = await client.api.GET("/runs/{run_id}", { params: { path: { run_id: id } } });
  const missing = await client.download("/runs/none/files/x").next().catch((error: unknown) => error);
  console.log(JSON.stringify({
    events: [first?.type, second?.type], note, serials, isSameMark: mark === data?.updated_at, status: data?.status,
    refused: refused instanceof MessageRefusedError && refused.code,
    missing: missing instanceof ServiceRequestError && missing.status,
    verify: typeof verifyWebhook,
  }));
`;

/** The compiler that the project has, as a user of the package calls it: declarations are checked too. */
async function typesFit(t: Test, folder: string): Promise<void> {
  writeFileSync(join(folder, "program.mts"), PROGRAM);
  const lib = ["es2023", "dom", "dom.asynciterable"];
  const compilerOptions = { strict: true, module: "nodenext", target: "es2023", lib, types: [] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.mts"] }));
  const compiled = await run(process.execPath, [resolve("node_modules/typescript/bin/tsc")], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  );
  t.equal(compiled.stdout, "", "the declarations fit");
}

async function exportsWork(t: Test, folder: string, binary: string): Promise<void> {
  const version = (await run(binary, ["--version"])).stdout.trim();
  const service = await ServiceProcess.startFor(t, {
    binary,
    script: resolve(folder, "node_modules/.bin/inspection-service"),
  });
  const url = `http://127.0.0.1:${service.port}`;
  // It ends when it has left the stream: the watch over a silent connection, of 45 s, does not keep it.
  const options = { cwd: folder, timeout: 40_000 };
  const { stdout } = await run(binary, ["program.mjs", url, service.cellSocketPath], options);
  const expected = {
    ...{ events: ["ready", "run"], note: "a packed note", serials: ["SN-1"], isSameMark: true, status: "completed" },
    ...{ refused: "illegal_transition", missing: 404, verify: "function" },
  };
  t.same(JSON.parse(stdout), expected, `on Node ${version}`);
  t.equal((await service.end()).code, 0);
}

/** The pages that a page leads to. */
function linksOf(page: string): string[] {
  const links = readFileSync(page, "utf8").matchAll(/\]\(([^)#:]+\.md)/g);
  return [...links].map(([, to]) => join(dirname(page), to as string));
}

/** The demo cell makes the run, so missing kernels and threads that do not start are found too. */
async function servesRun(t: Test, folder: string): Promise<void> {
  // Beside the package's own files, so that it makes the package's cell quick.
  const quick = resolve(folder, "node_modules/inspection-results-service", QUICK);
  cpSync(QUICK, quick);
  const service = await ServiceProcess.startFor(t, {
    script: resolve(folder, "node_modules/.bin/inspection-service"),
    args: ["demo", "--runs", "1", "--seed", "7"],
    environment: { NODE_OPTIONS: `--import ${pathToFileURL(quick).href}` },
  });
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
