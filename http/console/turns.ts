/** Work for the many rows of a page: so much of it at once, the rest in the order in which it came. */
export function turns(atOnce: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      // The place is handed over: given free, it could be taken before the woken one runs.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
