/** For `node --import`, of a service: beyond one delivery of a receiver that is queued, its deliveries wait in the log, not beyond 500. */
import { LIMITS } from "../../../core/limits.js";

Object.assign(LIMITS.deliveryBacklog, { waiting: 1, waitingOfReceiver: 1 });
