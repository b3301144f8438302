/** Which frames fit the kernels' memory, which is at most 2 GiB (kernel-memory.ts), and the error of a task whose frame is too large. */

import { MEMORY_BYTES } from "../kernel-memory.js";
import type { TaskInput, TaskName } from "../pool/artefact-tasks.js";

/** Bytes for each position, from the table in artefact-tasks.ts, and a margin for the edges of narrow frames. */
export const FILTER_BYTES = { lanes: 8.3, doubtful: 12.3, noise: 29 } as const;
/** Bytes for a picture's samples, the filter byte of every line, and what a strip takes more that cannot be compressed. */
export const PICTURE_BYTES = { heightMap: 2.004, luminance: 1.002 } as const;

/** The error's text; undefined for a task that no frame is too large for. */
export function tooLargeText(name: TaskName, input: TaskInput<TaskName>): string | undefined {
  const geometry = geometryOf(input);
  if (geometry === undefined) return undefined;
  const has = `the frame has ${geometry.width * geometry.lines} positions:`;
  switch (name) {
    case "heightMap":
    case "luminance":
      return `${has} a picture of more than about ${millions(PICTURE_BYTES[name])} does not fit into 2 GiB of memory`;
    case "filter": {
      const [lanes, doubtful, noise] = [FILTER_BYTES.lanes, FILTER_BYTES.doubtful, FILTER_BYTES.noise].map(millions);
      return `${has} the filter's 2 GiB of memory fit about ${lanes}, ${doubtful} with doubtful points, ${noise} of noise`;
    }
    default:
      return undefined;
  }
}

function geometryOf(input: TaskInput<TaskName>): { width: number; lines: number } | undefined {
  if ("geometry" in input) return input.geometry;
  return "frame" in input ? input.frame.geometry : undefined;
}

function millions(bytesPerPosition: number): string {
  return `${Math.floor(MEMORY_BYTES / bytesPerPosition / 1e6)} million`;
}
