/** For `node --import`, of a service: it keeps no event in memory, as if many waited, and reads each from its store. */
import { LIMITS } from "../../../core/limits.js";

Object.assign(LIMITS, { keptPayloadBytes: 0 });
