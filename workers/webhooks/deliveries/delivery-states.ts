/**
 * The state machine of a delivery: in each state, what may happen, and which step follows. Whatever else happens changes nothing.
 *
 * - `rest`: nothing is under way. It waits for an inline attempt if somebody has requested one, for an automatic attempt
 *   if it is pending, to be recorded if its outcome could not be; otherwise it is over, and is forgotten.
 * - `proceed`: by `nextAction` it is read, attempted, or ended without an attempt.
 * - `conclude`: the attempt is recorded. It is over, pauses by `pauseEndMs`, or rests.
 * - `postpone`: whoever waits is told; it is tried again later.
 */
export const DELIVERY_STATES = {
  /** A test whose record the front's view does not have yet. */
  unseen: { seen: "rest" },
  /** Waits in the queue for an automatic attempt. */
  queued: { taken: "proceed", requested: "rest" },
  /** Waits in the queue for an inline attempt. */
  queued_inline: { taken: "proceed", dropped: "rest" },
  /** The front reads its content. */
  loading: { loaded: "proceed", not_read: "postpone" },
  /** The dispatcher makes an attempt. */
  attempting: { attempted: "conclude", not_sent: "postpone" },
  /** Waits for the time of the next attempt. */
  pausing: { pause_over: "proceed", webhook_gone: "proceed", requested: "rest" },
  /** Its content could not be read, or the machine lacked what an attempt needs. */
  postponed: { again: "rest", requested: "rest", webhook_gone: "rest" },
  /** Its outcome could not be appended to the log yet. */
  unrecorded: { recorded: "rest" },
} as const satisfies Record<string, Readonly<Record<string, DeliveryStep>>>;

export type DeliveryState = keyof typeof DELIVERY_STATES;
export type DeliveryStep = "rest" | "proceed" | "conclude" | "postpone";
type KeysOf<Steps> = Steps extends unknown ? keyof Steps : never;
export type DeliveryEvent = KeysOf<(typeof DELIVERY_STATES)[DeliveryState]>;

export function stepAfter(state: DeliveryState, event: DeliveryEvent): DeliveryStep | undefined {
  return (DELIVERY_STATES[state] as Partial<Record<DeliveryEvent, DeliveryStep>>)[event];
}
