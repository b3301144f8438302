/** Module hooks (node:module, `register`) that give one module another text. Data: what to replace in which compiled file. */
import type { LoadHook } from "node:module";
import type { SourceChange } from "./store-mutants.js";

let change: SourceChange | undefined;

export function initialize(data: SourceChange): void {
  change = data;
}

export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context);
  if (change === undefined || !url.endsWith(`/dist/${change.file}`)) return loaded;
  const text = Buffer.from(loaded.source as Uint8Array).toString("utf8");
  return { ...loaded, source: text.replace(change.find, () => change?.replace ?? "") };
};
