import { descriptorLimit } from "./file-system.js";

/** More open files are of no use: what is read again and again lies in fewer. */
const MOST = 64;
/** The share of the process's descriptors for each of the five caches. One may hold twice as many, so all together have at most three eighths. */
const SHARE = 1 / 16;
const LEAST = 4;
/** Assumed when the system does not say how many descriptors there may be. */
const USUAL_LIMIT = 1_024;

/** The most files that a cache of open files keeps. */
export const KEPT_FILES = Math.min(MOST, Math.max(LEAST, Math.floor((descriptorLimit() ?? USUAL_LIMIT) * SHARE)));
