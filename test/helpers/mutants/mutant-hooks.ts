/** Module hooks (node:module, `register`) that give one module another text. Data: what to replace in which compiled file, and where to say so. */
import { appendFileSync } from "node:fs";
import type { LoadHook } from "node:module";
import type { SourceChange } from "./store-mutants.js";

/** `report`: gets a line whenever the file was loaded with the change in it. */
export type ReportedChange = SourceChange & { report: string };

let change: ReportedChange | undefined;

export function initialize(data: ReportedChange): void {
  change = data;
}

export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context);
  if (change === undefined || !url.endsWith(`/dist/${change.file}`)) return loaded;
  const text = Buffer.from(loaded.source as Uint8Array).toString("utf8");
  if (!text.includes(change.find)) return loaded;
  appendFileSync(change.report, `${change.file}\n`);
  return { ...loaded, source: text.replace(change.find, () => change?.replace ?? "") };
};
