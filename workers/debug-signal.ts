/**
 * Has a process of the service ignore SIGUSR1: without a listener Node opens its inspector, a port by which any account of the machine can steer the
 * process. (`--disable-sigusr1` does the same, but not on every Node in support.)
 */
export function ignoreDebugSignal(): void {
  process.on("SIGUSR1", () => {});
}
