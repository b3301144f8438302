import type { Goal } from "./benchmark.js";

/** @param peer the contestant that the figure is divided by */
export function atLeast(contestant: string, target: number, source: string, peer?: string): Goal {
  return { contestant, direction: "at-least", target, source, ...(peer !== undefined && { peer }) };
}

export function atMost(contestant: string, target: number, source: string, peer?: string): Goal {
  return { ...atLeast(contestant, target, source, peer), direction: "at-most" };
}
