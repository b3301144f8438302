/** Where timers come from: the system's in the service, driven by hand in a test. */
export interface Timers {
  /** Calls back once, after `delayMs`. @returns a handle for `clear` */
  set(callback: () => void, delayMs: number): unknown;
  clear(handle: unknown): void;
}
