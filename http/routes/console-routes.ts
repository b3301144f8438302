import { fileURLToPath } from "node:url";
import { ServiceError } from "../../core/service-errors.js";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { accepts, acceptsHtml } from "../replies/accepted-coding.js";
import { type HeaderLines, JSON_CONTENT_TYPE, type Reply, wholeReply } from "../replies/reply.js";
import { consolePage } from "../requests/console-pages.js";
import { defineRoute, type HandlerRequest, type PathParameter, type Route } from "../requests/route.js";
import { jsonResponse } from "./declared-parameters.js";

/** Where .ci/build-console.mjs puts what it makes of http/console. */
const BUILT = fileURLToPath(new URL("../console-page", import.meta.url));

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/**
 * The page may load files of the service only, and no script within the page runs: a name with HTML in it stays a text. Pictures that it fetched
 * with a key are blob: URLs; Chromium was also seen to connect to one.
 */
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self' blob:; worker-src 'self'",
  "base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
].join("; ");
const PAGE_HEADERS: HeaderLines = [
  ["Content-Security-Policy", POLICY],
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  ["Cache-Control", "no-cache"],
];
/** The name of a file contains a hash of its bytes, so they never change. */
const ASSET_HEADERS: HeaderLines = [
  ["Content-Security-Policy", POLICY],
  ["Cache-Control", "public, max-age=31536000, immutable"],
  ["X-Content-Type-Options", "nosniff"],
];
const PAGE_PATHS = [
  ...["/console", "/console/", "/console/{page}", "/console/{page}/"],
  ...["/console/{page}/{id}", "/console/{page}/{id}/{more}"],
];
const VARIES: HeaderLines = [["Vary", "Accept"]];

/** One file, plain and as the build has compressed it. */
interface StaticFile {
  plain: Reply;
  gzip: Reply | undefined;
  brotli: Reply | undefined;
}

interface ConsoleFiles {
  page: StaticFile;
  /** The page as the answer to `GET /`, which depends on Accept too. */
  rootPage: StaticFile;
  /** The page as the answer to a path that has none. The page itself says so. */
  missingPage: Reply;
  /** The files beside the page, by name. */
  assets: ReadonlyMap<string, StaticFile>;
}

/**
 * GET / and everything below /console: the console's page and its files. They hold no data, so that no key is needed. The files are read once, when
 * the first of them is asked for.
 * @param baseUrl what links start with; undefined: the request's Host
 */
export function consoleRoutes(baseUrl: string | undefined): Route[] {
  const rootPath = baseUrl === undefined ? "" : new URL(baseUrl).pathname.replace(/\/$/, "");
  let files: Promise<ConsoleFiles> | undefined;
  const read = (): Promise<ConsoleFiles> => {
    files ??= readConsole(rootPath).catch((error: unknown) => {
      files = undefined;
      throw error;
    });
    return files;
  };
  const page = async (request: HandlerRequest): Promise<Reply> => {
    const { page: name = "now", id, more } = request.params as Readonly<Record<string, string | undefined>>;
    const isThere = more === undefined && consolePage(name, id) !== undefined;
    return isThere ? inCoding((await read()).page, request) : (await read()).missingPage;
  };
  return [
    rootRoute(async (request) => inCoding((await read()).rootPage, request)),
    ...PAGE_PATHS.map((path) => fileRoute(path, page)),
    fileRoute("/console/assets/{name}", async (request) => {
      const name = request.params.name as string;
      const file = (await read()).assets.get(name);
      if (file === undefined) {
        const path = `/console/assets/${name.slice(0, 200)}`;
        throw new ServiceError("route_not_found", "the console has no file of this name", { path });
      }
      return inCoding(file, request);
    }),
  ];
}

function rootRoute(page: (request: HandlerRequest) => Promise<Reply>): Route {
  return defineRoute({
    path: "/",
    operationId: "getRoot",
    tag: "system",
    summary: "Where to begin: links for programs. A browser, which accepts text/html, gets the console.",
    responses: { 200: jsonResponse("RootResponse", "The links, or the console's page.") },
    scope: "none",
    handle(request) {
      if (acceptsHtml(request.header("accept"))) return page(request);
      const href = (path: string) => ({ href: request.baseUrl + path, method: "GET" });
      const links = {
        console: href("/console"),
        docs: href("/docs"),
        openapi: href("/openapi.json"),
        runs: href("/runs"),
        health: href("/health"),
      };
      const reply = wholeReply(Buffer.from(JSON.stringify({ links })), JSON_CONTENT_TYPE, false);
      return { ...reply, headers: VARIES };
    },
  });
}

