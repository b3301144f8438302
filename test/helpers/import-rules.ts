/**
 * The rules of the house about files and their imports (.github/CONTRIBUTING.md), as functions from a set of source files to a list
 * of breaches. `test/tidy.test.ts` holds them against the repository, and shows on made-up sets that each of them can fail.
 */
import ts from "typescript";

/** Path from the repository's root → text. */
export type SourceFiles = ReadonlyMap<string, string>;

export interface Reference {
  /** As written: `./x.js`, `node:fs`, `ajv`. */
  specifier: string;
  /** `url`: `new URL("./x.js", import.meta.url)`, by which threads and processes are started. */
  kind: "import" | "url";
  /** Names it takes: `*` for all of the module (namespace, default, require, dynamic import). */
  names: string[];
}

/** Everything that a file refers to. Parsed, so that a comment or a string that looks like an import is none. */
export function referencesOf(path: string, text: string): readonly Reference[] {
  const found = known.get(text) ?? parsedReferences(path, text);
  known.set(text, found);
  return found;
}

/** By the file's text: each rule asks for the references of all files, and to parse them takes a second. */
const known = new Map<string, readonly Reference[]>();

function parsedReferences(path: string, text: string): Reference[] {
  const references: Reference[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      references.push({ specifier: node.moduleSpecifier.text, kind: "import", names: importedNames(node) });
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier && ts.isStringLiteral(node.moduleSpecifier)) {
      references.push({ specifier: node.moduleSpecifier.text, kind: "import", names: ["*"] });
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      const { literal } = node.argument;
      if (ts.isStringLiteral(literal)) references.push({ specifier: literal.text, kind: "import", names: [] });
    } else if (ts.isCallExpression(node)) {
      const [argument] = node.arguments;
      const isImport =
        node.expression.kind === ts.SyntaxKind.ImportKeyword || /^require(\.resolve)?$/.test(node.expression.getText());
      if (isImport && argument && ts.isStringLiteralLike(argument)) {
        references.push({ specifier: argument.text, kind: "import", names: ["*"] });
      }
    } else if (ts.isNewExpression(node) && node.expression.getText() === "URL") {
      const [target, base] = node.arguments ?? [];
      if (target && ts.isStringLiteralLike(target) && base?.getText() === "import.meta.url") {
        references.push({ specifier: target.text, kind: "url", names: [] });
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true));
  return references;
}

function importedNames(node: ts.ImportDeclaration): string[] {
  const clause = node.importClause;
  if (clause === undefined) return ["*"];
  const names: string[] = clause.name === undefined ? [] : ["*"];
  if (clause.namedBindings === undefined) return names;
  if (ts.isNamespaceImport(clause.namedBindings)) return ["*"];
  return [...names, ...clause.namedBindings.elements.map((element) => (element.propertyName ?? element.name).text)];
}

/** The source file that a relative reference means, whether or not it is there; undefined for packages and builtins. */
export function targetOf(path: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  const parts = path.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return undefined;
    } else if (part !== ".") {
      parts.push(part);
    }
  }
  // A WebAssembly module is built from the entry of that name in the folder assembly beside it.
  const name = parts.join("/").replace(/([^/]+)\.wasm$/, "assembly/$1.ts");
  return name.replace(/\.js$/, ".ts");
}

/**
 * The same, where `files` hold it: what the build makes has no source, only a declaration, a component is a .tsx, and AssemblyScript names its
 * sources without an extension.
 */
function sourceOf(files: SourceFiles, path: string, specifier: string): string | undefined {
  const target = targetOf(path, specifier);
  if (target === undefined || files.has(target)) return target;
  const others = [target.replace(/\.ts$/, ".d.ts"), `${target}x`, `${target}.ts`];
  return others.find((other) => files.has(other)) ?? target;
}

const MAY_IMPORT: Record<string, readonly string[]> = {
  core: ["core"],
  storage: ["core", "storage"],
  workers: ["core", "storage", "workers"],
  http: ["core", "storage", "workers", "http"],
  bench: ["core", "storage", "workers", "http", "bench", "test"],
  test: ["core", "storage", "workers", "http", "bench", "test"],
};

/** Rooms that may import these siblings at most. A room that is not here may import every room of its folder. */
const ROOM_MAY_IMPORT: Record<string, readonly string[]> = {
  "workers/artefacts": [],
  "workers/cell-link": [],
  "workers/documents": ["workers/artefacts"],
  "workers/demo-cell": ["workers/cell-link"],
};
/** No module: styles, and the folder into which the console is bundled. */
const NO_MODULE = /\.css$|\/console-page$/;

