/** The HTTP server: uWebSockets.js, or node:http if no build of it loads or a stricter parser is wanted. */
const FRONTS = ["uws", "node"] as const;
export type Front = (typeof FRONTS)[number];

/** The choices of --front; `auto`: uWebSockets.js if a build of it loads, else node:http. */
export const FRONT_CHOICES = ["auto", ...FRONTS] as const;
export type FrontChoice = (typeof FRONT_CHOICES)[number];
