import { descriptorLimit } from "./file-system.js";

/** Where the process may have more descriptors, more kept files are of no use: what is read again and again lies in fewer. */
const MOST = 64;
/** Of the process's descriptors, for each of the five caches. One of them may hold twice as many, so together they have three eighths at most. */
const SHARE = 1 / 16;
const LEAST = 4;
/** Where the system does not say how many there may be. */
const USUAL_LIMIT = 1_024;

/** Files that a cache of open ones keeps at most. */
export const KEPT_FILES = Math.min(MOST, Math.max(LEAST, Math.floor((descriptorLimit() ?? USUAL_LIMIT) * SHARE)));
