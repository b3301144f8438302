/** What serves: uWebSockets.js, or node:http where no build of it loads, or where a stricter parser is wanted. */
const FRONTS = ["uws", "node"] as const;
export type Front = (typeof FRONTS)[number];

/** What may be asked for; `auto`: uWebSockets.js where a build of it loads, else node:http. */
export const FRONT_CHOICES = ["auto", ...FRONTS] as const;
export type FrontChoice = (typeof FRONT_CHOICES)[number];
