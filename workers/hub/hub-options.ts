import type { PlantAddress } from "../plant/plant-client.js";

/** What the hub's thread is started with. */
export interface HubThreadOptions {
  dataDirectory: string;
  address: PlantAddress;
  /** Most bytes of fetched captures; null: no bound but the disk's. */
  cacheBytes: number | null;
  /** The log begins another segment when one has this size; default: the log's. */
  segmentBytes?: number;
}

export const HUB_THREAD = new URL("./hub-thread.js", import.meta.url);