const PARAMETERS: Readonly<Record<string, PathParameter>> = {
  page: { description: "A page of the console.", schema: { type: "string" }, notFound: "route_not_found" },
  id: { description: "What the page shows.", schema: { type: "string" }, notFound: "route_not_found" },
  more: { description: "There is no page so deep.", schema: { type: "string" }, notFound: "route_not_found" },
  name: { description: "A file of the console.", schema: { type: "string" }, notFound: "route_not_found" },
};

function fileRoute(path: string, handle: (request: HandlerRequest) => Promise<Reply>): Route {
  const names = Object.keys(PARAMETERS).filter((name) => path.includes(`{${name}}`));
  return defineRoute({
    path,
    operationId: "getConsole",
    tag: "system",
    summary: "The console.",
    pathParameters: Object.fromEntries(names.map((name) => [name, PARAMETERS[name] as PathParameter])),
    responses: { 200: { description: "The file.", contentType: "text/html", schema: { type: "string" } } },
    scope: "none",
    isUndocumented: true,
    handle,
  });
}

function inCoding({ plain, gzip, brotli }: StaticFile, request: HandlerRequest): Reply {
  const accepted = request.header("accept-encoding");
  if (brotli !== undefined && accepts(accepted, "br")) return brotli;
  if (gzip !== undefined && accepts(accepted, "gzip")) return gzip;
  return plain;
}

/** @param rootPath what the service's paths begin with for its clients, without a slash at the end */
async function readConsole(rootPath: string): Promise<ConsoleFiles> {
  const assets = new Map<string, StaticFile>();
  for (const { name } of await nodeFileSystem.readDirectory(`${BUILT}/assets`)) {
    if (!/\.(br|gz)$/.test(name)) assets.set(name, await readStatic(`assets/${name}`, ASSET_HEADERS));
  }
  const built = await readStatic("index.html", PAGE_HEADERS);
  // The build has compressed the page with the usual base only.
  const html = Buffer.from(built.plain.body as Uint8Array).toString();
  const page =
    rootPath === "" ? built : ofBytes(Buffer.from(html.replace('href="/console/"', `href="${rootPath}/console/"`)));
  const rootPage = {
    plain: varying(page.plain),
    gzip: page.gzip && varying(page.gzip),
    brotli: page.brotli && varying(page.brotli),
  };
  return { page, rootPage, missingPage: { ...page.plain, status: 404 }, assets };
}

function ofBytes(html: Uint8Array): StaticFile {
  return { plain: staticReply(html, "html", PAGE_HEADERS), gzip: undefined, brotli: undefined };
}

function varying(reply: Reply): Reply {
  return { ...reply, headers: [...(reply.headers ?? []), ...VARIES] };
}

async function readStatic(name: string, headers: HeaderLines): Promise<StaticFile> {
  const ending = name.slice(name.lastIndexOf(".") + 1);
  const bytesOf = async (path: string) =>
    (await nodeFileSystem.exists(path)) ? await readWholeFile(nodeFileSystem, path) : undefined;
  const coded = async (suffix: string, coding: string) => {
    const bytes = await bytesOf(`${BUILT}/${name}.${suffix}`);
    return bytes && staticReply(bytes, ending, [...headers, ["Content-Encoding", coding]]);
  };
  const plain = await readWholeFile(nodeFileSystem, `${BUILT}/${name}`);
  return {
    plain: staticReply(plain, ending, headers),
    gzip: await coded("gz", "gzip"),
    brotli: await coded("br", "br"),
  };
}

function staticReply(bytes: Uint8Array, ending: string, headers: HeaderLines): Reply {
  const reply = wholeReply(bytes, CONTENT_TYPES[ending] ?? "application/octet-stream", true);
  return { ...reply, headers, isInChosenCoding: true };
}
