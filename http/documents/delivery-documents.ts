import { LIMITS } from "../../core/limits.js";
import { unknownId } from "../../core/service-errors.js";
import { deliveryJson } from "../../core/webhook/webhook-response.js";
import type { DeliveryFilter, DeliveryRow } from "../../storage/view/deliveries/view-deliveries.js";
import type { View } from "../../storage/view/view.js";
import { jsonBytesReply, type Reply } from "../replies/reply.js";
import type { HandlerRequest } from "../requests/route.js";
import { SharedWork, unwanted } from "./shared-work.js";
import type { ThreadSlices } from "./thread-slices.js";

/** Answers that need more stored bytes than this are made one after the other. Others do not wait for them. */
const SMALL_BYTES = 256 * 1024;

const [OPENING, COMMA, CLOSING] = [Buffer.from("["), Buffer.from(","), Buffer.from("]")];

/** A client that waits for an answer. */
type Waiting = Pick<HandlerRequest, "gone">;

/**
 * Answers about deliveries. The event of a delivery lies in the record of its run, which may be large: such answers are made one after the other, each
 * once for all clients that wait for it, and not for a client that is gone.
 */
export class DeliveryDocuments {
  readonly #view: View;
  readonly #slices: ThreadSlices;
  readonly #details: SharedWork;
  readonly #pages: SharedWork;

  constructor(view: View, slices: ThreadSlices) {
    this.#view = view;
    this.#slices = slices;
    this.#details = new SharedWork(slices);
    this.#pages = new SharedWork(slices);
  }

  /** One delivery with its attempts. @throws ServiceError `delivery_not_found`, `unavailable` */
  detail(id: string, client: Waiting): Promise<Reply> {
    const row = this.#view.deliveries.row(id);
    if (row === undefined) throw unknownId("delivery", id);
    return this.#made(this.#details, id, [row], client, () => this.read(id));
  }

  /** As `detail`, but at once, whatever others wait for: for a client whose request has changed the delivery. */
  async read(id: string): Promise<Reply> {
    const content = await this.#view.delivery(id);
    if (content === undefined) throw unknownId("delivery", id);
    return jsonBytesReply(Buffer.from(deliveryJson(content.delivery, content.payload, content.history)));
  }

  /**
   * A page of a webhook's deliveries that match the filter, newest first, as `View.listDeliveries` gives it. Looking for them gives way to other work.
   *
   * @throws ServiceError `unavailable`
   */
  async page(webhookId: string, filter: DeliveryFilter, limit: number, client: Waiting): Promise<Reply> {
    const gone = client.gone();
    const search = this.#view.deliveries.search(webhookId, filter, limit);
    let step = search.next();
    for (; step.done !== true; step = search.next()) {
      await this.#slices.giveWay();
      if (gone.aborted) throw unwanted();
    }
    const rows = step.value;
    const question = `${webhookId} ${JSON.stringify(filter)} ${limit}`;
    return this.#made(this.#pages, question, rows, client, async (throwIfCancelled) => {
      const toBytes = (...one: Parameters<typeof deliveryJson>) => Buffer.from(deliveryJson(...one));
      const items = await this.#view.listDeliveries(rows, toBytes, throwIfCancelled);
      const parts = items.flatMap((item, at) => [at === 0 ? OPENING : COMMA, item]);
      return jsonBytesReply(Buffer.concat(items.length === 0 ? [OPENING, CLOSING] : [...parts, CLOSING]));
    });
  }

  #made(
    work: SharedWork,
    question: string,
    rows: readonly DeliveryRow[],
    client: Waiting,
    make: (throwIfCancelled: () => void) => Promise<Reply>,
  ): Promise<Reply> {
    const gone = client.gone();
    const bytes = rows.reduce((sum, row) => sum + this.#storedBytes(row), 0);
    if (bytes <= SMALL_BYTES) {
      return make(() => {
        if (gone.aborted) throw unwanted();
      });
    }
    // A page ends at its limit, however much more its rows would need.
    const workBytes = Math.min(bytes, LIMITS.deliveriesPageBytes);
    const key = `${question} ${this.#view.deliveries.version}`;
    return work.get(key, workBytes, gone, ({ throwIfCancelled }) => make(throwIfCancelled));
  }

  #storedBytes({ runId, location }: DeliveryRow): number {
    return (runId === null ? 0 : this.#view.documentBytes(runId)) + (location?.length ?? 0);
  }
}
