import { fileURLToPath } from "node:url";
import { nodeFileSystem, readWholeFile } from "../../storage/disk/file-system.js";
import { type Reply, wholeReply } from "../replies/reply.js";
import { defineRoute, type Route } from "../requests/route.js";

/** Files of swagger-ui that the page needs, which the build puts beside this module (.ci/build.mjs); nothing comes from elsewhere. */
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

// Without validatorUrl the page would ask a public service to check the document. By default only the names of properties are shown: here their
// descriptions are too, however deep they lie.
const START = `SwaggerUIBundle({ url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, defaultModelExpandDepth: 12, validatorUrl: null });
`;

/** Only what the service itself serves is loaded; swagger-ui sets styles in place and has images as data. */
const POLICY = [
  "Content-Security-Policy",
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
] as const;

/** GET /docs: a page that renders /openapi.json in the browser, by swagger-ui, without internet. */
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
    method: "GET",
    path,
    operationId: "getDocs",
    tag: "system",
    summary: "This interface for people: a page that renders /openapi.json without internet.",
    pathParameters: {},
    query: {},
    responses: { 200: { description: "The file.", contentType, schema: { type: "string" } } },
    errors: [],
    scope: "read",
    handle,
  });
}
