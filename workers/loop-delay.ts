import { monitorEventLoopDelay } from "node:perf_hooks";

/** How late the thread's event loop was since the last call. */
export interface LoopDelay {
  p50Seconds: number;
  p99Seconds: number;
  maxSeconds: number;
}

const RESOLUTION_MS = 20;

/** Watches the event loop of the calling thread. @returns a function that gives the delay since its last call */
export function watchLoopDelay(): () => LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  // The histogram holds the time from one sample to the next.
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000);
  return () => {
    const delay = {
      p50Seconds: late(histogram.percentile(50)),
      p99Seconds: late(histogram.percentile(99)),
      maxSeconds: late(histogram.max),
    };
    histogram.reset();
    return delay;
  };
}
