import type { PlantAddress } from "../plant/plant-client.js";

/** What the hub's thread is started with. */
export interface HubOptions {
  dataDirectory: string;
  address: PlantAddress;
  /** The log begins another segment when one has this size; default: the log's. */
  segmentBytes?: number;
}