/** What core, which is pure, may not know of. */
const IMPURE_BUILTINS = [
  "fs",
  "net",
  "tls",
  "dgram",
  "http",
  "https",
  "http2",
  "worker_threads",
  "child_process",
  "cluster",
];

function builtinOf(specifier: string): string {
  return specifier.replace(/^node:/, "").split("/")[0] as string;
}

function folderOf(path: string): string {
  return path.split("/")[0] as string;
}

/** Two folders deep; undefined for a file at the root of its folder, which all rooms share. */
function roomOf(path: string): string | undefined {
  const [folder, room, file] = path.split("/");
  return file === undefined ? undefined : `${folder}/${room}`;
}

function mayRoomImport(from: string | undefined, to: string | undefined): boolean {
  const allowed = from === undefined ? undefined : ROOM_MAY_IMPORT[from];
  if (allowed === undefined || to === undefined || from === to) return true;
  return folderOf(to) !== folderOf(from as string) || allowed.includes(to);
}

function isProduct(path: string): boolean {
  return folderOf(path) !== "test" && folderOf(path) !== "bench";
}

/** Imports against the direction of the folders or rooms, impure ones in core, and those of files that are not there. */
export function folderBreaches(files: SourceFiles): string[] {
  const breaches: string[] = [];
  for (const [path, text] of files) {
    const folder = folderOf(path);
    const allowed = MAY_IMPORT[folder];
    if (allowed === undefined) {
      breaches.push(`${path}: ${folder} is no folder of sources`);
      continue;
    }
    for (const { specifier } of referencesOf(path, text)) {
      // A style sheet that is not there fails the bundler.
      if (specifier.endsWith(".css")) continue;
      if (specifier.startsWith(".")) {
        if (NO_MODULE.test(specifier)) continue;
        const target = sourceOf(files, path, specifier);
        if (target === undefined || !files.has(target))
          breaches.push(`${path} refers to ${specifier}, which is not there`);
        else if (!allowed.includes(folderOf(target)))
          breaches.push(`${path} imports ${target}: not allowed in ${folder}`);
        else if (!mayRoomImport(roomOf(path), roomOf(target)))
          breaches.push(`${path} imports ${target}: not allowed in ${roomOf(path)}`);
      } else if (folder === "core" && IMPURE_BUILTINS.includes(builtinOf(specifier))) {
        breaches.push(`${path} imports ${specifier}: core is pure`);
      }
    }
  }
  return breaches;
}

const FILE_SYSTEM_SEAM = "storage/disk/file-system.ts";

/** All I/O on files goes through one seam, so that tests can make it fail. */
export function fileSystemBreaches(files: SourceFiles): string[] {
  const breaches: string[] = [];
  for (const [path, text] of files) {
    if (!isProduct(path) || path === FILE_SYSTEM_SEAM) continue;
    for (const { specifier } of referencesOf(path, text)) {
      if (builtinOf(specifier) === "fs") breaches.push(`${path} imports ${specifier}: only ${FILE_SYSTEM_SEAM} may`);
    }
  }
  return breaches;
}

const UWS_PACKAGES = ["uWebSockets.js", "@btc-vision/uwebsockets.js", "@trufflesuite/uws-js-unofficial"];

/**
 * What only one file of the product may import. A client of node:http is not its server, and receivers of webhooks are no server of the
 * service.
 */
const RECEIVERS = ["workers/demo-cell/demo-receiver.ts", "http/commands/listen-command.ts"];

const SOLE_IMPORTS: Record<string, (reference: Reference, text: string) => boolean> = {
  "uWebSockets.js": ({ specifier }) => UWS_PACKAGES.includes(specifier),
  piscina: ({ specifier }) => specifier === "piscina",
  "the NATS client": ({ specifier }) => specifier.startsWith("@nats-io/"),
  "node:http's server": ({ specifier, names }, text) =>
    ["http", "https", "http2"].includes(builtinOf(specifier)) &&
    (names.some((name) => /^(Server|create(Secure)?Server)$/.test(name)) ||
      (names.includes("*") && /\bcreate(Secure)?Server\b/.test(text))),
};

export function soleImportBreaches(files: SourceFiles): string[] {
  return Object.entries(SOLE_IMPORTS).flatMap(([what, matches]) => {
    const importers = [...files]
      .filter(
        ([path, text]) =>
          isProduct(path) &&
          !RECEIVERS.includes(path) &&
          referencesOf(path, text).some((reference) => matches(reference, text)),
      )
      .map(([path]) => path);
    return importers.length <= 1 ? [] : [`${what} is imported by ${importers.join(", ")}: one file may`];
  });
}

