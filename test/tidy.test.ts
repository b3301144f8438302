import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import { brokenLinks, machinePaths, roomsWithoutText, seedsByChance, wideDocuments } from "./helpers/house-rules.js";
import {
  fileSystemBreaches,
  folderBreaches,
  importCycles,
  inventedNames,
  loosePatternBreaches,
  nameBreaches,
  referencesOf,
  type SourceFiles,
  soleImportBreaches,
  topLevelBreaches,
  unusedFiles,
} from "./helpers/import-rules.js";
import { listOf } from "./helpers/list-of.js";

/** Started by name, and so imported by nobody. Threads and processes that a `new URL(…)` names are found without this list. */
const ENTRY_POINTS = {
  "http/main.ts": "package.json's bin, and npm start",
  "http/console/main.tsx": "index.html beside it",
  "http/client/service-client.ts": "for programs outside",
  "core/webhook/verify-webhook.ts": "package.json's exports, for receivers of webhooks",
};

const WIDE_DOCUMENTS: string[] = [];

/** Most lines of README.md, the first page. */
const MOST_README_LINES = 150;

type Sums = Record<string, Record<string, number>>;
interface Item {
  path: string;
  count: number;
}
interface SizeModule {
  longFiles(files: SourceFiles): Item[];
  longFunctions(files: SourceFiles): Item[];
  fullFolders(paths: Iterable<string>): Item[];
  sizeOf(files: SourceFiles): { sums: Sums };
  excesses(sums: Sums, bounds: Sums): string[];
  lowered(sums: Sums, bounds: Sums): Sums;
}
const size = (await import(pathToFileURL(".ci/size.mjs").href)) as SizeModule;

const SOURCE_FOLDERS = ["core", "storage", "workers", "http", "bench", "test"];

function sourceFiles(): Map<string, string> {
  const files = new Map<string, string>();
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (/\.tsx?$/.test(entry.name)) files.set(path, readFileSync(path, "utf8"));
    }
  };
  for (const folder of SOURCE_FOLDERS) if (existsSync(folder)) walk(folder);
  return files;
}

const made = (files: Record<string, string>): Map<string, string> => new Map(Object.entries(files));

t.test("the repository", async (t) => {
  const files = sourceFiles();
  t.ok(files.has("core/run/run-state.ts") && files.has("test/tidy.test.ts"), `reads ${files.size} files`);
  t.same(folderBreaches(files), [], "imports follow the folders");
  t.same(fileSystemBreaches(files), [], "one file-system seam");
  t.same(soleImportBreaches(files), [], "one importer of each server and pool");
  t.same(importCycles(files), [], "no cycle");
  t.same(unusedFiles(files, ENTRY_POINTS, "product"), [], "no file that nobody imports");
  t.same(nameBreaches(files.keys()), [], "names");
  t.same(inventedNames(files), [], "names of the field");
  t.same(loosePatternBreaches(files), [], "no assertion that cannot fail");
  t.same(seedsByChance(files), [], "random tests are the same each time");
  t.test("all that is tracked", { skip: existsSync(".git") ? false : "not a git checkout" }, async (t) => {
    const listed = execFileSync("git", ["ls-files", "-z"], { encoding: "utf8", maxBuffer: 1 << 24 });
    const tracked = listed.split("\0").filter((path) => path !== "" && existsSync(path));
    const texts = new Map(tracked.map((path) => [path, readFileSync(path, "utf8")]));
    t.same(topLevelBreaches(tracked), []);
    const bounds = JSON.parse(texts.get(".ci/size-bounds.json") as string);
    t.same(size.excesses(size.sizeOf(texts).sums, bounds), [], "no larger than .ci/size-bounds.json says");
    t.ok((texts.get("README.md") as string).split("\n").length <= MOST_README_LINES + 1, "a short first page");
    t.same(wideDocuments(texts).sort(), [...WIDE_DOCUMENTS].sort(), "documents of at most 120 columns");
    t.same(machinePaths(texts), [], "no path of a machine");
    t.same(brokenLinks(texts), [], "links lead to what is there");
    t.same(roomsWithoutText(texts), [], "each folder says what it is for");
  });
});

