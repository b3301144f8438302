import type { Delivery } from "../../../core/webhook/delivery.js";
import type { Resend, ResendFigures, ResendItem } from "../../../core/webhook/resend.js";
import { UuidTable } from "../../../storage/columns/uuid-table.js";
import { ResendItems } from "../../../storage/records/resend-record.js";

const [WAITS, TAKEN, FAILED] = [0, 1, 2];
/** Of so many that have ended, the figures are kept; the newest are. */
const MOST_ENDED = 1_000;

/** A resend that is running. It takes some 80 bytes for each delivery. */
export class RunningResend {
  readonly resend: Resend;
  readonly #items: ResendItems;
  /** The entry of a delivery is its place among the items. */
  readonly #ids = new UuidTable();
  readonly #outcomes: Uint8Array;
  readonly #counts = [0, 0, 0];

  /** @throws RecordDecodeError */
  constructor(resend: Resend, items: Uint8Array) {
    this.resend = resend;
    this.#items = new ResendItems(items);
    for (let nth = 0; nth < this.#items.count; nth++) this.#ids.enterBytes(items, this.#items.idAt(nth));
    this.#outcomes = new Uint8Array(this.#items.count);
    this.#counts[WAITS] = this.#items.count;
  }

  get count(): number {
    return this.#items.count;
  }

  item(nth: number): ResendItem {
    return this.#items.item(nth);
  }

  hadAttempt(nth: number): boolean {
    return this.#outcomes[nth] !== WAITS;
  }

  /** A delivery was recorded. If it is one of these, it has had its attempt, whoever asked for that. */
  noted({ id, status }: Pick<Delivery, "id" | "status">): void {
    const entry = status === "pending" ? -1 : this.#ids.entryOf(id);
    if (entry < 0) return;
    const before = this.#outcomes[entry] as number;
    const outcome = status === "delivered" ? TAKEN : FAILED;
    this.#outcomes[entry] = outcome;
    (this.#counts[before] as number)--;
    (this.#counts[outcome] as number)++;
  }

  get figures(): ResendFigures {
    const [waiting, delivered, failed] = this.#counts as [number, number, number];
    const { state, deliveries } = this.resend;
    return { deliveries, attempted: this.count - waiting, delivered, failed, state };
  }
}

/** All resends, folded from records: those that are running, and what came of the newest others. */
export class ResendStates {
  readonly #running = new Map<string, RunningResend>();
  readonly #ended = new Map<string, Resend>();

  /** @throws RecordDecodeError */
  put(resend: Resend, items: Uint8Array): void {
    if (resend.state === "running") {
      this.#running.set(resend.id, new RunningResend(resend, items));
    } else {
      this.#running.delete(resend.id);
      this.#ended.set(resend.id, resend);
      for (const id of this.#ended.keys()) {
        if (this.#ended.size <= MOST_ENDED) break;
        this.#ended.delete(id);
      }
    }
  }

  noted(delivery: Pick<Delivery, "id" | "status">): void {
    for (const running of this.#running.values()) running.noted(delivery);
  }

  /** The oldest first. */
  running(): RunningResend[] {
    return [...this.#running.values()];
  }

  runningOf(webhookId: string): RunningResend | undefined {
    return this.running().find(({ resend }) => resend.webhookId === webhookId);
  }

  /** Undefined for one that is not running. */
  get(id: string): RunningResend | undefined {
    return this.#running.get(id);
  }

  /** Undefined for an unknown one, and for one of another webhook. */
  figures(id: string, webhookId: string): ResendFigures | undefined {
    const running = this.#running.get(id);
    const { webhookId: of, ...rest } = running?.resend ?? this.#ended.get(id) ?? { webhookId: null };
    if (of !== webhookId) return undefined;
    if (running !== undefined) return running.figures;
    const { deliveries, attempted, delivered, failed, state } = rest as Resend;
    return { deliveries, attempted, delivered, failed, state };
  }
}
