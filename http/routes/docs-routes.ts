import { fileURLToPath } from "node:url";
import { nodeFileSystem } from "../../storage/disk/file-system.js";
import { readWholeFile } from "../../storage/disk/whole-files.js";
import { type Reply, wholeReply } from "../replies/reply.js";
import { defineRoute, type Route } from "../requests/route.js";

/** Files of swagger-ui that the page needs. The build copies them (.ci/build.mjs), so that the page works without internet. */
const ASSETS = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
} as const;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Inspection Results Service</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

// validatorUrl: null, because swagger-ui would otherwise send the document to a public service. The depth makes it show the descriptions of
// nested properties, not only their names.
const START = `SwaggerUIBundle({ url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, defaultModelExpandDepth: 12, validatorUrl: null });
`;

/** The page may load files of the service only. swagger-ui needs inline styles and images as data URLs. */
const POLICY = [
  "Content-Security-Policy",
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
] as const;

/** GET /docs: a page that shows /openapi.json in the browser with swagger-ui, without internet. */
export function docsRoutes(): Route[] {
  const kept = new Map<string, Reply>();
  const asset = async (name: keyof typeof ASSETS): Promise<Reply> => {
    let reply = kept.get(name);
    if (reply === undefined) {
      const path = fileURLToPath(new URL(`../swagger-ui/${name}`, import.meta.url));
      reply = wholeReply(await readWholeFile(nodeFileSystem, path), ASSETS[name], true);
      kept.set(name, reply);
    }
    return reply;
  };
  const page = { ...wholeReply(Buffer.from(PAGE), "text/html; charset=utf-8", true), headers: [POLICY] };
  const start = wholeReply(Buffer.from(START), "text/javascript; charset=utf-8", true);
  return [
    fileRoute("/docs", "text/html", () => page),
    { ...fileRoute("/docs/start.js", "text/javascript", () => start), isUndocumented: true },
    ...(Object.keys(ASSETS) as (keyof typeof ASSETS)[]).map((name) => ({
      ...fileRoute(`/docs/${name}`, ASSETS[name], () => asset(name)),
      isUndocumented: true,
    })),
  ];
}

function fileRoute(path: string, contentType: string, handle: () => Reply | Promise<Reply>): Route {
  return defineRoute({
    path,
    operationId: "getDocs",
    tag: "system",
    summary: "This interface for people: a page that shows /openapi.json. It needs no internet.",
    responses: { 200: { description: "The file.", contentType, schema: { type: "string" } } },
    handle,
  });
}