t.test("a file and a function that are too long, and a folder that is too full, are found", async (t) => {
  const lines = (count: number): string => "x\n".repeat(count);
  const files = { "core/a.ts": lines(401), "core/b.ts": lines(400), "http/README.md": lines(402) };
  const data = { "test/fuzz/corpus/a.ts": lines(500), "test/helpers/mutants/store-mutants.ts": lines(500) };
  const others = { ...data, "package-lock.json": lines(9000) };
  t.same(size.longFiles(made({ ...files, ...others })), [
    { path: "core/a.ts", count: 401 },
    { path: "http/README.md", count: 402 },
  ]);
  const inner = (count: number): string => `const a = 1;\nconst f = () => {\n${"g();\n".repeat(count - 2)}};\n`;
  t.same(size.longFunctions(made({ "core/a.ts": inner(70), "core/b.ts": inner(71) })), [
    { path: "core/b.ts:2", count: 71 },
  ]);
  const folder = Array.from({ length: 17 }, (_, at) => `core/run/${at}.ts`);
  t.same(size.fullFolders([...folder, "core/a.ts"]), [{ path: "core/run/", count: 17 }]);
  t.same(size.fullFolders([...folder.slice(1), "core/run/below/a.ts"]), []);
  const { sums } = size.sizeOf(made({ ...files, "http/console/a.css": "a", ".ci/a.mjs": inner(80) }));
  t.match(sums, {
    "lines of code": { product: 801, console: 1, rest: 81 },
    "lines beyond 400 of files": { product: 3 },
    "lines beyond 70 of functions": { rest: 10 },
  });
});

t.test("a bound that is exceeded or missing fails, and bounds only go down", async (t) => {
  const bounds = { lines: { product: 10, test: 20 }, files: { test: 5, product: 3 } };
  t.same(size.excesses({ lines: { product: 10, test: 15 }, files: {} }, bounds), []);
  t.same(size.excesses({ lines: { product: 11 }, files: { test: 5, bench: 1 } }, bounds), [
    "product: 11 lines, and at most 10 are allowed",
    "bench: 1 files, and at most 0 are allowed",
  ]);
  const reached = { lines: { product: 11, test: 15 }, files: { test: 4, bench: 1 } };
  t.same(size.lowered(reached, bounds), { lines: { product: 10, test: 15 }, files: { test: 4 } });
});

t.test("a document that is too wide is found", async (t) => {
  t.same(wideDocuments(made({ "a.md": `| ${"x".repeat(200)}\n${"ü".repeat(120)}`, "b.ts": "x".repeat(121) })), []);
  t.same(wideDocuments(made({ "a.md": `\n${"ü".repeat(121)}` })), ["a.md"]);
});

t.test("a path of a machine and a link that leads nowhere fail", async (t) => {
  for (const root of ["home/", "root/", "Users/"])
    t.same(machinePaths(made({ "a.md": `in /${root}me` })), ["a.md"], root);
  t.same(machinePaths(made({ "a.ts": '"https://x.y/home/x"; "home/x"; "../root/x"' })), []);
  const other = "# The title: `a` & more\n\ntext";
  const links = (text: string) => brokenLinks(made({ "http/README.md": text, "core/a.md": other }));
  t.same(
    links("# Here\n[a](../core/a.md) [b](../core) [c](#here) [d](https://x.y/z) [e](../core/a.md#the-title-a--more)"),
    [],
  );
  t.same(links("```js\nx[0](gone.md)\n```"), []);
  t.same(links("[a](gone.md) [b](#there) [c](../core/a.md#title)"), [
    "http/README.md: gone.md",
    "http/README.md: #there",
    "http/README.md: ../core/a.md#title",
  ]);
});

t.test("a folder that does not say what it is for is found", (t) => {
  const rooms = roomsWithoutText(
    made({
      "core/README.md": "",
      "core/run/a.ts": "",
      "test/README.md": "`helpers/store`",
      "test/core/run/a.test.ts": "",
      "test/helpers/store/life/a.ts": "",
      "test/helpers/disk/a.ts": "",
      ".ci/size.mjs": "",
    }),
  );
  t.same(rooms, ["core/run", "test/helpers", "test/helpers/disk"]);
  t.end();
});

t.test("a pattern that holds of more than it says is found, a call that is none is not", async (t) => {
  const text = [
    "t.match(found, { a: [] });",
    't.match(found, [{ b: { c: {} } }], "what");',
    "t.match(found, { a: { length: 0 }, b: listOf(1, { c: [2] }), c: made([], {}) });",
    "t.same(found, { a: [] });",
    "text.match([]);",
  ].join("\n");
  t.same(loosePatternBreaches(made({ "test/a.test.ts": text })), [
    "test/a.test.ts:1: [] matches more than it says",
    "test/a.test.ts:2: [{ b: { c: {} } }] matches more than it says",
    "test/a.test.ts:2: {} matches more than it says",
    "test/a.test.ts:3: [2] matches more than it says",
  ]);
});

t.test("a seed that is another each time is found", async (t) => {
  const seeds = ["Date.now() % 1e9", "randomInt(9)", "Math.random()"].map(
    (by) => `const seed = Number(env.SEED ?? ${by});`,
  );
  for (const seed of seeds) t.same(seedsByChance(made({ "test/a.test.ts": seed })), ["test/a.test.ts"], seed);
  t.same(seedsByChance(made({ "test/a.test.ts": "const seed = 5;\nconst now = Date.now();" })), []);
});

