import { createRequire } from "node:module";
import { join } from "node:path";

/** Peers are installed apart from what the service needs; this module runs in dist/bench/peers. */
const PEERS_PACKAGE = join(import.meta.dirname, "../../../.ci/peers/package.json");

/** A package of .ci/peers, or why it cannot be used here. */
export function loadPeer<Package>(name: string): { loaded: Package } | { why: string } {
  try {
    return { loaded: createRequire(PEERS_PACKAGE)(name) as Package };
  } catch (error) {
    const [reason = ""] = (error as Error).message.split("\n");
    return { why: `${name} cannot be loaded (${reason}); node .ci/peers/setup.mjs installs it where that is possible` };
  }
}
