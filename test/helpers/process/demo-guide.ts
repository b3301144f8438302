import type { Test } from "tap";
import { rawRequest } from "../http/raw-http.js";
import { isFullSize } from "../test-size.js";
import type { ServiceProcess } from "./service-process.js";

/** Of a demo's process in a commit's size, which has no time for a cell at its real pace. */
export const QUICK_CELL: Readonly<Record<string, string>> = isFullSize
  ? {}
  : { NODE_OPTIONS: `--import ${new URL("./quick-demo-cell.js", import.meta.url).href}` };

/** What the demo says there is to look at: paths by their words. All of them answer. */
export async function guideOf(t: Test, service: ServiceProcess): Promise<Map<string, string>> {
  const [text] = await service.untilStdout(
    /^what to look at[^\n]*:\n(?: {2}.* http:\S+\n)* {2}the cell's health .*\n/m,
  );
  const lines = text.trim().split("\n");
  t.ok(lines.length <= 15, `${lines.length} lines`);
  const entries = lines
    .slice(1)
    .map((line) => /^ {2}(.*?) +http:\/\/[^/]+(\S+)$/.exec(line)?.slice(1) as [string, string]);
  for (const [what, path] of entries) {
    const answer = await rawRequest(service.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    t.equal(answer?.status, what.includes("410") ? 410 : 200, `${what}: ${path}`);
  }
  return new Map(entries);
}

/** What stands behind this part of a path. */
export const idIn = (path: string | undefined, before: string): string =>
  String(path?.split(`/${before}/`)[1]?.split("/")[0]);