t.test("references are found where they are, and only there", async (t) => {
  const text = [
    'import "./a.js";',
    'import b, { type C, d as e } from "./b.js";',
    'import * as f from "node:http";',
    'import type { G } from "./g.js";',
    'export { h } from "./h.js";',
    'export * from "./i.js";',
    'const j = await import("./j.js");',
    'const k = require("k");',
    'new Worker(new URL("./thread.js", import.meta.url));',
    'type L = import("./l.js").L;',
    '// import "./comment.js"; import("./comment.js")',
    '/* new URL("./comment.js", import.meta.url) */',
    "const s = 'import \"./string.js\"';",
    'new URL("./elsewhere.js", base);',
  ].join("\n");
  t.same(referencesOf("core/x.ts", text), [
    { specifier: "./a.js", kind: "import", names: ["*"] },
    { specifier: "./b.js", kind: "import", names: ["*", "C", "d"] },
    { specifier: "node:http", kind: "import", names: ["*"] },
    { specifier: "./g.js", kind: "import", names: ["G"] },
    { specifier: "./h.js", kind: "import", names: ["*"] },
    { specifier: "./i.js", kind: "import", names: ["*"] },
    { specifier: "./j.js", kind: "import", names: ["*"] },
    { specifier: "k", kind: "import", names: ["*"] },
    { specifier: "./thread.js", kind: "url", names: [] },
    { specifier: "./l.js", kind: "import", names: [] },
  ]);
});

t.test("an import against the direction of the folders fails", async (t) => {
  const all = {
    "core/a.ts": "",
    "storage/a.ts": "",
    "workers/a.ts": "",
    "http/a.ts": "",
    "bench/a.ts": "",
    "test/a.ts": "",
  };
  const order = ["core", "storage", "workers", "http"];
  for (const from of [...order, "bench", "test"]) {
    for (const to of [...order, "bench", "test"]) {
      const files = made({ ...all, [`${from}/x.ts`]: `import type { A } from "../${to}/a.js";` });
      const rank = order.indexOf(from);
      const allowed = rank < 0 || (order.includes(to) && order.indexOf(to) <= rank);
      t.equal(folderBreaches(files).length, allowed ? 0 : 1, `${from} → ${to}`);
    }
  }
  t.match(folderBreaches(made({ "lib/x.ts": "" })), listOf(/lib is no folder/));
  t.match(folderBreaches(made({ "core/x.ts": 'import "./gone.js";' })), listOf(/not there/));
  t.match(folderBreaches(made({ "core/x.ts": 'import "../../elsewhere/x.js";' })), listOf(/not there/));
  t.match(folderBreaches(made({ "http/x.ts": 'new URL("./gone.js", import.meta.url);' })), listOf(/not there/));
});

t.test("an import of a sibling folder that is not on the importer's list fails", async (t) => {
  const all = {
    "workers/recorder/a.ts": "",
    "workers/cell-link/link/a.ts": "",
    "workers/a.ts": "",
    "storage/log/a.ts": "",
  };
  const breaches = (path: string, to: string): number =>
    folderBreaches(made({ ...all, [path]: `import "${to}";` })).length;
  t.equal(breaches("workers/cell-link/x.ts", "../recorder/a.js"), 1);
  t.equal(breaches("workers/artefacts/pool/x.ts", "../../cell-link/link/a.js"), 1);
  t.equal(breaches("workers/demo-cell/x.ts", "../cell-link/link/a.js"), 0, "its client");
  t.equal(breaches("workers/demo-cell/x.ts", "../recorder/a.js"), 1);
  t.equal(breaches("workers/recorder/x.ts", "../cell-link/link/a.js"), 0, "the recorder starts them");
  t.equal(breaches("workers/cell-link/x.ts", "../a.js"), 0, "what all rooms share");
  t.equal(breaches("workers/cell-link/x.ts", "../../storage/log/a.js"), 0, "another folder");
});

t.test("an impure core fails", async (t) => {
  for (const specifier of [
    ...["node:fs", "fs", "node:fs/promises", "node:net", "node:http", "https", "node:tls", "node:dgram"],
    ...["node:worker_threads", "node:child_process", "child_process", "node:http2", "node:cluster"],
  ]) {
    t.match(folderBreaches(made({ "core/x.ts": `import "${specifier}";` })), listOf(/core is pure/), specifier);
  }
  t.same(folderBreaches(made({ "core/x.ts": 'import "node:buffer"; import "ajv";' })), []);
});

