/** What of a frame the kernels' memory holds, which is 2 GiB at most (kernel-memory.ts), and how a task says that one is too large for it. */

import { MEMORY_BYTES } from "../kernel-memory.js";
import type { TaskInput, TaskName } from "../pool/artefact-tasks.js";

/** Bytes for each position, by what the filter comes to (the table in artefact-tasks.ts); with what narrow frames take more for their edges. */
export const FILTER_BYTES = { lanes: 8.4, again: 16.7, noise: 29 } as const;
/** A picture's samples, the filter's byte of every line, and what a strip that cannot be made smaller takes more. */
export const PICTURE_BYTES = { heightMap: 2.004, luminance: 1.002 } as const;

/** Undefined for a task that no frame is too large for. */
export function tooLargeText(name: TaskName, input: TaskInput<TaskName>): string | undefined {
  const geometry = geometryOf(input);
  if (geometry === undefined) return undefined;
  const has = `the frame has ${geometry.width * geometry.lines} positions:`;
  switch (name) {
    case "heightMap":
    case "luminance":
      return `${has} 2 GiB of memory hold the picture of about ${millions(PICTURE_BYTES[name])}`;
    case "filter":
    case "filterTogether": {
      const [lanes, again, noise] = [FILTER_BYTES.lanes, FILTER_BYTES.again, FILTER_BYTES.noise].map(millions);
      return `${has} the filter's 2 GiB of memory hold about ${lanes}, ${again} if measured again, ${noise} of noise`;
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
