import { Worker } from "node:worker_threads";
import { type ComponentRow, since } from "../../core/health.js";
import type { PlantAddress } from "./plant-client.js";
import type { ShipperStatus } from "./shipper.js";

/** What `serve` is told of the plant. */
export interface PlantOptions {
  cell: string;
  address: PlantAddress;
}

export interface ShipperThreadOptions extends PlantOptions {
  metaPath: string;
  storeId: string;
}

export interface ShipperFigures {
  shippedSequence: number;
  /** Durable records that the plant has not acknowledged. */
  lagRecords: number;
}

/** The shipper as the front sees it. */
export class ShipperHandle {
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  #status: ShipperStatus = { fault: "the plant has not been reached yet", shippedSequence: 0, durableSequence: 0 };
  #faultSinceUs = Date.now() * 1000;
  #isStopping = false;

  /** @param onFault called when the fault changes: why nothing is shipped, or null */
  constructor(options: ShipperThreadOptions, onFault: (fault: string | null) => void) {
    const worker = new Worker(new URL("./shipper-thread.js", import.meta.url), {
      workerData: options,
      name: "shipper",
    });
    this.#worker = worker;
    const take = (status: ShipperStatus): void => {
      const isNew = status.fault !== this.#status.fault;
      if (isNew && (status.fault === null || this.#status.fault === null)) this.#faultSinceUs = Date.now() * 1000;
      this.#status = status;
      if (isNew) onFault(status.fault);
    };
    const fail = (reason: string): void => {
      if (!this.#isStopping) take({ ...this.#status, fault: `the shipper's thread ended: ${reason}` });
    };
    worker.on("message", take);
    worker.on("error", (error) => fail(error.message));
    this.#exited = new Promise((resolve) => {
      worker.on("exit", (code) => {
        if (this.#status.fault?.startsWith("the shipper's thread ended") !== true) fail(`code ${code}`);
        resolve();
      });
    });
  }

  /** Never down: the cell records without the plant. */
  row(): ComponentRow {
    const { fault } = this.#status;
    const status = fault === null ? "healthy" : "degraded";
    const detail = fault === null ? null : since(this.#faultSinceUs, fault);
    return { key: "plant", id: null, status, detail, enabled: null, required: false };
  }

  figures(): ShipperFigures {
    const { shippedSequence, durableSequence } = this.#status;
    return { shippedSequence, lagRecords: Math.max(0, durableSequence - shippedSequence) };
  }

  /** Ends the thread, within `graceMs` at most. What was not shipped is shipped after the next start. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    this.#worker.postMessage("stop");
    const cut = setTimeout(() => void this.#worker.terminate(), graceMs);
    await this.#exited;
    clearTimeout(cut);
  }
}