t.test("node:fs outside its seam fails", async (t) => {
  for (const specifier of ["node:fs", "fs", "node:fs/promises", "fs/promises"]) {
    for (const path of ["storage/log/log.ts", "workers/x.ts", "http/x.ts", "core/x.ts"]) {
      t.match(fileSystemBreaches(made({ [path]: `import { open } from "${specifier}";` })), listOf(/only storage/));
    }
    for (const path of ["storage/disk/file-system.ts", "bench/x.ts", "test/x.test.ts"]) {
      t.same(fileSystemBreaches(made({ [path]: `import { open } from "${specifier}";` })), []);
    }
  }
  t.match(fileSystemBreaches(made({ "http/x.ts": 'await import("node:fs");' })), listOf(/only storage/), "dynamic");
  t.match(fileSystemBreaches(made({ "http/x.ts": 'require("fs");' })), listOf(/only storage/), "required");
});

t.test("a second importer of a server or the pool fails", async (t) => {
  const importers = {
    "uWebSockets.js": ['import uws from "uWebSockets.js";', 'const u = require("@btc-vision/uwebsockets.js");'],
    piscina: ['import { Piscina } from "piscina";', 'import type { Piscina } from "piscina";'],
    "node:http": ['import { createServer } from "node:http";', 'import * as h from "http"; h.createServer();'],
  };
  for (const [what, [first, second]] of Object.entries(importers)) {
    const one = { "http/a.ts": first as string, "bench/b.ts": second as string, "test/c.ts": first as string };
    t.same(soleImportBreaches(made(one)), [], `${what}: one`);
    t.equal(soleImportBreaches(made({ ...one, "workers/d.ts": second as string })).length, 1, `${what}: two`);
  }
  const client = 'import { request } from "node:http"; import http from "node:http"; http.request("x");';
  t.same(soleImportBreaches(made({ "http/a.ts": importers["node:http"][0] as string, "workers/b.ts": client })), []);
});

t.test("a cycle fails", async (t) => {
  t.match(importCycles(made({ "core/a.ts": 'import "./a.js";' })), listOf("core/a.ts → core/a.ts"));
  const three = {
    "core/a.ts": 'import "./b.js";',
    "core/b.ts": 'import type { C } from "./c.js";',
    "core/c.ts": 'export { a } from "./a.js";',
  };
  t.same(importCycles(made(three)), ["core/a.ts → core/b.ts → core/c.ts → core/a.ts"]);
  t.same(importCycles(made({ ...three, "core/c.ts": "" })), []);
  const diamond = {
    "core/a.ts": 'import "./b.js"; import "./c.js";',
    "core/b.ts": 'import "./c.js";',
    "core/c.ts": "",
  };
  t.same(importCycles(made(diamond)), []);
});

t.test("a file that nobody imports fails", async (t) => {
  const files = made({
    "http/main.ts": 'import "./a.js";',
    "http/a.ts": 'new URL("../workers/thread.js", import.meta.url);',
    "workers/thread.ts": "",
    "core/tested.ts": 'import "./tested.js";',
    "test/tested.test.ts": 'import "../core/tested.js";',
    "bench/alone.ts": "",
  });
  t.same(unusedFiles(files, { "http/main.ts": "entry" }, "all"), []);
  t.same(unusedFiles(files, { "http/main.ts": "entry" }, "product"), ["nobody imports core/tested.ts"]);
  t.same(unusedFiles(files, {}, "all"), ["nobody imports http/main.ts"]);
});

t.test("a name that says nothing, or is not kebab-case, fails", async (t) => {
  for (const name of ["core/index.ts", "test/utils.ts", "http/common.ts", "storage/helpers.ts", "test/utils.test.ts"]) {
    t.match(nameBreaches([name]), listOf(/says nothing/), name);
  }
  for (const name of ["core/runState.ts", "core/RunState.ts", "core/run_state.ts", "core/Sub/run.ts", "core/a.b.ts"]) {
    t.match(nameBreaches([name]), listOf(/kebab/), name);
  }
  const invented = { "core/front-des\x6b.ts": "class RunLedge\x72 {} // a desktop, a bookkeeper" };
  t.equal(inventedNames(made(invented)).length, 2);
  t.same(
    nameBreaches(["core/run/run-state.ts", "test/core/run-state.test.ts", "core/uuid-v7.ts", "test/helpers/x.ts"]),
    [],
  );
});

t.test("a stray entry at the top level fails", async (t) => {
  const fine = ["package.json", "package-lock.json", "tsconfig.json", "README.md", "LICENSE", "CHANGELOG.md"];
  t.same(topLevelBreaches([...fine, ".ci/run", ".gitignore", "core/a.ts", "http/b.ts", "bench/c.ts", "test/d.ts"]), []);
  for (const stray of ["node_modules", "docs/x.md", "src/a.ts", "notes.txt", "dist/x.js"]) {
    t.equal(topLevelBreaches([...fine, stray]).length, 1, stray);
  }
});
