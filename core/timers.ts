/** Where timers come from: the system's in the service, driven by hand in a test. */
export interface Timers {
  /** Calls back once, after `delayMs`. @returns a handle for `clear` */
  set(callback: () => void, delayMs: number): unknown;
  clear(handle: unknown): void;
}

/** The system's timers: the process does not end before they do. */
export const SYSTEM_TIMERS: Timers = {
  set: (callback, delayMs) => setTimeout(callback, delayMs),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout | undefined),
};

/** The system's timers, for which the end of the process does not wait. */
export const UNREFERENCED_TIMERS: Timers = {
  ...SYSTEM_TIMERS,
  set: (callback, delayMs) => setTimeout(callback, delayMs).unref(),
};
