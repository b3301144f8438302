/**
 * Makes a process of the service ignore SIGUSR1. Without a listener Node opens its inspector, a port by which any account of the machine
 * can control the process. (`--disable-sigusr1` does the same, but not on every supported Node.)
 */
export function ignoreDebugSignal(): void {
  process.on("SIGUSR1", () => {});
}
