import { Worker } from "node:worker_threads";
import { type ComponentRow, since } from "../../core/health.js";
import type { CapturePolicy } from "./capture-ranges.js";
import type { PlantAddress } from "./plant-client.js";
import type { ShipperStatus } from "./shipper.js";

/** What `serve` is told of the plant. */
export interface PlantOptions {
  cell: string;
  address: PlantAddress;
  captures: CapturePolicy;
  /** Most bytes of captures a second; null: no bound. */
  rateBytes: number | null;
  /** Where people reach this cell; null if nobody said. */
  publicUrl: string | null;
}

export interface ShipperThreadOptions extends PlantOptions {
  /** The data directory. */
  path: string;
  storeId: string;
}

export interface ShipperThreadData extends ShipperThreadOptions {
  /** Shared memory: the last committed sequence number. */
  committed: Float64Array;
}

export interface ShipperFigures {
  shippedSequence: number;
  /** Records of the log that the plant has not acknowledged. */
  lagRecords: number;
  lagBytes: number;
  /** Age of the oldest record that the plant has not acknowledged; 0 if it has all. */
  lagSeconds: number;
  /** Records that damage has taken before they were shipped. */
  lostRecords: number;
  captureBytes: number;
  skippedCaptures: number;
}

/** Pause before a thread that has ended is started again. */
const RESTART_MS = 10_000;

const NOT_REACHED: ShipperStatus = {
  ...{ fault: "the plant has not been reached yet", shippedSequence: 0, durableSequence: 0 },
  ...{
    lagBytes: 0,
    oldestUnshippedUs: null,
    lost: null,
    foreign: null,
    captures: null,
    captureFault: null,
    restored: null,
  },
};

/** The shipper as the front sees it. */
export class ShipperHandle {
  readonly #start: () => void;
  #worker: Worker | undefined;
  #exited: Promise<void> = Promise.resolve();
  #restartTimer: NodeJS.Timeout | undefined;
  readonly #committed = new Float64Array(new SharedArrayBuffer(8));
  #status: ShipperStatus = NOT_REACHED;
  /** What is wrong, for people; null: nothing. */
  #fault: string | null = NOT_REACHED.fault;
  #faultSinceUs = Date.now() * 1000;
  #isStopping = false;

  /**
   * @param onFault called when the fault changes: what is not shipped and why, or null
   * @param onCaptures called when the plant has the captures of more runs: of all up to this sequence number
   */
  constructor(
    options: ShipperThreadOptions,
    onFault: (fault: string | null) => void,
    onCaptures: (sequence: number) => void,
    restartMs = RESTART_MS,
  ) {
    const take = (status: ShipperStatus): void => {
      const before = this.#status.captures?.sequence ?? 0;
      this.#status = status;
      if (status.captures !== null && status.captures.sequence !== before) onCaptures(status.captures.sequence);
      const fault = faultOf(status);
      if (fault === this.#fault) return;
      if (fault === null || this.#fault === null) this.#faultSinceUs = Date.now() * 1000;
      this.#fault = fault;
      onFault(fault);
    };
    const fail = (reason: string): void => {
      if (!this.#isStopping)
        take({ ...this.#status, fault: `the shipper's thread ended, and starts again: ${reason}` });
    };
    this.#start = () => {
      let isTold = false;
      const worker = new Worker(new URL("./shipper-thread.js", import.meta.url), {
        workerData: { ...options, committed: this.#committed } satisfies ShipperThreadData,
        name: "shipper",
      });
      this.#worker = worker;
      worker.on("message", take);
      worker.on("error", (error) => {
        isTold = true;
        fail(error.message);
      });
      this.#exited = new Promise((resolve) => {
        worker.on("exit", (code) => {
          if (!isTold) fail(`code ${code}`);
          if (!this.#isStopping) this.#restartTimer = setTimeout(this.#start, restartMs);
          resolve();
        });
      });
    };
    this.#start();
  }

  /** The log has committed its records up to this one. */
  committed(sequence: number): void {
    this.#committed[0] = sequence;
  }

  /** Never down: the cell records without the plant. */
  row(): ComponentRow {
    const fault = this.#fault;
    const status = fault === null ? "healthy" : "degraded";
    const detail = fault === null ? null : since(this.#faultSinceUs, `${fault}${this.#lagText}`);
    return { key: "plant", id: null, status, detail, enabled: null, required: false };
  }

  get #lagText(): string {
    const { lagRecords, lagBytes, lagSeconds } = this.figures();
    if (this.#status.fault === null || lagRecords === 0) return "";
    return ` (the plant lacks ${lagRecords} records, ${lagBytes} bytes, the oldest ${Math.round(lagSeconds)} s old)`;
  }

  figures(): ShipperFigures {
    return figuresOf(this.#status);
  }

  /** Ends the thread, within `graceMs` at most. What was not shipped is shipped after the next start. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    this.#worker?.postMessage("stop");
    const cut = setTimeout(() => void this.#worker?.terminate(), graceMs);
    await this.#exited;
    clearTimeout(cut);
  }
}

export function figuresOf(status: ShipperStatus): ShipperFigures {
  const { shippedSequence, durableSequence, lagBytes, oldestUnshippedUs, lost, captures } = status;
  return {
    shippedSequence,
    lagRecords: Math.max(0, durableSequence - shippedSequence),
    lagBytes,
    lagSeconds: oldestUnshippedUs === null ? 0 : Math.max(0, Date.now() / 1000 - oldestUnshippedUs / 1e6),
    lostRecords: lost?.records ?? 0,
    captureBytes: captures?.bytes ?? 0,
    skippedCaptures: (captures?.skipped ?? 0) + (captures?.tooOld ?? 0),
  };
}

/** What keeps the log from the plant comes first, then what keeps captures, then what is lost here. */
function faultOf({ fault, captureFault, lost, foreign, captures, restored }: ShipperStatus): string | null {
  if (fault !== null) return fault;
  if (restored !== null) return restored;
  if (captureFault !== null) return captureFault;
  if (lost !== null) {
    const { records, first, last } = lost;
    return `${records} records between ${first} and ${last} are damaged in this log, and are missing in the plant`;
  }
  if (foreign !== null)
    return `message ${foreign} of the log stream is damaged, or was not sent by this service: it is passed over`;
  if (captures === null || captures.skippedText === null) return null;
  return `${captures.skipped} captured files are damaged or unreadable here, and are missing in the plant; the last: ${captures.skippedText}`;
}
