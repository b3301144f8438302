import { type HubOptions, SERVE_OPTIONS, type ServeOptions } from "../commands/command-options.js";
import { plantAddress } from "../commands/plant-command.js";
import { UsageError } from "../commands/resolve-options.js";
import { serveUntilSignal } from "../commands/serve-command.js";

/** `hub`: serves the runs of all cells of a plant, until a signal asks it to end. */
export async function hub(options: HubOptions, warnings: readonly string[]): Promise<void> {
  const address = await plantAddress(options);
  if (address === null) throw new UsageError("--plant is required: the address of the plant's NATS servers");
  const fallbacks = Object.entries(SERVE_OPTIONS).map(([name, { fallback }]) => [name, fallback]);
  // A hub ships nothing: its plant is where it reads from.
  const own = { plant: null, "plant-credentials": null, "plant-ca": null };
  const all = { ...Object.fromEntries(fallbacks), ...options, ...own } as ServeOptions;
  await serveUntilSignal(all, warnings, { address, cacheBytes: options["cache-bytes"] });
}
