/** What serves: uWebSockets.js, or node:http where a strict parser or another Node version is needed. */
export const FRONTS = ["uws", "node"] as const;
export type Front = (typeof FRONTS)[number];
