import { setTimeout } from "node:timers/promises";
import type { Test } from "tap";
import { LogTail } from "../../../workers/plant/log-tail.js";
import {
  type PlantConnection,
  Shipper,
  type ShipperOptions,
  type ShipperStatus,
} from "../../../workers/plant/shipper.js";
import type { SimulatedDisk } from "../disk/simulated-disk.js";
import { META, type OpenedLog } from "../store/log-harness.js";

export interface Shipping {
  status: ShipperStatus;
  stop(): Promise<void>;
}

export interface ShippedLog extends Partial<ShipperOptions> {
  disk: SimulatedDisk;
  storeId: string;
  connect(): Promise<PlantConnection>;
}

/** Ships the log on this disk, with short pauses, until it is stopped. */
export function ship({ disk, ...options }: ShippedLog): Shipping {
  const shipping = { status: { fault: "not started" } as ShipperStatus };
  const shipper = new Shipper({
    cell: "cell-7",
    tail: new LogTail({ fileSystem: disk, directory: META }),
    onStatus: (status) => (shipping.status = status),
    ...{ lookMs: 5, firstPauseMs: 5, longestPauseMs: 100 },
    ...options,
  });
  const running = shipper.run();
  const stop = (): Promise<void> => {
    shipper.stop();
    return running;
  };
  return Object.assign(shipping, { stop });
}

export async function until(t: Test, condition: () => boolean, what: () => string): Promise<void> {
  for (let looks = 0; !condition(); looks++) {
    if (looks > 12_000) return void t.fail(`still waiting: ${what()}`);
    await setTimeout(10);
  }
}

/** Waits until the plant has all data records. */
export async function untilShipped(t: Test, { log, seen, timers }: OpenedLog, shipping: Shipping): Promise<void> {
  const last = seen.at(-1)?.sequence ?? 0;
  await until(
    t,
    () => {
      timers.fire();
      return shipping.status.fault === null && shipping.status.shippedSequence >= last;
    },
    () => `record ${last} of ${log.nextSequence - 1}, ${JSON.stringify(shipping.status)}`,
  );
}

/** Ships all that the log has now. */
export async function shipAll(t: Test, { opened, ...log }: ShippedLog & { opened: OpenedLog }): Promise<void> {
  const shipping = ship(log);
  await untilShipped(t, opened, shipping);
  await shipping.stop();
}