/** Cycles of imports, types included: each as the path that closes it. */
export function importCycles(files: SourceFiles): string[] {
  const cycles: string[] = [];
  const state = new Map<string, "open" | "done">();
  const trail: string[] = [];
  const visit = (path: string): void => {
    state.set(path, "open");
    trail.push(path);
    for (const { specifier, kind } of referencesOf(path, files.get(path) as string)) {
      const target = kind === "import" ? sourceOf(files, path, specifier) : undefined;
      if (target === undefined || !files.has(target)) continue;
      if (state.get(target) === "open") cycles.push([...trail.slice(trail.indexOf(target)), target].join(" → "));
      else if (state.get(target) === undefined) visit(target);
    }
    trail.pop();
    state.set(path, "done");
  };
  for (const path of files.keys()) if (state.get(path) === undefined) visit(path);
  return cycles;
}

/**
 * Files of the product that no other file refers to. `importers` says whose references count: with `product`, a file that
 * only tests use is dead as well. Entry points are started by name, each for the reason that stands beside it.
 */
export function unusedFiles(
  files: SourceFiles,
  entryPoints: Readonly<Record<string, string>>,
  importers: "all" | "product",
): string[] {
  const used = new Set<string>(Object.keys(entryPoints));
  for (const [path, text] of files) {
    if (importers === "product" && !isProduct(path)) continue;
    for (const { specifier } of referencesOf(path, text)) {
      const target = sourceOf(files, path, specifier);
      if (target !== undefined && target !== path) used.add(target);
    }
  }
  return [...files.keys()].filter((path) => isProduct(path) && !used.has(path)).map((path) => `nobody imports ${path}`);
}

const VAGUE_NAMES = ["index", "utils", "util", "common", "helpers", "misc"];
const KEBAB_CASE = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** A file is named after the one thing in it, in kebab-case; tests end in .test.ts. */
export function nameBreaches(paths: Iterable<string>): string[] {
  const breaches: string[] = [];
  for (const path of paths) {
    const parts = path.split("/");
    const name = (parts.pop() as string).replace(/(?:\.test|\.d)?\.tsx?$/, "");
    if (VAGUE_NAMES.includes(name)) breaches.push(`${path}: a name that says nothing of what is in it`);
    if (![...parts, name].every((part) => KEBAB_CASE.test(part))) breaches.push(`${path}: not kebab-case`);
  }
  return breaches;
}

/** Names that the field does not have (CONTRIBUTING.md, "Words"). The brackets keep this line from being found itself. */
const INVENTED = /des[k](?!top)|(?<!book)keepe[r]|ledge[r]/gi;

export function inventedNames(files: SourceFiles): string[] {
  return [...files].flatMap(([path, text]) =>
    [...`${path} ${text}`.matchAll(INVENTED)].map(([name]) => `${path}: ${name}`),
  );
}

const TOP_LEVEL = [
  ...["package.json", "package-lock.json", "tsconfig.json", "README.md", "LICENSE", "CHANGELOG.md"],
  ...["core", "workers", "http", "storage", "bench", "test"],
];

/** Entries at the repository's root that have no place there. Dot files and .ci have. */
export function topLevelBreaches(trackedPaths: Iterable<string>): string[] {
  const entries = new Set([...trackedPaths].map((path) => folderOf(path)));
  return [...entries]
    .filter((entry) => !entry.startsWith(".") && !TOP_LEVEL.includes(entry))
    .map((entry) => `${entry} at the top level`);
}

/**
 * Patterns of `t.match` that hold of more than they say: a list in one is found in every longer list, an empty object in every object. `listOf`, and
 * `{ length: 0 }` for no item, are exact.
 */
export function loosePatternBreaches(files: SourceFiles): string[] {
  const breaches: string[] = [];
  for (const [path, text] of files) {
    if (!text.includes(".match(")) continue;
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true);
    const look = (pattern: ts.Node): void => {
      const isEmptyObject = ts.isObjectLiteralExpression(pattern) && pattern.properties.length === 0;
      if (ts.isArrayLiteralExpression(pattern) || isEmptyObject) {
        const { line } = source.getLineAndCharacterOfPosition(pattern.getStart());
        breaches.push(`${path}:${line + 1}: ${pattern.getText()} matches more than it says`);
      }
      const isList =
        ts.isArrayLiteralExpression(pattern) ||
        (ts.isCallExpression(pattern) && pattern.expression.getText() === "listOf");
      if (isList || ts.isObjectLiteralExpression(pattern) || ts.isPropertyAssignment(pattern)) {
        ts.forEachChild(pattern, look);
      }
    };
    const visit = (node: ts.Node): void => {
      if (
        ts.isCallExpression(node) &&
        ts.isPropertyAccessExpression(node.expression) &&
        node.expression.name.text === "match"
      ) {
        const pattern = node.arguments[1];
        if (pattern !== undefined) look(pattern);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return breaches;
}
